#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that gathering on devices gives the right rows or an error, and frees
its memory, when a call of the CUDA runtime fails. Skipped (77) without ptxemu.

  failed_gathers_test.py DEVICE_FEATURE_ROWS_TEST
"""
import sys

import failed_runs

TEST = "Stay/FailedGathersTest.EndsWithRowsOrAnErrorAndFreesMemory/"

# See PTXEMU_FAIL. The calls are those of the second time that the test gathers,
# before which it looks at the memory. Calls that free memory are not among
# them, since what they refuse to free stays.
FAILURES = (
    "cudaMalloc:5=2", "cudaMalloc:6=2", "cudaMalloc:6=700", "cudaMalloc:8=2",
    "cudaMemcpy:29=700", "cudaMemcpy:34=1", "cudaMemcpy:50=700",
    "cudaDeviceCanAccessPeer:6=101", "cudaDeviceEnablePeerAccess:6=711",
    "cudaHostGetDevicePointer:29=1", "cudaHostGetDevicePointer:48=700",
    "cudaStreamCreateWithPriority:3=2", "cudaStreamCreateWithPriority:4=700",
    "cudaMallocAsync:5=2", "cudaMallocAsync:5=2,cudaMallocAsync:6=2",
    "cudaMallocAsync:7=700", "cudaMemcpyAsync:13=700",
    "cudaMemcpyAsync:14=700", "cudaMemcpyAsync:15=1", "cudaMemcpyAsync:18=700",
    "cudaLaunchKernel:7=98", "cudaLaunchKernel:9=719",
    "cudaStreamSynchronize:7=700", "cudaStreamSynchronize:8=719",
    "cudaDeviceSynchronize:6=700")

# Further ones, by the number of the test: of rows that come to the host, and of
# rows that stay.
MORE = (
    ("cudaHostGetDevicePointer:50=700", "cudaHostGetDevicePointer:54=700",
     "cudaHostAlloc:2=2"),
    ("cudaMalloc:11=2", "cudaMalloc:11=2,cudaMalloc:12=2",
     "cudaMalloc:11=2,cudaMalloc:12=2,cudaMalloc:13=2,cudaMalloc:14=2",
     "cudaMalloc:12=700"))


def problem_of(run):
    return None if run.returncode == 0 else run.stdout


if __name__ == "__main__":
    sys.exit(max(
        failed_runs.check(sys.argv[1], f"{TEST}{number}", FAILURES + more,
                          problem_of, {"PTXEMU_DEVICES": "2"})
        for number, more in enumerate(MORE)))
