#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets calls of the CUDA runtime fail, one in each run of a program: each n-th
call of `millrace digest` and of servers. A run must end with the right digests
or a clear error, and after a failure a server must make the next batches right.

  failed_programs_test.py --bin BIN [--stride N]

Skipped (77) unless the runtime is tests/ptxemu.
"""
import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MEMORY = ("--graph-memory", "cuda", "--feature-memory", "cuda",
          "--device-fallback", "forbid")
JOB = ("--fanouts", "3,2", "--batch-size", "30", "--batches", "3")
WAIT = ("--partition-wait", "20s")  # where servers make batches
# The calls with which a program opens a device, all of which fail once.
OPENING = 12
# cudaErrorMemoryAllocation, and errors after which a real device does nothing:
# cudaErrorIllegalAddress, cudaErrorDevicesUnavailable, cudaErrorNoDevice.
NO_MEMORY, LOST = 2, (700, 46, 100)


class Programs:
    def __init__(self, bin_folder, folder):
        self.bin, self.folder = bin_folder, folder

    def environment(self, failure):
        return os.environ | {"PTXEMU_STATISTICS": "1"} | (
            {"PTXEMU_FAIL": failure} if failure else {})

    def digest(self, *source, failure=""):
        return subprocess.run(
            [self.bin / "millrace", "digest", *source, *JOB], cwd=self.folder,
            capture_output=True, text=True, timeout=120, check=False,
            env=self.environment(failure))

    @contextlib.contextmanager
    def server(self, failure):
        """A server of partition 0 of one; yields its address, or None if it has
        ended, and the file of its messages."""
        name = re.sub(r"\W", "-", failure) or "plain"
        port, log = self.folder / f"{name}.port", self.folder / f"{name}.log"
        with open(log, "w", encoding="utf-8") as messages, subprocess.Popen(
                [self.bin / "millrace-server", "--store", "plain",
                 "--partition", "all", "--listen", "127.0.0.1:0", *MEMORY,
                 "--threads", "1", "--port-file", port], cwd=self.folder,
                stderr=messages, env=self.environment(failure)) as process:
            try:
                while process.poll() is None and not port.exists():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=0.02)
                yield (f"127.0.0.1:{port.read_text().strip()}"
                       if port.exists() else None), log
            finally:
                process.terminate()
                status = process.wait(timeout=60)
        if port.exists() and status != 0:
            raise RuntimeError(f"a server ended with {status} after {failure}")


def complaint(errors):
    """What is wrong with the messages of a program that has failed."""
    if "ptxemu: FAULT" in errors:
        return "a kernel made a mistake"
    said = re.findall(r"^millrace(?:-server| digest): (.*)", errors, re.M)
    if "bug" in errors or len(said) < 2 or not re.search("CUDA|memory",
                                                         said[0]):
        return f"no clear error: {errors}"
    return None


def leak(errors):
    """What a program of these messages has not released, unless the call that
    failed was to release it."""
    if re.search(r"(cudaFree\w*|cudaHostUnregister|cudaStreamDestroy\w*) fails "
                 "as asked", errors):
        return None
    left = re.search(r"not released: (.*)", errors)
    if left is None:
        return f"ended without statistics: {errors}"
    if left[1] == "0 bytes, 0 pinned ranges, 0 streams":
        return None
    return f"not released: {left[1]}"


def problem_of_digest(programs, failure, right):
    """None if nothing is wrong, or "none failed" after the last call."""
    run = programs.digest("--store", "plain", *MEMORY, "--threads", "1",
                          failure=failure)
    if "fails as asked" not in run.stderr:
        return "none failed"
    if run.returncode == 0:
        return leak(run.stderr) if run.stdout == right else "wrong digests"
    if run.returncode != 1:
        return f"exit status {run.returncode}: {run.stderr}"
    return complaint(run.stderr) or leak(run.stderr)


def problem_of_server(programs, failure, right):
    with programs.server(failure) as (address, log):
        problem = problem_while_serving(programs, address, log, right)
    return problem or leak(log.read_text())


def problem_while_serving(programs, address, log, right):
    if address is None:
        return complaint(log.read_text())
    runs = [programs.digest("--servers", address, *WAIT) for _ in range(2)]
    if "fails as asked" not in log.read_text():
        return "none failed"
    after = programs.digest("--servers", address, *WAIT)
    if after.stdout != right:
        return f"the next batches are wrong: {after.stderr}"
    for run in runs:
        if run.returncode == 0 and run.stdout != right:
            return "wrong digests"
        if run.returncode and complaint(run.stderr):
            return complaint(run.stderr)
    return None


def check(pool, problem_of, programs, right, stride):
    """Returns the number of calls tried and the problems."""
    tried, problems = 0, []
    opening = min(OPENING, stride)
    blocks = itertools.chain(
        [range(1, opening + 1)],
        (range(first, first + 8 * stride, stride)
         for first in itertools.count(opening + stride, 8 * stride)))
    for calls in blocks:
        failures = [f"*:{n}={error}" for i, n in enumerate(calls)
                    for error in (NO_MEMORY, LOST[i % len(LOST)])]
        for failure, problem in zip(failures, pool.map(
                lambda one: problem_of(programs, one, right), failures)):
            if problem == "none failed":
                return tried, problems
            tried += 1
            if problem is not None:
                problems.append(f"{failure}: {problem}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--stride", type=int, default=1,
                        help="let only each N-th call fail")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="millrace-failures-") as folder:
        programs = Programs(flags.bin.resolve(), pathlib.Path(folder))
        subprocess.run(
            [programs.bin / "millrace", "import", "fake", "--nodes", "120",
             "--avg-degree", "5", "--features", "6", "--classes", "2", "--out",
             "plain"], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        absent = subprocess.run(
            [programs.bin / "millrace", "digest", "--store", "plain", *MEMORY,
             *JOB], cwd=folder, capture_output=True, text=True, check=False,
            env=os.environ | {"PTXEMU_DRIVER": "0"})
        if "cudaErrorInsufficientDriver" not in absent.stderr:
            print("skipped: the CUDA runtime is not ptxemu")
            return 77
        right = programs.digest("--store", "plain").stdout
        wrong = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for what, problem_of in (("digest", problem_of_digest),
                                     ("server", problem_of_server)):
                tried, problems = check(pool, problem_of, programs, right,
                                        flags.stride)
                print(*problems, f"{what}: {tried} calls failed, "
                      f"{len(problems)} runs are wrong", sep="\n")
                wrong += len(problems) + (not tried)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
