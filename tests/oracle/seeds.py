# SPDX-License-Identifier: Apache-2.0
"""Which seeds a batch holds: docs/determinism.md, section 4."""

from draws import INTERLEAVE, SHUFFLE, Domain, permute
from job import seed_type
from store import OracleError


class SeedPlan:
    """The batches of an epoch."""

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


def seed_times(store, job, type_name, seeds, given=None):
    """The times of the seeds' trees; None: the job is not temporal."""
    if not job.temporal:
        if given is not None:
            raise OracleError('--seed-times: the job is not temporal')
        return None
    if given is not None:
        if len(given) != len(seeds):
            raise OracleError(f'--seed-times: {len(given)} of {len(seeds)}')
        return list(given)
    own = store.node_rows(store.by_name[type_name], 'time', seeds)
    if own is None:
        raise OracleError(f'--temporal {job.temporal}: {type_name} has no '
                          'times and none were given')
    return own[1].tolist()
