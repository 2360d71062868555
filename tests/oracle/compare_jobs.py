# SPDX-License-Identifier: Apache-2.0
"""The jobs that compare.py runs: lists of options that both programs take."""

import os
from dataclasses import dataclass

import numpy as np


@dataclass
class Job:
    options: list
    refused: bool = False  # whether both programs must refuse it
    everywhere: bool = False  # samples on all stores, not on one in turn

    @property
    def local(self):
        return 'local' in self.options

    @property
    def temporal(self):
        return '--temporal' in self.options


# Of node-wise sampling.
COMMON = [
    ['--fanouts', '3,2'],
    ['--fanouts', '-1,2'],
    ['--fanouts', '2,-1', '--seed', '18446744073709551615'],
    ['--fanouts', '2,0,-1', '--no-shuffle'],
    ['--fanouts', '0', '--drop-last'],
    ['--fanouts', '15,10', '--replace'],
    ['--fanouts', '-1,3', '--replace', '--disjoint'],
    ['--fanouts', '4,3', '--disjoint'],
    ['--fanouts', '1,1,1', '--drop-last', '--seed', '77'],
    ['--fanouts', '5', '--no-features', '--batch-size', '1000000'],
    ['--fanouts', '2,2', '--seed-order', 'local'],
    ['--fanouts', '2', '--seed-order', 'local', '--drop-last'],
    ['--fanouts', '2', '--seed-order', 'local', '--no-shuffle'],
]

LABOR = ['--method', 'labor']
INDUCED = ['--method', 'induced']
PPR = ['--method', 'ppr', '--walks']
PLAIN = [
    ['--fanouts', '3,2', *LABOR],
    ['--fanouts', '2,0,-1', *LABOR, '--no-shuffle'],
    ['--fanouts', '4,3', *LABOR, '--disjoint'],
    ['--fanouts', '60', *LABOR],
    ['--fanouts', '1,1,1', *LABOR, '--seed-order', 'local'],
    [*INDUCED],
    ['--fanouts', '3,2', *INDUCED],
    ['--fanouts', '2,2', *INDUCED, '--disjoint', '--replace'],
    ['--fanouts', '-1,1', *INDUCED, '--seed-order', 'local'],
]
WEIGHTED = [
    ['--fanouts', '3,2'],
    ['--fanouts', '-1,2'],
    ['--fanouts', '15,10', '--seed', '18446744073709551615'],
    ['--fanouts', '40,10', '--replace'],
    ['--fanouts', '2,-1', '--replace', '--disjoint', '--no-features'],
    ['--fanouts', '4,3', '--disjoint'],
    ['--fanouts', '3,2', *INDUCED],
]
TEMPORAL = [
    ['--fanouts', '3,2', '--temporal', 'uniform'],
    ['--fanouts', '3,2', '--temporal', 'last'],
    ['--fanouts', '1,1,1', '--temporal', 'last', '--seed-order', 'local'],
    ['--fanouts', '-1,2', '--temporal', 'uniform', '--no-shuffle'],
    ['--fanouts', '2,-1', '--temporal', 'last', '--disjoint'],
    ['--fanouts', '15,10', '--temporal', 'uniform', '--replace'],
    ['--fanouts', '3,2', '--temporal', 'uniform', *LABOR],
    ['--fanouts', '3,2', '--temporal', 'uniform', *INDUCED],
    ['--fanouts', '3,2', '--temporal', 'last', *INDUCED],
    ['--temporal', 'uniform', *INDUCED],
]
WEIGHTED_TEMPORAL = [
    ['--fanouts', '3,2', '--temporal', 'uniform'],
    ['--fanouts', '4,2', '--temporal', 'uniform', '--replace'],
    ['--fanouts', '2,-1', '--temporal', 'uniform', *INDUCED],
]
WALKS = [
    ['--walks', '2', '--walk-length', '5'],
    ['--walks', '1', '--walk-length', '1', '--seed-order', 'local'],
    ['--walks', '3', '--walk-length', '4', '--disjoint'],
]
PAGE_RANK = [
    ['--fanouts', '4,3', *PPR, '10', '--walk-length', '4', '--restart',
     '0.3'],
    ['--fanouts', '-1', *PPR, '5', '--walk-length', '6', '--restart', '0'],
    ['--fanouts', '2,0,2', *PPR, '3', '--walk-length', '3', '--restart',
     '1', '--no-shuffle'],
]


