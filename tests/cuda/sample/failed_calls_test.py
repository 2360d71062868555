#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that HopSampler ends with a failure, and frees its memory, when a call
of the CUDA runtime fails. Skipped (77) without ptxemu.

  failed_calls_test.py DEVICE_HOP_SAMPLER_TEST
"""
import sys

import failed_runs

TEST = "DeviceHopSamplerTest.WaitsOnceUnlessAllNeighborsAreTaken"

# See PTXEMU_FAIL. Calls of cudaFreeAsync are not among them, since what they
# refuse to free stays.
FAILURES = (
    "cudaDeviceGetAttribute:1=1", "cudaMallocAsync:40=2",
    "cudaMallocAsync:75=700", "cudaMemcpyAsync:1=700", "cudaMemcpyAsync:40=1",
    "cudaLaunchKernel:1=98", "cudaLaunchKernel:60=719",
    "cudaStreamSynchronize:1=700", "cudaStreamSynchronize:3=719", "*:50=700",
    "*:200=2", "*:400=700")

# What a test says that knows of the failure. One that does not, and fails, has
# found a wrong batch.
KNOWN = ("(copy) != (nullptr)", "queue.Download(", "HopOutcome::kMade",
         "cudaError")


def problem_of(run):
    if run.returncode != 1:
        return f"exit status {run.returncode}"
    if not any(words in run.stdout for words in KNOWN):
        return f"a wrong batch: {run.stdout}"
    if "memory was not freed" in run.stdout:
        return "memory was not freed"
    return None


if __name__ == "__main__":
    sys.exit(failed_runs.check(sys.argv[1], TEST, FAILURES, problem_of))
