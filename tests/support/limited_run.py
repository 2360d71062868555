# SPDX-License-Identifier: Apache-2.0
"""Runs our programs on hostile input, which may make them ask for too much."""
import dataclasses
import functools
import os
import resource
import subprocess
import tempfile
import threading

ADDRESS_SPACE = 4 << 30


@dataclasses.dataclass
class Ended:
    status: int  # below 0: the signal
    errors: str
    peak: int    # bytes of memory


def run_limited(command, seconds=300, address_space=ADDRESS_SPACE):
    """Runs a program with little address space, and kills it after `seconds`.
    """
    command = [str(word) for word in command]
    return run_within(command, seconds,
                      address_space if _starts_in(command[0], address_space)
                      else resource.RLIM_INFINITY)


@functools.cache
def _starts_in(program, address_space):
    """Whether the program starts; with sanitizers, it reserves terabytes."""
    return run_within([program, "--version"], 60, address_space).status == 0


def run_within(command, seconds, address_space):
    """Runs a program with this limit, even if it is too little to start."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (address_space, address_space)))
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return Ended(child.returncode,
                     errors.read().decode(errors="replace"),
                     usage.ru_maxrss << 10)
