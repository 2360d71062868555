# SPDX-License-Identifier: Apache-2.0
"""Random draws: docs/determinism.md, sections 2 to 4."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from philox import MASK, philox, words

SHUFFLE, NEIGHBOUR, WALK, NEGATIVE, INTERLEAVE, LABOR, STOP = range(7)


@dataclass(frozen=True)
class Domain:
    """The parts of a key."""
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


@dataclass(frozen=True)
class Rule:
    """How a job picks from a list of admissible slots."""
    replace: bool = False
    weighted: bool = False
    last: bool = False
    labor: bool = False


def word(key, node, tree, i):
    """Word `i` of the stream of `node` in `tree`."""
    return philox(key[0], key[1], node & MASK, node >> 32, tree,
                  i // 4)[i % 4]


def bounded(domain, node, tree, i, n, stream=()):
    """Draw `i` below `n`; `stream`: the first words of the stream, if known.
    """
    return _draw(domain, node, tree, i, n, 32 if n < 1 << 32 else 64, stream)


def wide(domain, node, tree, i, n, stream=()):
    """Draw `i` below `n`, with 64 bits whatever `n` is."""
    return _draw(domain, node, tree, i, n, 64, stream)


def _draw(domain, node, tree, i, n, bits, stream):
    places = [i] if bits == 32 else [2 * i, 2 * i + 1]
    r = 0
    while True:
        if r == 0 and places[-1] < len(stream):
            got = [stream[p] for p in places]
        else:
            key = domain.retry(r).key()
            got = [word(key, node, tree, p) for p in places]
        m = sum(w << 32 * j for j, w in enumerate(got)) * n
        if m % (1 << bits) >= ((1 << bits) - n) % n:
            return m >> bits
        r += 1


def pick_slots(domain, frontier, lists, fanout, rule):
    """The slots that each (tree, node) of the frontier picks from its list.

    `lists` are the admissible parts of the lists (store.List), and the slots
    are in pick order.
    """
    if fanout == -1:
        return [list(range(len(slots))) for slots in lists]
    if rule.last:
        return [list(range(max(0, len(slots) - fanout), len(slots)))
                for slots in lists]
    if rule.labor:
        return _labor(replace(domain, purpose=LABOR), frontier, lists, fanout)
    streams = words(domain.key(), [node for _, node in frontier],
                    [tree for tree, _ in frontier],
                    2 * fanout if rule.weighted else fanout).tolist()
    pick = _successive if rule.weighted else _uniform
    return [pick(domain, node, tree, slots, fanout, rule.replace, stream)
            for (tree, node), slots, stream in zip(frontier, lists, streams)]


def _uniform(domain, node, tree, slots, k, with_replacement, stream):
    d = len(slots)
    if d == 0:
        return []
    if with_replacement:
        return [bounded(domain, node, tree, i, d, stream) for i in range(k)]
    if k >= d:
        return list(range(d))
    picked = set()
    for i in range(k):
        j = d - k + i
        x = bounded(domain, node, tree, i, j + 1, stream)
        picked.add(j if x in picked else x)
    return sorted(picked)


def _successive(domain, node, tree, slots, k, with_replacement, stream):
    """Draws by integer weights. Without replacement, the weights of picked
    slots become zero."""
    weights, picks = list(slots.weights), []
    for i in range(k):
        rest = sum(weights)
        if rest == 0:
            break
        x = wide(domain, node, tree, i, rest, stream)
        slot = 0
        while x >= weights[slot]:
            x -= weights[slot]
            slot += 1
        picks.append(slot)
        if not with_replacement:
            weights[slot] = 0
    return picks if with_replacement else sorted(picks)


def _labor(domain, frontier, lists, k):
    """The slots of the k neighbours with the smallest numbers."""
    pairs = [(tree, v) for (tree, _), slots in zip(frontier, lists)
             if len(slots) > k for v in slots.neighbours]
    w = words(domain.key(), [v for _, v in pairs], [t for t, _ in pairs], 2)
    numbers = iter((w[:, 0] + (w[:, 1] << np.uint64(32))).tolist())
    picks = []
    for slots in lists:
        order = range(len(slots))
        if len(slots) > k:
            order = sorted((next(numbers), slot) for slot in order)[:k]
            order = sorted(slot for _, slot in order)
        picks.append(list(order))
    return picks


def permute(key, n, q):
    """P(key, n)(q): a permutation of 0 .. n-1."""
    if n <= 1 << 18:
        return int(order(key, n)[q])
    h = half_bits(n)
    x = feistel(key, h, q)
    while x >= n:
        x = feistel(key, h, x)
    return x


@functools.lru_cache(64)
def order(key, n):
    """P(key, n) of 0 .. n-1."""
    h = half_bits(n)
    table = feistel(key, h, np.arange(4**h, dtype=np.uint64))
    x = table[:n]
    while (x >= n).any():
        x = np.where(x >= n, table[x], x)
    return x


def half_bits(n):
    h = 4
    while 4**h < n:
        h += 1
    return h


def feistel(key, h, x):
    """Eight rounds on 2h bits of an int, or of each of a uint64 array."""
    left, right = x >> h, x % 2**h
    for r in range(8):
        f = philox(key[0], key[1], right, 0, r, 0)[0]
        left, right = right, left ^ (f % 2**h)
    return left * 2**h + right
