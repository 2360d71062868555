# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011)."""

import numpy as np

MASK = 0xFFFFFFFF


def philox(k0, k1, c0, c1, c2, c3):
    """Words w0..w3 for a key and a counter.

    Each argument is a Python int below 2^32, or a uint64 array of such numbers;
    arrays broadcast. Products of two words fit in 64 bits, so the same code
    serves both."""
    for _ in range(10):
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = ((p1 >> 32) ^ c1 ^ k0, p1 & MASK,
                          (p0 >> 32) ^ c3 ^ k1, p0 & MASK)
        k0 = (k0 + 0x9E3779B9) & MASK
        k1 = (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def words(key, nodes, trees, count):
    """The first `count` words of the streams of many nodes: [nodes, count]."""
    nodes = np.asarray(nodes, np.uint64)[:, None]
    trees = np.asarray(trees, np.uint64)[:, None]
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)[None, :]
    zero = np.zeros((len(nodes), blocks.shape[1]), np.uint64)
    w = philox(key[0], key[1], (nodes & np.uint64(MASK)) + zero,
               (nodes >> np.uint64(32)) + zero, trees + zero, blocks + zero)
    shape = len(nodes), 4 * blocks.shape[1]
    return np.stack(w, axis=-1).reshape(shape)[:, :count]
