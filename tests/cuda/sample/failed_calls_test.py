#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that HopSampler ends with a failure, and frees its memory, when a call
of the CUDA runtime fails. Skipped (77) without ptxemu.

  failed_calls_test.py DEVICE_HOP_SAMPLER_TEST
"""
import os
import subprocess
import sys

TEST = "DeviceHopSamplerTest.WaitsOnceUnlessAllNeighborsAreTaken"

# See PTXEMU_FAIL. Calls of cudaFreeAsync are not among them, since what they
# refuse to free stays.
FAILURES = (
    "cudaDeviceGetAttribute:1=1", "cudaMallocAsync:40=2",
    "cudaMallocAsync:75=700", "cudaMemcpyAsync:1=700", "cudaMemcpyAsync:40=1",
    "cudaLaunchKernel:1=98", "cudaLaunchKernel:60=719",
    "cudaStreamSynchronize:1=700", "cudaStreamSynchronize:3=719", "*:50=700",
    "*:200=2", "*:400=700")


def problem_of(program, failure):
    """What is wrong with a run in which a call fails; None if nothing is."""
    run = subprocess.run(
        [program, f"--gtest_filter={TEST}"], capture_output=True, text=True,
        timeout=120, check=False, env={**os.environ, "PTXEMU_FAIL": failure})
    if "fails as asked" not in run.stderr:
        return "no call failed"
    if run.returncode != 1:
        return f"exit status {run.returncode}"
    if "ptxemu: FAULT" in run.stderr:
        return "a kernel made a mistake"
    if "memory was not freed" in run.stdout:
        return "memory was not freed"
    return None


def main(program):
    plain = subprocess.run(
        [program, f"--gtest_filter={TEST}"], capture_output=True, text=True,
        check=False, env={**os.environ, "PTXEMU_DRIVER": "0"})
    if "cudaErrorInsufficientDriver" not in plain.stdout:
        print("skipped: the CUDA runtime is not ptxemu")
        return 77
    failed = False
    for failure in FAILURES:
        problem = problem_of(program, failure)
        print(f"{failure}: {problem or 'right'}")
        failed |= problem is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
