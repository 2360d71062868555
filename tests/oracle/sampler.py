# SPDX-License-Identifier: Apache-2.0
"""Batches: docs/determinism.md, sections 3 to 5."""

from dataclasses import dataclass, field

from draws import (INTERLEAVE, NEIGHBOUR, SHUFFLE, Domain, permute,
                   pick_slots)
from store import OracleError


@dataclass
class Job:
    type: str = ''
    split: str = 'train'
    seeds_file: object = None  # original ids, in order
    fanouts: list = field(default_factory=list)
    relation_fanouts: dict = field(default_factory=dict)
    batch_size: int = 1024
    seed: int = 1
    shuffle: bool = True
    seed_order: str = 'global'
    drop_last: bool = False
    replace: bool = False
    disjoint: bool = False
    direction: str = 'in'
    features: bool = True
    edge_features: bool = False


@dataclass
class Batch:
    epoch: int
    index: int
    seed_type: str
    disjoint: bool
    seeds: list
    seed_to_local: list = field(default_factory=list)
    nodes: dict = field(default_factory=dict)  # type: [(tree, original id)]
    edges: dict = field(default_factory=dict)  # relation: [Edge]


@dataclass
class Edge:
    hop: int
    src: int
    dst: int
    edge_id: int
    place: tuple  # of its feature row


def seed_type(store, job):
    if not job.type and len(store.types) == 1:
        return store.types[0].name
    if job.type not in store.by_name:
        raise OracleError(f'--type {job.type!r}: the store has the types '
                          f'{", ".join(store.by_name)}')
    return job.type


class SeedPlan:
    """Which seeds a batch of an epoch holds: section 4."""

    def __init__(self, store, job):
        self.job = job
        name = seed_type(store, job)
        if job.seeds_file is not None:
            if job.seed_order == 'local':
                raise OracleError('--seeds-file: --seed-order is global')
            seeds = [int(v) for v in job.seeds_file]
        else:
            seeds = store.split(name, job.split).tolist()
        check_seeds(store, name, seeds)
        self.groups = [seeds]
        if job.seed_order == 'local':
            self.groups = [[] for _ in range(store.parts)]
            for v in seeds:
                self.groups[store.by_name[name].locate(v)[0]].append(v)
        size = job.batch_size
        spare = 0 if job.drop_last else size - 1
        self.batches = [(p, i) for p, group in enumerate(self.groups)
                        for i in range((len(group) + spare) // size)]

    def seeds(self, epoch, batch):
        job, local = self.job, self.job.seed_order == 'local'
        if not 0 <= batch < len(self.batches):
            raise OracleError(f'batch {batch}: an epoch has '
                              f'{len(self.batches)}')
        if local and job.shuffle:
            key = Domain(job.seed, epoch, 0, INTERLEAVE).key()
            batch = permute(key, len(self.batches), batch)
        part, index = self.batches[batch]
        group, size = self.groups[part], job.batch_size
        positions = range(index * size, min(len(group), (index + 1) * size))
        if job.shuffle:
            key = Domain(job.seed, epoch, 0, SHUFFLE, 1 if local else 0,
                         part).key()
            positions = [permute(key, len(group), q) for q in positions]
        return [group[q] for q in positions]


def check_seeds(store, type_name, seeds):
    count = store.by_name[type_name].count
    for i, v in enumerate(seeds):
        if not 0 <= v < count:
            raise OracleError(f'seed {i} is {v}: {type_name} has {count} '
                              'nodes')


def relation_fanouts(store, job):
    """Per relation its fanouts, all of the same length."""
    names = [r.name for r in store.relations]
    for name in job.relation_fanouts:
        if name not in names:
            raise OracleError(f'--fanouts {name}: the store has the '
                              f'relations {", ".join(names)}')
    lists = {n: job.relation_fanouts.get(n, job.fanouts) for n in names}
    hops = max([len(f) for f in lists.values()], default=0)
    for name, fanouts in lists.items():
        if fanouts and len(fanouts) != hops:
            raise OracleError(f'--fanouts {name}: {len(fanouts)} hops, '
                              f'others have {hops}')
    return hops, {n: f or [0] * hops for n, f in lists.items()}


def sample(store, job, epoch, index, seeds):
    """The batch around `seeds` (original ids); section 5."""
    type_name = seed_type(store, job)
    check_seeds(store, type_name, seeds)
    hops, fanouts = relation_fanouts(store, job)
    batch = Batch(epoch, index, type_name, job.disjoint, list(seeds))
    batch.nodes = {t.name: [] for t in store.types}
    batch.edges = {r.name: [] for r in store.relations}
    local = {t.name: {} for t in store.types}  # (tree, original id): local id

    def local_id(name, node):
        if node not in local[name]:
            local[name][node] = len(batch.nodes[name])
            batch.nodes[name].append(node)
        return local[name][node]

    for i, v in enumerate(seeds):
        node = (i if job.disjoint else 0, v)
        batch.seed_to_local.append(local_id(type_name, node))

    begin = {t.name: 0 for t in store.types}
    for hop in range(hops):
        end = {name: len(nodes) for name, nodes in batch.nodes.items()}
        for number, relation in enumerate(store.relations):
            fanout = fanouts[relation.name][hop]
            if fanout == 0:
                continue
            owner, other = relation.ends(job.direction)
            frontier = batch.nodes[owner][begin[owner]:end[owner]]
            domain = Domain(job.seed, epoch, index, NEIGHBOUR, hop, number)
            lists = [store.neighbours(relation, job.direction, v)
                     for _, v in frontier]
            picks = pick_slots(domain, [v for _, v in frontier],
                               [t for t, _ in frontier],
                               [len(n) for n in lists], fanout, job.replace)
            for i, (tree, _) in enumerate(frontier):
                for slot in picks[i]:
                    neighbour, edge_id, place = lists[i][slot]
                    here = begin[owner] + i
                    there = local_id(other, (tree, neighbour))
                    src, dst = ((there, here) if job.direction == 'in' else
                                (here, there))
                    batch.edges[relation.name].append(
                        Edge(hop, src, dst, edge_id, place))
        begin = end
    return batch
