# SPDX-License-Identifier: Apache-2.0
"""Which jobs GPUs have kernels for (docs/gpu.md)."""
import re

CPU_METHODS = {"walk", "ppr", "induced"}
MAX_GPU_FANOUT = 1024


def has_kernels(words):
    """Whether a GPU must make the batches of a command with these words."""
    fanouts = [int(number) for option, value in zip(words, words[1:])
               if option == "--fanouts"
               for number in re.findall(r"-?[0-9]+", value.split("=")[-1])]
    return (CPU_METHODS.isdisjoint(words)
            and max(fanouts, default=0) <= MAX_GPU_FANOUT)
