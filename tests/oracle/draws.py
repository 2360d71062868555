# SPDX-License-Identifier: Apache-2.0
"""Random draws: docs/determinism.md, sections 2 to 4."""

from dataclasses import dataclass, replace

from philox import MASK, philox, words

SHUFFLE, NEIGHBOUR, INTERLEAVE = 0, 1, 4


@dataclass(frozen=True)
class Domain:
    """What a key is made of."""
    seed: int
    epoch: int
    batch: int
    purpose: int
    hop: int = 0
    relation: int = 0

    def key(self):
        return philox(self.seed & MASK, self.seed >> 32, self.epoch,
                      self.batch, self.purpose,
                      self.hop * 65536 + self.relation)[:2]

    def retry(self, r):
        return replace(self, purpose=self.purpose + 256 * r)


def word(key, node, tree, i):
    """Word `i` of the stream of `node` in `tree`."""
    return philox(key[0], key[1], node & MASK, node >> 32, tree,
                  i // 4)[i % 4]


def bounded(domain, node, tree, i, n, first=None):
    """Draw `i` below `n`; `first` is word i of the stream if known."""
    bits = 32 if n < 1 << 32 else 64
    r = 0
    while True:
        if r == 0 and bits == 32 and first is not None:
            w = first
        else:
            key = domain.retry(r).key()
            if bits == 32:
                w = word(key, node, tree, i)
            else:
                w = (word(key, node, tree, 2 * i) +
                     (word(key, node, tree, 2 * i + 1) << 32))
        m = w * n
        if m % (1 << bits) >= ((1 << bits) - n) % n:
            return m >> bits
        r += 1


def pick_slots(domain, nodes, trees, degrees, fanout, with_replacement):
    """The slots that each node picks from its list, in pick order."""
    streams = words(domain.key(), nodes, trees, max(fanout, 0)).tolist()
    return [
        _pick(domain, node, tree, d, fanout, with_replacement, stream)
        for node, tree, d, stream in zip(nodes, trees, degrees, streams)
    ]


def _pick(domain, node, tree, d, k, with_replacement, stream):
    if k == 0 or d == 0:
        return []
    if k == -1 or (k >= d and not with_replacement):
        return list(range(d))
    if with_replacement:
        return [bounded(domain, node, tree, i, d, stream[i])
                for i in range(k)]
    picked = set()
    for i in range(k):
        j = d - k + i
        x = bounded(domain, node, tree, i, j + 1, stream[i])
        picked.add(j if x in picked else x)
    return sorted(picked)


def permute(key, n, q):
    """P(key, n)(q): a permutation of 0 .. n-1."""
    h = half_bits(n)
    x = feistel(key, h, q)
    while x >= n:
        x = feistel(key, h, x)
    return x


def half_bits(n):
    h = 4
    while 4**h < n:
        h += 1
    return h


def feistel(key, h, x):
    """Eight rounds on 2h bits; serves arrays too."""
    left, right = x >> h, x % 2**h
    for r in range(8):
        f = philox(key[0], key[1], right, 0, r, 0)[0]
        left, right = right, left ^ (f % 2**h)
    return left * 2**h + right
