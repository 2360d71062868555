# SPDX-License-Identifier: Apache-2.0
"""The jobs that compare.py runs: lists of options that both programs take."""

import os
from dataclasses import dataclass

import numpy as np


@dataclass
class Job:
    options: list
    refused: bool = False  # whether both programs must refuse it
    explicit: bool = False  # whether its seeds are among the options
    times: bool = False  # whether its seeds have times
    everywhere: bool = False  # whether to run it on all stores

    @property
    def local(self):
        return 'local' in self.options

    @property
    def temporal(self):
        return '--temporal' in self.options

    @property
    def pairs(self):
        return '--seeds' in self.options and 'edge' in self.options


# Options for node-wise sampling.
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
INDUCTIVE = ['--train-graph', 'induced:train']
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
BIASED = [
    ['--walks', '2', '--walk-length', '6', '--walk-p', '0.25', '--walk-q',
     '4'],
    ['--walks', '3', '--walk-length', '5', '--walk-p', '1000', '--walk-q',
     '0.3', '--disjoint'],
    ['--walks', '1', '--walk-length', '9', '--walk-p', '0.001',
     '--seed-order', 'local'],
    ['--walks', '2', '--walk-length', '4', '--walk-q', '1.7', *INDUCTIVE],
    ['--walks', '2', '--walk-length', '3', '--walk-p', '1', '--walk-q', '1'],
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
    """What a dataset offers for the kinds of sampling."""
    weights: bool = False
    times: bool = False         # whether lists and the seeds' type have times
    edge_features: bool = False
    one_relation: bool = False  # only one, which joins a type to itself
    loop: str = ''              # else one from the seeds' type to itself
    paths: tuple = ('', '')     # metapaths over in-lists and over out-lists

    def jobs(self, extra, batch_size):
        for direction, path in zip(('in', 'out'), self.paths):
            tail = ['--direction', direction, *extra, '--batch-size',
                    str(batch_size)]
            for i, job in enumerate(self.of(path)):
                yield Job([*job, *tail])
                if i % 3 == 0:
                    yield Job([*job, *tail, *INDUCTIVE])
        yield Job(['--fanouts', '2', '--seed-ids', '1,2', '--seed-times',
                   '3,4', *extra], refused=True, explicit=True)
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
        around_loop = [] if self.one_relation else ['--metapath', self.loop]
        biased = [['--method', 'walk', *w, *around_loop] for w in BIASED
                  if self.one_relation or self.loop]
        features = ['--edge-features'] if self.edge_features else []
        result = [*PLAIN, *walks, *biased]
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
        yield ['--fanouts', '2', '--train-graph', 'induced:none']
        yield ['--fanouts', '2', *LABOR, '--replace']
        yield ['--fanouts', '2', *walk, '3']
        yield [*walk, '3', '--replace']
        yield [*PAGE_RANK[0], '--replace']
        yield [*walk, '256']
        yield ['--fanouts', '2', '--walk-p', '2']
        yield [*PAGE_RANK[0], '--walk-q', '2']
        yield [*walk, '3', '--walk-p', '0']
        yield [*walk, '3', '--walk-q', '1001']
        yield [*walk, '3', '--metapath', 'no__such__relation']
        yield ['--method', 'walk', '--walks', '1048576', '--walk-length', '3']
        yield ['--fanouts', '2', *PAGE_RANK[0][2:], '--disjoint']
        yield ['--fanouts', '2', *PPR, '2', '--walk-length', '257',
               '--restart', '0.5']
        yield ['--fanouts', '2', *PPR, '2', '--walk-length', '2',
               '--restart', '1.5']
        if self.weights:
            yield ['--fanouts', '2', *LABOR, '--weighted']
            yield [*walk, '3', '--weighted', '--walk-p', '2']
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


MODES = [[], ['--split', 'given'], ['--negatives', 'binary:1.5'],
         ['--negatives', 'triplet:2'], ['--negatives', 'shared:5'],
         ['--negatives', 'in-batch']]
EXCLUDED = [['--exclude-seed-edges', e] for e in ('reverse', 'self', 'none')]
AROUND_PAIRS = [
    ['--fanouts', '3,2'],
    ['--fanouts', '2,-1', '--disjoint'],
    ['--fanouts', '6,4', '--replace', '--no-shuffle'],
    ['--fanouts', '2,2', '--seed-order', 'local'],
    ['--fanouts', '3,2', *LABOR],
    ['--fanouts', '2', *INDUCED],
    [*INDUCED, '--disjoint', '--drop-last'],
]
AROUND_PAIRS_WEIGHTED = [
    ['--fanouts', '3,2', '--weighted'],
    ['--fanouts', '4,2', '--weighted', '--replace', '--disjoint'],
]
AROUND_PAIRS_TEMPORAL = [
    ['--fanouts', '3,2', '--temporal', 'uniform'],
    ['--fanouts', '3,-1', '--temporal', 'last'],
    ['--fanouts', '3,2', '--temporal', 'uniform', *LABOR],
    ['--temporal', 'uniform', *INDUCED],
]


@dataclass
class Pairs:
    """What a dataset offers for pairs as seeds: for each relation the splits
    `train`, with times, and `given`, with negatives; or no splits."""
    relations: dict             # name: numbers of sources and destinations
    weights: bool = False
    times: bool = False
    one_relation: bool = False  # only one, which joins a type to itself
    splits: list = ()           # splits in addition to those two
    files: list = ()            # seeds files with times, instead of splits

    def jobs(self, extra, batch_size):
        around = AROUND_PAIRS + (AROUND_PAIRS_WEIGHTED if self.weights else [])
        if self.times:
            around = around + AROUND_PAIRS_TEMPORAL
        if self.one_relation:
            around = around + PAGE_RANK[:1]
        names, number = list(self.relations), 0
        for i, job in enumerate(around):
            for j, mode in enumerate(self.modes(job)):
                number += 1
                seeds = ['--seeds', 'edge', '--type',
                         names[number % len(names)]]
                excluded = EXCLUDED[(i + j) % 3]
                yield Job([*seeds, *job, *mode, *excluded,
                           *extra, '--batch-size', str(batch_size),
                           '--direction', ('in', 'out')[(i + j // 2) % 2]])
        for split in self.splits:
            yield Job(['--seeds', 'edge', '--type', names[0], '--split',
                       split, '--fanouts', '2'])
        yield from self.refusals(names[0])

    def modes(self, job):
        trees = {'--disjoint', '--temporal'} & set(job)
        for mode in MODES:
            if 'shared:5' in mode and trees:
                continue
            if not self.files:
                yield mode
            elif '--split' not in mode and '--seed-order' not in job:
                yield [*mode, '--seeds-file', self.files['--temporal' in job]]

    def refusals(self, name):
        fanouts = ['--fanouts', '2']
        edge = ['--seeds', 'edge', '--type', name, *fanouts]
        if self.files:
            edge += ['--seeds-file', self.files[0]]
        for more in (['--negatives', 'shared:2', '--disjoint'],
                     ['--negatives', 'binary:0'], ['--negatives', 'triplet'],
                     ['--negatives', 'shared:1.5'],
                     ['--negatives', 'in-batch:2']):
            yield Job([*edge, *more], refused=True)
        walk = ['--method', 'walk', '--walks', '1', '--walk-length', '2']
        yield Job([*edge[:4], *walk], refused=True)
        for more in (['--type', 'no__such__relation'], ['--split', 'none'],
                     ['--seeds', 'node', '--type', name.split('__')[0],
                      '--negatives', 'in-batch']):
            yield Job([*edge[:2], *fanouts, *more], refused=True)
        for more in (['--seed-ids', '1'],
                     ['--seed-ids', '1', '--seed-dst-ids', '1,2'],
                     ['--seed-ids', '1', '--seed-dst-ids', '100000'],
                     ['--seed-ids', '-1', '--seed-dst-ids', '1'],
                     ['--seed-ids', '1', '--seed-dst-ids', '1',
                      '--seed-times', '1,2']):
            yield Job([*edge[:6], *more], refused=True, explicit=True)
        if self.times:
            for more in (['--seed-ids', '1', '--seed-dst-ids', '1'],
                         ['--split', 'bare']):
                yield Job([*edge[:6], *more, '--temporal', 'last'],
                          refused=True, explicit='bare' not in more)


def timed_seeds_jobs(folder, name, count, time_unit, extra):
    """Jobs over a seeds file with times."""
    rng = np.random.default_rng(count + 1)
    path = os.path.join(folder, f'{name}-timed-seeds.npy')
    np.save(path, np.stack([rng.integers(0, count, 23),
                            rng.integers(-3, 12, 23) * time_unit], 1))
    seeds = ['--fanouts', '2,3', '--batch-size', '5', '--seeds-file', path]
    for more in (['--temporal', 'uniform'], ['--temporal', 'last'],
                 ['--temporal', 'last', *INDUCED, '--no-shuffle']):
        yield Job([*seeds, *more, *extra], times=True)
    yield Job([*seeds, *extra], refused=True)


def graph_jobs(extra, batch_size):
    graphs = ['--seeds', 'graph', *extra, '--batch-size', str(batch_size)]
    for more in ([], ['--disjoint'], ['--no-shuffle', '--drop-last'],
                 ['--replace'], ['--seed-order', 'local']):
        yield Job([*graphs, *more], everywhere=True)
    for more in (['--fanouts', '2'], ['--direction', 'out'], INDUCED, LABOR,
                 INDUCTIVE,
                 ['--weighted'], ['--temporal', 'last'],
                 ['--negatives', 'in-batch'],
                 ['--exclude-seed-edges', 'self'], ['--type', 'none']):
        yield Job([*graphs, *more], refused=True)
    yield Job([*graphs, '--seed-ids', '100000'], refused=True, explicit=True)


def common_jobs(extra, batch_size):
    """COMMON in both directions."""
    for direction in ('in', 'out'):
        for job in COMMON:
            size = [] if '--batch-size' in job else ['--batch-size',
                                                     str(batch_size)]
            yield Job([*job, *size, '--direction', direction, *extra],
                      everywhere=True)


def seeds_jobs(folder, name, count, extra):
    """Jobs over a seeds file with duplicates, in arbitrary order."""
    rng = np.random.default_rng(count)
    path = os.path.join(folder, f'{name}-seeds.npy')
    np.save(path, rng.integers(0, count, 23))
    for more in ([], ['--disjoint'], ['--no-shuffle', '--drop-last'],
                 ['--seed-order', 'local']):
        yield Job(['--fanouts', '2,3', '--batch-size', '5', '--seeds-file',
                   path, *more, *extra], 'local' in more, everywhere=True)
