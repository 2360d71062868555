# SPDX-License-Identifier: Apache-2.0
"""Runs a test of a program while a call of the CUDA runtime fails."""
import os
import subprocess


def _run(program, test, variables):
    return subprocess.run(
        [program, f"--gtest_filter={test}"], capture_output=True, text=True,
        timeout=120, check=False, env={**os.environ, **variables})


def _problem_of(run, problem_of):
    if "fails as asked" not in run.stderr:
        return "no call failed"
    if "ptxemu: FAULT" in run.stderr:
        return "a kernel made a mistake"
    return problem_of(run)


def check(program, test, failures, problem_of, variables=None):
    """Runs the test with each of the failures (see PTXEMU_FAIL), and prints how
    it went. problem_of(run) says what is wrong with a run in which a call has
    failed, and is None if nothing is. Returns the exit status: 77 without
    ptxemu."""
    variables = variables or {}
    plain = _run(program, test, {**variables, "PTXEMU_DRIVER": "0"})
    if "cudaErrorInsufficientDriver" not in plain.stdout + plain.stderr:
        print("skipped: the CUDA runtime is not ptxemu")
        return 77
    failed = False
    for failure in failures:
        run = _run(program, test, {**variables, "PTXEMU_FAIL": failure})
        problem = _problem_of(run, problem_of)
        print(f"{failure}: {problem or 'right'}")
        failed |= problem is not None
    return 1 if failed else 0
