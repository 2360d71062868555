#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that merging rows on a device gives the right rows or an error, and
frees its memory, when a call of the CUDA runtime fails. Skipped (77) without
ptxemu.

  failed_merges_test.py DEVICE_CACHE_TEST
"""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] /
                    "cuda" / "sample"))
import failed_runs  # noqa: E402

TEST = "DeviceCacheTest.EndsWithRowsOrAnErrorAndFreesMemory"

# See PTXEMU_FAIL. The calls are those of the second time that the test merges,
# before which it looks at the memory. Calls that free memory are not among
# them, since what they refuse to free stays.
FAILURES = (
    "cudaMemGetInfo:5=700", "cudaMemGetInfo:6=700", "cudaMemGetInfo:7=2",
    "cudaMalloc:3=2", "cudaMalloc:3=700", "cudaMalloc:4=2", "cudaMalloc:4=700",
    "cudaMalloc:3=2,cudaMalloc:4=2", "cudaMalloc:4=2,cudaMalloc:5=2",
    "cudaStreamCreateWithPriority:2=2",
    "cudaStreamCreateWithPriority:2=700", "cudaDeviceGetAttribute:2=1",
    "cudaMallocAsync:3=2", "cudaMallocAsync:3=700", "cudaMallocAsync:4=2",
    "cudaMallocAsync:4=700", "cudaMallocAsync:4=2,cudaMallocAsync:5=2",
    "cudaMemcpyAsync:7=700", "cudaMemcpyAsync:8=700", "cudaMemcpyAsync:9=1",
    "cudaMemcpyAsync:12=700", "cudaPointerGetAttributes:4=1",
    "cudaPointerGetAttributes:6=700", "cudaLaunchKernel:5=98",
    "cudaLaunchKernel:6=719", "cudaLaunchKernel:7=700",
    "cudaStreamSynchronize:6=700", "cudaStreamSynchronize:7=700",
    "cudaStreamSynchronize:8=719", "cudaStreamSynchronize:9=1",
    "cudaHostAlloc:2=2", "cudaGetDevice:24=700", "cudaGetDevice:30=700")


def problem_of(run):
    return None if run.returncode == 0 else run.stdout


if __name__ == "__main__":
    sys.exit(failed_runs.check(sys.argv[1], TEST, FAILURES, problem_of))
