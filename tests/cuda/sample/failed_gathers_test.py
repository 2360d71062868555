#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that gathering on devices gives the right rows or an error, and frees
its memory, when a call of the CUDA runtime fails. Skipped (77) without ptxemu.

  failed_gathers_test.py DEVICE_FEATURE_ROWS_TEST
"""
import os
import subprocess
import sys

TEST = "DeviceFeatureRowsTest.EndsWithRowsOrAnErrorAndFreesMemory"

# See PTXEMU_FAIL. The calls are those of the second time that the test gathers,
# before which it looks at the memory. Calls that free memory are not among
# them, since what they refuse to free stays.
FAILURES = (
    "cudaMalloc:5=2", "cudaMalloc:6=2", "cudaMalloc:6=700", "cudaMalloc:8=2",
    "cudaMemcpy:29=700", "cudaMemcpy:34=1", "cudaMemcpy:50=700",
    "cudaDeviceCanAccessPeer:6=101", "cudaDeviceEnablePeerAccess:6=711",
    "cudaHostGetDevicePointer:29=1", "cudaHostGetDevicePointer:50=700",
    "cudaHostGetDevicePointer:54=700", "cudaHostAlloc:2=2",
    "cudaStreamCreateWithPriority:3=2", "cudaStreamCreateWithPriority:4=700",
    "cudaMallocAsync:5=2", "cudaMallocAsync:5=2,cudaMallocAsync:6=2",
    "cudaMallocAsync:7=700", "cudaMemcpyAsync:13=700",
    "cudaMemcpyAsync:14=700", "cudaMemcpyAsync:15=1", "cudaMemcpyAsync:18=700",
    "cudaLaunchKernel:7=98", "cudaLaunchKernel:9=719",
    "cudaStreamSynchronize:7=700", "cudaStreamSynchronize:8=719",
    "cudaDeviceSynchronize:6=700")


def run(program, **environment):
    return subprocess.run(
        [program, f"--gtest_filter={TEST}"], capture_output=True, text=True,
        timeout=120, check=False,
        env={**os.environ, "PTXEMU_DEVICES": "2", **environment})


def problem_of(program, failure):
    """What is wrong with a run in which a call fails; None if nothing is."""
    result = run(program, PTXEMU_FAIL=failure)
    if "fails as asked" not in result.stderr:
        return "no call failed"
    if "ptxemu: FAULT" in result.stderr:
        return "a kernel made a mistake"
    return None if result.returncode == 0 else result.stdout


def main(program):
    plain = run(program, PTXEMU_DRIVER="0")
    if "cudaErrorInsufficientDriver" not in plain.stdout + plain.stderr:
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
