# SPDX-License-Identifier: Apache-2.0
"""Random walks and personalised PageRank: docs/determinism.md, section 5."""

from bisect import bisect_right
from collections import Counter
from itertools import accumulate

import numpy as np

from draws import STOP, WALK, pick_slots, wide
from job import metapath
from philox import words
from store import integer_weights


def step(builder, hop, number, walkers, nodes):
    """One slot of its node's list for each walker.

    `walkers` are numbers and `nodes` (tree, original id). Yields (index,
    neighbour, edge_id, place) for those that do not end here."""
    lists = list(builder.lists(builder.store.relations[number], nodes))
    places = [(n, v) for n, (_, v) in zip(walkers, nodes)]
    picks = pick_slots(builder.domain(WALK, hop, number), places, lists, 1,
                       builder.job.step_rule())
    for i, (slots, chosen) in enumerate(zip(lists, picks)):
        for s in chosen:
            yield i, slots.neighbours[s], slots.edge_ids[s], slots.places[s]


def biased_step(builder, hop, number, walkers, nodes, nodes_before):
    """The same with --walk-p and --walk-q.

    `nodes_before` are the nodes where the walkers were one step earlier; None
    at the first step."""
    job, relation = builder.job, builder.store.relations[number]
    back, near, far = integer_weights(
        [float(np.float32(w)) for w in (1 / job.walk_p, 1, 1 / job.walk_q)])
    domain = builder.domain(WALK, hop, number)
    for i, slots in enumerate(builder.lists(relation, nodes)):
        weights = [far] * len(slots)
        if nodes_before:
            before = nodes_before[i]
            around, = builder.lists(relation, [before])
            around = set(around.neighbours)
            weights = [back if v == before[1] else near if v in around else far
                       for v in slots.neighbours]
        if weights:
            sums = list(accumulate(weights))
            s = bisect_right(sums, wide(domain, walkers[i], 0, 0, sums[-1]))
            yield i, slots.neighbours[s], slots.edge_ids[s], slots.places[s]


def walk(builder):
    """--method walk."""
    batch, job = builder.batch, builder.job
    here = [v for v in batch.seed_to_local for _ in range(job.walks)]
    batch.walks = [[v] + [-1] * job.walk_length for v in here]
    walkers, nodes_before = list(range(len(here))), None
    found = {r.name: [] for r in builder.store.relations}
    for s, number in enumerate(metapath(builder.store, job)):
        relation = builder.store.relations[number]
        owner, other = relation.ends(job.direction)
        nodes = [batch.nodes[owner][v] for v in here]
        steps = (biased_step(builder, s, number, walkers, nodes, nodes_before)
                 if job.biased else step(builder, s, number, walkers, nodes))
        going = []
        for i, neighbour, *columns in steps:
            there = builder.local_id(other, (nodes[i][0], neighbour))
            batch.walks[walkers[i]][s + 1] = there
            found[relation.name].append(
                ((here[i], s, walkers[i]),
                 builder.edge(s, here[i], there, *columns)))
            going.append((walkers[i], there, nodes[i]))
        walkers = [w for w, _, _ in going]
        here = [v for _, v, _ in going]
        nodes_before = [v for _, _, v in going]
    for name, edges in found.items():
        edges.sort(key=lambda pair: pair[0])
        batch.edges[name] = [edge for _, edge in edges]


def visit(builder, hop, number, frontier, fanout):
    """--method ppr: for each node of the frontier its most visited nodes.

    Each is (original id, edge_id -1, no place, visits)."""
    job = builder.job
    threshold = int(job.restart * 2**32)
    # The nodes that each walker reached, in order.
    paths = [[] for _ in range(len(frontier) * job.walks)]
    walkers = list(range(len(paths)))
    here = [v for _, v in frontier for _ in range(job.walks)]
    for s in range(job.walk_length):
        if s > 0:
            key = builder.domain(STOP, 256 * hop + s, number).key()
            stop = words(key, walkers, [0] * len(walkers), 1)[:, 0].tolist()
            going = [w >= threshold for w in stop]
            walkers = [n for n, go in zip(walkers, going) if go]
            here = [v for v, go in zip(here, going) if go]
        reached = [(walkers[i], v) for i, v, *_ in step(
            builder, 256 * hop + s, number, walkers, [(0, v) for v in here])]
        for n, v in reached:
            paths[n].append(v)
        walkers, here = [n for n, _ in reached], [v for _, v in reached]
    picks = []
    for f, (_, node) in enumerate(frontier):
        # Counter keeps the order of first visits, and so does most_common()
        # among equals.
        visits = Counter(v for path in paths[f * job.walks:
                                             (f + 1) * job.walks]
                         for v in path if v != node)
        picks.append([(v, -1, None, count) for v, count in
                      visits.most_common(None if fanout == -1 else fanout)])
    return picks
