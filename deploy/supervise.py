#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps a trainer group running: starts it, and restarts it with --resume when
it dies.

  deploy/supervise.py [OPTION]... -- millrace-train ... --checkpoint DIR ...

The command is restarted from its last checkpoint after a signal (kill -9, out
of memory) or exit status 1 (a lost rank, a full disk). It is not restarted
after status 0 (done), 2 (wrong options), 126 and 127 (no such program), or 130
(interrupted by a user). SIGTERM and SIGINT are passed on and end everything.

For a group on several hosts, each host runs this with the same command, its own
RANK, and the same MASTER_ADDR and MASTER_PORT: a lost rank ends the others
within seconds, all are restarted, and wait for each other. With
--rendezvous-secret FILE, wrong options on one rank stop the trainers on all
hosts; without it, the other hosts restart theirs.

Exit status: the command's; 128 + N if signal N ended it.
"""
import argparse
import contextlib
import ctypes
import itertools
import os
import random
import shlex
import signal
import subprocess
import sys
import time

NOT_RETRIED = {2: "wrong usage", 126: "cannot be run", 127: "cannot be run",
               130: "interrupted"}
PR_SET_PDEATHSIG = 1


def log(text):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # The group must keep running even if stderr is on a full disk or a pipe
    # that nobody reads. Unbuffered: a buffer would keep the line and fail at
    # exit.
    with contextlib.suppress(OSError):
        os.write(2, f"{stamp} supervise: {text}\n".encode(
            errors="surrogateescape"))


def with_option(command, option):
    given = any(word == option or word.startswith(option + "=")
                for word in command)
    return command if given else [*command, option]


def has_checkpoint(command):
    """Whether the command seems to write checkpoints to resume from."""
    return (any(word.split("=")[0] in ("--checkpoint", "--config")
                for word in command)
            or "MILLRACE_CHECKPOINT" in os.environ
            or "MILLRACE_CONFIG" in os.environ)


def how_it_ended(code):
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal
        name = "no name"
    return f"was killed by signal {-code} ({name})"


class Supervisor:
    def __init__(self, flags):
        self.flags = flags
        self.process = None
        self.stopped_by = None  # signal number
        self.kill_at = None     # when to send SIGKILL

    def on_signal(self, number, _):
        self.stopped_by = number
        self.kill_at = time.monotonic() + self.flags.grace
        if self.process is not None:
            self.process.send_signal(number)  # does nothing if it has ended

    def start(self, command):
        libc = ctypes.CDLL(None)
        # Block signals until self.process is set, so that on_signal() can pass
        # them on.
        stops = {signal.SIGTERM, signal.SIGINT}
        before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)

        def in_child():
            # The command ends with us, however we end, and its ranks end with
            # it.
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            # In its own group, so that Ctrl-C reaches only us; we pass it on
            # once.
            os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            self.process = subprocess.Popen(command, preexec_fn=in_child)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run_once(self, command):
        """Runs the command; returns its status as subprocess reports it."""
        try:
            self.start(command)
        except OSError as error:
            log(f"cannot run {command[0]}: {error.strerror}")
            return 127
        # A signal came before there was a process.
        if self.stopped_by is not None:
            self.process.send_signal(self.stopped_by)
        while True:
            try:
                # The timeout is short, to check whether to send SIGKILL.
                return self.process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                if self.kill_at and time.monotonic() > self.kill_at:
                    os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while self.stopped_by is None and time.monotonic() < until:
            time.sleep(min(0.1, seconds))

    def run(self):
        signal.signal(signal.SIGTERM, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)
        flags = self.flags
        command, backoff = flags.command, flags.backoff
        for restart in itertools.count():
            attempt = f"attempt {restart + 1} of {flags.max_restarts + 1}"
            log(f"{attempt}: {shlex.join(command)}")
            start = time.monotonic()
            code = self.run_once(command)
            self.process = None
            outcome = f"{attempt} {how_it_ended(code)}"
            status = code if code >= 0 else 128 - code
            if code == 0:
                log(f"{outcome}; done")
                return 0
            if self.stopped_by is not None:
                name = signal.Signals(self.stopped_by).name
                log(f"{outcome}; stopped by {name}")
                return status
            if code in NOT_RETRIED:
                log(f"{outcome} ({NOT_RETRIED[code]}); not started again")
                return status
            if restart == flags.max_restarts:
                log(f"{outcome}; giving up after {restart} restarts")
                return status
            # It ran for a long time, so this failure is unrelated to the last
            # one.
            if time.monotonic() - start > flags.backoff_max:
                backoff = flags.backoff
            delay = backoff * random.uniform(0.75, 1.25)
            log(f"{outcome}; starting again with --resume in {delay:.1f} s")
            self.wait(delay)
            if self.stopped_by is not None:
                name = signal.Signals(self.stopped_by).name
                log(f"stopped by {name} before the next attempt")
                return 128 + self.stopped_by
            backoff = min(2 * backoff, flags.backoff_max)
            command = with_option(command, "--resume")


def not_negative(kind):
    def convert(text):
        value = kind(text)
        if not value >= 0:
            raise ValueError
        return value
    convert.__name__ = "number of at least 0"
    return convert


def parse():
    parser = argparse.ArgumentParser(
        prog="supervise.py", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--max-restarts", type=not_negative(int), default=10, metavar="N",
        help="then give up with the last status (default 10)")
    parser.add_argument(
        "--backoff", type=not_negative(float), default=1.0, metavar="SECONDS",
        help="wait before the first restart; doubled for each "
        "further one (default 1)")
    parser.add_argument(
        "--backoff-max", type=not_negative(float), default=60.0,
        metavar="SECONDS", help="maximum wait; after a run that lasted longer, "
        "waiting starts again at --backoff (default 60)")
    parser.add_argument(
        "--grace", type=not_negative(float), default=30.0, metavar="SECONDS",
        help="time that the command gets to end after SIGTERM or SIGINT, "
        "before SIGKILL (default 30)")
    parser.add_argument("command", nargs=argparse.REMAINDER,
                        help="the command to run, after --")
    flags = parser.parse_args()
    if flags.command[:1] == ["--"]:
        del flags.command[0]
    if not flags.command:
        parser.error("there is no command: give it after --")
    if not has_checkpoint(flags.command):
        parser.error("the command has no --checkpoint DIR: a restart would "
                     "have nothing to resume from")
    return flags


if __name__ == "__main__":
    sys.exit(Supervisor(parse()).run())
