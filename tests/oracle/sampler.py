# SPDX-License-Identifier: Apache-2.0
"""Batches: docs/determinism.md, sections 3 and 5; walks are in walks.py."""

from dataclasses import dataclass, field, replace

import walks
from draws import NEIGHBOUR, Domain, pick_slots
from job import (check_job, metapath, relation_fanouts, seed_relation,
                 seed_type)
from pairs import Excluded, Negatives, negatives_of
from seeds import Seeds, check_seeds, seed_times


@dataclass
class Batch:
    epoch: int
    index: int
    kind: str        # kind of seeds, as in Job
    seed_type: str   # type of the seeds, or relation of pairs
    seeds: Seeds
    disjoint: bool
    times: list      # the seeds' times; None if absent or irrelevant
    tree_times: list = None  # only in temporal jobs
    negatives: Negatives = None
    # Local ids of the seeds; for pairs, of the sources.
    seed_to_local: list = field(default_factory=list)
    dst_to_local: list = None
    negative_src_to_local: list = None
    negative_to_local: list = None
    nodes: dict = field(default_factory=dict)  # type: [(tree, original id)]
    edges: dict = field(default_factory=dict)  # relation: [Edge]
    walks: list = None  # [walker][step]: local id, or -1


@dataclass
class Edge:
    hop: int
    src: int
    dst: int
    edge_id: int
    place: tuple  # (partition, row) of its features
    visits: int = None  # only with --method ppr


class Builder:
    """A batch under construction."""

    def __init__(self, store, job, batch):
        self.store, self.job, self.batch = store, job, batch
        batch.nodes = {t.name: [] for t in store.types}
        batch.edges = {r.name: [] for r in store.relations}
        # Per type the local ids by (tree, original id).
        self.local = {t.name: {} for t in store.types}
        self.excluded = None
        if batch.kind == 'edge':
            self.add_pairs(seed_relation(store, job))
        else:
            batch.seed_to_local = self.local_ids(
                batch.seed_type, range(len(batch.seeds)), batch.seeds.ids)
        if job.temporal:
            drawn = len(batch.negative_src_to_local or [])
            batch.tree_times = batch.times + [
                batch.times[q % len(batch.seeds)] for q in range(drawn)]

    def add_pairs(self, number):
        """The seeds that are pairs, and their negatives."""
        batch, seeds = self.batch, self.batch.seeds
        relation = self.store.relations[number]
        trees = range(len(seeds))
        negatives = batch.negatives = negatives_of(
            self.store, self.job, number, seeds, self.domain)
        self.excluded = Excluded(self.store, self.job, number, seeds)
        batch.seed_to_local = self.local_ids(relation.src, trees, seeds.ids)
        batch.dst_to_local = self.local_ids(relation.dst, trees, seeds.dst)
        if negatives and negatives.src is not None:
            batch.negative_src_to_local = self.local_ids(
                relation.src, negatives.trees, negatives.src)
        if negatives:
            batch.negative_to_local = self.local_ids(
                relation.dst, negatives.trees, negatives.dst)

    def local_ids(self, name, trees, originals):
        return [self.local_id(name, (tree if self.batch.disjoint else 0, v))
                for tree, v in zip(trees, originals)]

    def domain(self, purpose, hop, number):
        return Domain(self.job.seed, self.batch.epoch, self.batch.index,
                      purpose, hop, number)

    def local_id(self, name, node):
        if node not in self.local[name]:
            self.local[name][node] = len(self.batch.nodes[name])
            self.batch.nodes[name].append(node)
        return self.local[name][node]

    def lists(self, relation, nodes):
        """What can be picked from the lists of many (tree, original id)."""
        direction, times = self.job.direction, self.batch.tree_times
        for tree, node in nodes:
            slots = self.store.list_of(relation, direction, node)
            if times is not None:
                slots = slots.until(times[tree])
            if self.excluded:
                slots = self.excluded.rest(relation, direction, node, slots)
            yield self.inside(relation, slots)

    def inside(self, relation, slots):
        """The slots whose neighbours are in the graph of the job."""
        kind, _, split = self.job.train_graph.partition(':')
        _, other = relation.ends(self.job.direction)
        members = (self.store.members(other, split) if kind == 'induced' else
                   None)
        if members is None:
            return slots
        return slots.part([i for i, v in enumerate(slots.neighbours)
                           if v in members])

    def edge(self, hop, here, there, *columns):
        """An edge in the list of local id `here`, whose neighbour is `there`.
        """
        src, dst = ((there, here) if self.job.direction == 'in' else
                    (here, there))
        return Edge(hop, src, dst, *columns)


def sample(store, job, epoch, index, seeds, times=None):
    """The batch around `seeds` (Seeds, or original ids); sections 5 and 6."""
    if not isinstance(seeds, Seeds):
        seeds = Seeds(list(seeds))
    if times is not None:
        seeds = replace(seeds, times=list(times))
    check_job(store, job)
    check_seeds(store, job, seeds)
    name = (store.relations[seed_relation(store, job)].name
            if job.kind == 'edge' else seed_type(store, job))
    batch = Batch(epoch, index, job.kind, name, seeds, job.trees,
                  seed_times(store, job, seeds))
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
    """For each node of the frontier its picks: (neighbour, edge_id, place)."""
    lists = list(builder.lists(builder.store.relations[number], frontier))
    picks = pick_slots(builder.domain(NEIGHBOUR, hop, number), frontier,
                       lists, fanout, builder.job.rule())
    return [[(slots.neighbours[s], slots.edge_ids[s], slots.places[s])
             for s in chosen] for slots, chosen in zip(lists, picks)]


def induce(builder):
    """All admissible edges between the batch's nodes, as of hop 0."""
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
