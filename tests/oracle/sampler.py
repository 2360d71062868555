# SPDX-License-Identifier: Apache-2.0
"""Batches: docs/determinism.md, sections 3 and 5; walks are in walks.py."""

from dataclasses import dataclass, field

import walks
from draws import NEIGHBOUR, Domain, pick_slots
from job import check_job, metapath, relation_fanouts, seed_type
from seeds import check_seeds, seed_times


@dataclass
class Batch:
    epoch: int
    index: int
    seed_type: str
    seeds: list
    disjoint: bool
    times: list  # of the seeds; None unless temporal
    seed_to_local: list = field(default_factory=list)
    nodes: dict = field(default_factory=dict)  # type: [(tree, original id)]
    edges: dict = field(default_factory=dict)  # relation: [Edge]
    walks: list = None  # [walker][step]: local id, or -1


@dataclass
class Edge:
    hop: int
    src: int
    dst: int
    edge_id: int
    place: tuple  # of its feature row
    visits: int = None  # with --method ppr


class Builder:
    """A batch in the making."""

    def __init__(self, store, job, batch):
        self.store, self.job, self.batch = store, job, batch
        batch.nodes = {t.name: [] for t in store.types}
        batch.edges = {r.name: [] for r in store.relations}
        # Per type the local ids by (tree, original id).
        self.local = {t.name: {} for t in store.types}
        for i, v in enumerate(batch.seeds):
            batch.seed_to_local.append(self.local_id(
                batch.seed_type, (i if batch.disjoint else 0, v)))

    def domain(self, purpose, hop, number):
        return Domain(self.job.seed, self.batch.epoch, self.batch.index,
                      purpose, hop, number)

    def local_id(self, name, node):
        if node not in self.local[name]:
            self.local[name][node] = len(self.batch.nodes[name])
            self.batch.nodes[name].append(node)
        return self.local[name][node]

    def lists(self, relation, nodes):
        """The admissible parts of the lists of many (tree, original id)."""
        lists = [self.store.list_of(relation, self.job.direction, v)
                 for _, v in nodes]
        if self.batch.times is None:
            return lists
        return [slots.until(self.batch.times[tree])
                for slots, (tree, _) in zip(lists, nodes)]

    def edge(self, hop, here, there, *columns):
        """An edge of the list of local id `here`, whose neighbour is
        `there`."""
        src, dst = ((there, here) if self.job.direction == 'in' else
                    (here, there))
        return Edge(hop, src, dst, *columns)


def sample(store, job, epoch, index, seeds, times=None):
    """The batch around `seeds` (original ids); section 5."""
    type_name = seed_type(store, job)
    check_seeds(store, type_name, seeds)
    check_job(store, job)
    batch = Batch(epoch, index, type_name, list(seeds), job.trees,
                  seed_times(store, job, type_name, seeds, times))
    builder = Builder(store, job, batch)
    if job.method == 'walk':
        walks.walk(builder)
        return batch
    run_hops(builder)
    if job.method == 'induced':
        induce(builder)
    return batch


def run_hops(builder):
    batch = builder.batch
    hops, fanouts = relation_fanouts(builder.store, builder.job)
    if builder.job.method == 'ppr':
        path = metapath(builder.store, builder.job)
        fanouts = {r.name: fanouts[r.name] if n in path else [0] * hops
                   for n, r in enumerate(builder.store.relations)}
    begin = {name: 0 for name in batch.nodes}
    for hop in range(hops):
        end = {name: len(nodes) for name, nodes in batch.nodes.items()}
        for number, relation in enumerate(builder.store.relations):
            fanout = fanouts[relation.name][hop]
            if fanout == 0:
                continue
            owner, other = relation.ends(builder.job.direction)
            frontier = batch.nodes[owner][begin[owner]:end[owner]]
            draw = walks.visit if builder.job.method == 'ppr' else pick
            picks = draw(builder, hop, number, frontier, fanout)
            for i, (tree, _) in enumerate(frontier):
                for neighbour, *columns in picks[i]:
                    there = builder.local_id(other, (tree, neighbour))
                    batch.edges[relation.name].append(builder.edge(
                        hop, begin[owner] + i, there, *columns))
        begin = end


def pick(builder, hop, number, frontier, fanout):
    """Per node of the frontier its picks: (neighbour, edge_id, place)."""
    lists = builder.lists(builder.store.relations[number], frontier)
    picks = pick_slots(builder.domain(NEIGHBOUR, hop, number), frontier,
                       lists, fanout, builder.job.rule())
    return [[(slots.neighbours[s], slots.edge_ids[s], slots.places[s])
             for s in chosen] for slots, chosen in zip(lists, picks)]


def induce(builder):
    """All admissible edges between the batch's nodes, of hop 0."""
    batch = builder.batch
    for relation in builder.store.relations:
        owner, other = relation.ends(builder.job.direction)
        edges = batch.edges[relation.name] = []
        nodes = batch.nodes[owner]
        for here, slots in enumerate(builder.lists(relation, nodes)):
            tree = nodes[here][0]
            for v, *columns in zip(slots.neighbours, slots.edge_ids,
                                   slots.places):
                if (tree, v) in builder.local[other]:
                    there = builder.local[other][tree, v]
                    edges.append(builder.edge(0, here, there, *columns))
