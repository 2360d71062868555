# SPDX-License-Identifier: Apache-2.0
"""Negatives and excluded edges of seeds that are pairs of nodes:
docs/determinism.md, section 6."""

import math
from dataclasses import dataclass

from draws import NEGATIVE, bounded
from job import negative_mode
from philox import words

MAX_REDRAWS = 20


@dataclass
class Negatives:
    dst: list           # original ids
    trees: list         # trees of `dst` if the job is disjoint
    src: list = None    # sources of drawn pairs
    edges: int = None   # drawn pairs known to be edges; None if given


def negatives_of(store, job, number, seeds, domain):
    """The job's drawn negatives, else those that were given, else None.

    `number` is that of the seeds' relation; `domain` makes the domain for a
    purpose, a hop and a relation."""
    mode, amount = negative_mode(job)
    n = len(seeds)
    drawer = Drawer(store, number, domain)
    if mode == 'binary':
        pairs = [drawer.checked(q, None)
                 for q in drawer.numbers(math.ceil(n * amount))]
        return Negatives([d for _, d in pairs],
                         [n + q for q in range(len(pairs))],
                         [s for s, _ in pairs], drawer.edges)
    if mode == 'triplet':
        pairs = [drawer.checked(q, seeds.ids[q // amount])
                 for q in drawer.numbers(n * amount)]
        return Negatives([d for _, d in pairs],
                         [q // amount for q in range(len(pairs))],
                         edges=drawer.edges)
    if mode == 'shared':
        return Negatives([drawer.draw(q, 0, 2) for q in
                          drawer.numbers(amount)], [0] * amount,
                         edges=drawer.edges)
    if mode == 'in-batch' or seeds.negatives is None:
        return None
    trees = [i for i, row in enumerate(seeds.negatives) for _ in row]
    return Negatives(sum(seeds.negatives, []), trees)


class Drawer:
    """Draws the negatives of a batch."""

    def __init__(self, store, number, domain):
        self.store, self.relation = store, store.relations[number]
        self.domains = [domain(NEGATIVE, redraw, number)
                        for redraw in range(MAX_REDRAWS + 1)]
        self.streams, self.edges = [], 0

    def numbers(self, count):
        """The numbers 0 .. count - 1, which are about to be drawn."""
        self.streams = words(self.domains[0].key(), range(count), [0] * count,
                             4).tolist()
        return range(count)

    def draw(self, q, redraw, i):
        """A source (i = 0) or a destination (i = 2)."""
        name = self.relation.src if i == 0 else self.relation.dst
        return bounded(self.domains[redraw], q, 0, i,
                       self.store.by_name[name].count,
                       () if redraw else self.streams[q])

    def checked(self, q, src):
        """A pair that is not an edge, if the redraws find one; the source is
        drawn if `src` is None."""
        for redraw in range(MAX_REDRAWS + 1):
            pair = (self.draw(q, redraw, 0) if src is None else src,
                    self.draw(q, redraw, 2))
            if not self.store.has_edge(self.relation, *pair):
                return pair
        self.edges += 1
        return pair


def reverse_relations(store, relation):
    """The relations whose edges are reverses of this one's."""
    name = relation.name.split('__')[1]
    names = {f'rev_{name}'}
    if name.startswith('rev_'):
        names.add(name[len('rev_'):])
    found = [r for r in store.relations if r.name in {
        f'{relation.dst}__{n}__{relation.src}' for n in names}]
    return found + ([relation] if relation.src == relation.dst else [])


class Excluded:
    """The edges that a batch leaves out."""

    def __init__(self, store, job, number, seeds):
        self.pairs = {}  # by relation: {(source, destination): times or None}
        if job.exclude not in ('self', 'reverse'):
            return
        relation = store.relations[number]
        self.add(relation, seeds.ids, seeds.dst, seeds.times)
        if job.exclude == 'reverse':
            for r in reverse_relations(store, relation):
                self.add(r, seeds.dst, seeds.ids, seeds.times)

    def add(self, relation, src, dst, times):
        pairs = self.pairs.setdefault(relation.name, {})
        if relation.time != 'edge' or times is None:
            pairs.update(dict.fromkeys(zip(src, dst)))
            return
        for s, d, time in zip(src, dst, times):
            pairs.setdefault((s, d), set()).add(time)

    def rest(self, relation, direction, node, slots):
        """A list of `node` without the excluded slots."""
        pairs = self.pairs.get(relation.name)
        if not pairs:
            return slots

        def out(i):
            other = slots.neighbours[i]
            pair = (other, node) if direction == 'in' else (node, other)
            times = pairs.get(pair, ())
            return times is None or times and slots.times[i] in times
        kept = [i for i in range(len(slots)) if not out(i)]
        return slots if len(kept) == len(slots) else slots.part(kept)
