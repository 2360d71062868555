# SPDX-License-Identifier: Apache-2.0
"""Which seeds a batch contains: docs/determinism.md, section 4."""

from dataclasses import dataclass

import numpy as np

from draws import INTERLEAVE, SHUFFLE, Domain, permute
from job import seed_relation, seed_type
from store import OracleError


@dataclass
class Seeds:
    """Seeds in order; None for columns that they lack."""
    ids: list               # original ids; for pairs those of the sources
    times: list = None
    dst: list = None        # only for pairs, like everything below
    labels: tuple = None    # (dtype name, values as stored)
    edge_types: list = None
    negatives: list = None  # given negatives, a list per pair

    def __len__(self):
        return len(self.ids)

    def take(self, positions):
        def chosen(column):
            return column and [column[q] for q in positions]
        labels = self.labels and (self.labels[0], self.labels[1][positions])
        return Seeds(chosen(self.ids), chosen(self.times), chosen(self.dst),
                     labels, chosen(self.edge_types), chosen(self.negatives))


class SeedPlan:
    """The batches of an epoch."""

    def __init__(self, store, job):
        self.job = job
        self.all = all_seeds(store, job)
        check_seeds(store, job, self.all)
        self.groups = [list(range(len(self.all)))]  # numbers of seeds
        if job.seed_order == 'local':
            self.groups = [[] for _ in range(store.parts)]
            for i, part in enumerate(owners(store, job, self.all)):
                self.groups[part].append(i)
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
        return self.all.take([group[q] for q in positions])


def all_seeds(store, job):
    """The seeds of a split or of a seeds file."""
    if job.seeds_file is not None:
        if job.seed_order == 'local':
            raise OracleError('--seeds-file: --seed-order is global')
        return file_seeds(job)
    if job.kind != 'edge':
        return Seeds(store.split(seed_type(store, job), job.split).tolist())
    relation = store.relations[seed_relation(store, job)]
    split = {name: values if name == 'label' else values.tolist()
             for name, values in store.edge_split(relation,
                                                  job.split).items()}
    return Seeds(split['src'], split.get('time'), split['dst'],
                 split.get('label'), split.get('edge_type'),
                 split.get('negative'))


def file_seeds(job):
    """Ids, or pairs of ids, each followed by a time or not."""
    values = np.asarray(job.seeds_file)
    width = 2 if job.kind == 'edge' else 1
    rows = values.reshape(len(values), -1)
    if rows.shape[1] not in (width, width + 1):
        raise OracleError(f'--seeds-file: {rows.shape[1]} columns, expected '
                          f'{width} or, with times, {width + 1}')
    columns = rows.T.tolist()
    times = columns[width] if len(columns) > width else None
    return Seeds(columns[0], times, columns[1] if width == 2 else None)


def owners(store, job, seeds):
    """The partitions to which seeds belong."""
    if job.kind != 'edge':
        return store.by_name[seed_type(store, job)].owners(seeds.ids)
    relation = store.relations[seed_relation(store, job)]
    return store.by_name[relation.dst].owners(seeds.dst)


def check_seeds(store, job, seeds):
    """Refuses ids that the types do not have, and columns of other lengths."""
    if job.kind == 'edge':
        relation = store.relations[seed_relation(store, job)]
        if seeds.dst is None or len(seeds.dst) != len(seeds):
            raise OracleError(f'--seed-dst-ids: {len(seeds.dst or [])} of '
                              f'{len(seeds)}')
        check_ids(store, relation.src, seeds.ids)
        check_ids(store, relation.dst, seeds.dst)
        check_ids(store, relation.dst, sum(seeds.negatives or [], []))
    elif seeds.dst is not None:
        raise OracleError('--seed-dst-ids: of --seeds edge')
    else:
        check_ids(store, seed_type(store, job), seeds.ids)
    if seeds.times is not None and len(seeds.times) != len(seeds):
        raise OracleError(f'--seed-times: {len(seeds.times)} of '
                          f'{len(seeds)}')


def check_ids(store, type_name, ids):
    count = store.by_name[type_name].count
    for i, v in enumerate(ids):
        if not 0 <= v < count:
            raise OracleError(f'seed {i} is {v}: {type_name} has {count} '
                              'nodes')


def seed_times(store, job, seeds):
    """The times of the seeds; None if they have none, or need none.

    Pairs keep theirs even if the job is not temporal, because excluded edges
    depend on them."""
    if job.kind == 'edge':
        if job.temporal and seeds.times is None:
            raise OracleError(f'--temporal {job.temporal}: the pairs have no '
                              'times')
        return seeds.times
    if not job.temporal:
        if seeds.times is not None:
            raise OracleError('--seed-times: the job is not temporal')
        return None
    if seeds.times is not None:
        return seeds.times
    type_name = seed_type(store, job)
    own = store.node_rows(store.by_name[type_name], 'time', seeds.ids)
    if own is None:
        raise OracleError(f'--temporal {job.temporal}: {type_name} has no '
                          'times and none were given')
    return own[1].tolist()