@dataclass
class Kinds:
    """What a dataset has for kinds of sampling."""
    weights: bool = False
    times: bool = False         # lists and the seeds' type have times
    edge_features: bool = False
    one_relation: bool = False  # of a type with itself
    loop: str = ''              # such a one of several, at the seeds' type
    paths: tuple = ('', '')     # metapaths by in-lists and by out-lists

    def jobs(self, extra, batch_size):
        for direction, path in zip(('in', 'out'), self.paths):
            tail = ['--direction', direction, *extra, '--batch-size',
                    str(batch_size)]
            yield from (Job([*job, *tail]) for job in self.of(path))
        refusals = [*self.refusals()]
        if not self.edge_features and '--edge-features' not in extra:
            refusals.append(['--fanouts', '2', '--edge-features'])
        yield from (Job([*job, *extra], refused=True) for job in refusals)

    def of(self, path):
        walks = [['--method', 'walk', *w, *(['--metapath', path] if path else
                                            [])] for w in WALKS]
        if not path and not self.one_relation:
            walks = []
        ranks = PAGE_RANK if self.one_relation else [
            [*r, '--metapath', self.loop] for r in PAGE_RANK if self.loop]
        features = ['--edge-features'] if self.edge_features else []
        result = [*PLAIN, *walks]
        if self.weights:
            result += [[*w, '--weighted'] for w in WEIGHTED + walks]
        if self.times:
            result += TEMPORAL
        if self.weights and self.times:
            result += [[*w, '--weighted'] for w in WEIGHTED_TEMPORAL]
        result = [[*job, *features] for job in result] + ranks
        if self.weights and ranks:
            result += [[*r, '--weighted'] for r in ranks[:1]]
        return result

    def refusals(self):
        walk = ['--method', 'walk', '--walks', '2', '--walk-length']
        yield ['--fanouts', '2', *LABOR, '--replace']
        yield ['--fanouts', '2', *walk, '3']
        yield [*walk, '3', '--replace']
        yield [*PAGE_RANK[0], '--replace']
        yield [*walk, '256']
        yield [*walk, '3', '--metapath', 'no__such__relation']
        yield ['--method', 'walk', '--walks', '1048576', '--walk-length', '3']
        yield ['--fanouts', '2', *PAGE_RANK[0][2:], '--disjoint']
        yield ['--fanouts', '2', *PPR, '2', '--walk-length', '257',
               '--restart', '0.5']
        yield ['--fanouts', '2', *PPR, '2', '--walk-length', '2',
               '--restart', '1.5']
        if self.weights:
            yield ['--fanouts', '2', *LABOR, '--weighted']
        else:
            yield ['--fanouts', '2', '--weighted']
        if self.times:
            yield ['--fanouts', '2', '--temporal', 'last', '--replace']
            yield ['--fanouts', '2', *LABOR, '--temporal', 'last']
            if self.weights:
                yield ['--fanouts', '2', '--temporal', 'last', '--weighted']
            yield [*walk, '3', '--temporal', 'uniform']
            yield ['--fanouts', '2', *PAGE_RANK[0][2:], '--temporal', 'last']
        else:
            yield ['--fanouts', '2', '--temporal', 'uniform']
        if not self.one_relation:
            yield PAGE_RANK[0]
        if self.edge_features and self.one_relation:
            yield [*PAGE_RANK[0], '--edge-features']


def common_jobs(extra, batch_size):
    """COMMON in both directions."""
    for direction in ('in', 'out'):
        for job in COMMON:
            size = [] if '--batch-size' in job else ['--batch-size',
                                                     str(batch_size)]
            yield Job([*job, *size, '--direction', direction, *extra],
                      everywhere=True)


def seeds_jobs(folder, name, count, extra):
    """Jobs over a seeds file with duplicates, in no order."""
    rng = np.random.default_rng(count)
    path = os.path.join(folder, f'{name}-seeds.npy')
    np.save(path, rng.integers(0, count, 23))
    for more in ([], ['--disjoint'], ['--no-shuffle', '--drop-last'],
                 ['--seed-order', 'local']):
        yield Job(['--fanouts', '2,3', '--batch-size', '5', '--seeds-file',
                   path, *more, *extra], 'local' in more, everywhere=True)
