# SPDX-License-Identifier: Apache-2.0
"""Writes FILE: the weights that DGL's tutorial starts with, under our names.

The tutorial makes its model after torch.manual_seed(0), in a process of its
own, and DGL's layers draw nothing but their linear maps. Needs PyTorch (here:
1.13); initial_weights.pt was made by this script.

Usage: initial_weights.py FILE
"""
import sys

import torch


class Convolution(torch.nn.Module):
    def __init__(self, size_in, size_out):
        super().__init__()
        self.nn = torch.nn.Linear(size_in, size_out)
        self.register_buffer("eps", torch.zeros(1))


class Gin(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            [Convolution(1, 2), Convolution(2, 2)])


torch.manual_seed(0)
torch.save(Gin().state_dict(), sys.argv[1])
