#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `millrace` with the oracle, to the last bit.

Makes datasets and stores (some with `millrace import` and `partition`, some
with the oracle's own writer), runs a matrix of jobs on both, and prints every
difference and the number of comparisons. Exit status: 0 all equal, 1 not, or
nothing compared.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import oracle
from store import OracleError, Store
from store_writer import Edges, Nodes, homogeneous, write_store

PARTS = (1, 2, 3, 7)
METHODS = ('metis', 'ldg', 'random', 'hash')


class Comparison:
    def __init__(self, millrace):
        self.millrace = millrace
        self.count = self.differences = 0
        self.stores = {}

    def run_millrace(self, *args):
        return subprocess.run([self.millrace, *args], text=True, check=False,
                              capture_output=True)

    def make(self, *args):
        """Runs a command that must succeed."""
        done = self.run_millrace(*args)
        if done.returncode:
            raise SystemExit(f'millrace {" ".join(args)}\n{done.stderr}')

    def run_oracle(self, args):
        """What the oracle prints, or its error."""
        args = oracle.parse_args(args)
        if args.store not in self.stores:
            self.stores[args.store] = Store(args.store)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                oracle.run(args, self.stores[args.store])
            except OracleError as error:
                return None, str(error)
        return out.getvalue(), ''

    def compare(self, command, store, job, *more):
        """One comparison; returns what both printed, or None."""
        args = [command, '--store', store, *job, *more]
        expected, error = self.run_oracle(args)
        done = self.run_millrace(*args)
        self.count += 1
        if expected is None:  # both refuse
            difference = (f'oracle refuses: {error}; millrace does not'
                          if done.returncode == 0 else '')
        elif done.returncode:
            difference = f'exit {done.returncode}: {done.stderr.strip()}'
        elif command == 'sample':
            difference = first_difference(json.loads(done.stdout),
                                          json.loads(expected))
        else:
            difference = first_line(done.stdout, expected)
        if difference:
            self.differences += 1
            print(f'DIFFERENT: {" ".join(args)}\n  {difference}', flush=True)
            if command == 'digest':
                self.explain(store, job, difference, *more)
            return None
        return expected

    def explain(self, store, job, difference, *more):
        """Looks for the difference behind a digest's."""
        words = difference.split()
        if words[0] != 'line':
            return
        epoch = more[more.index('--epoch') + 1]
        args = ['sample', '--store', store, *job, '--epoch', epoch, '--batch',
                words[1], '--with-features', '--json']
        expected, _ = self.run_oracle(args)
        done = self.run_millrace(*args)
        if done.returncode or expected is None:
            print(f'  sample: {done.stderr.strip()}')
            return
        found = first_difference(json.loads(done.stdout),
                                 json.loads(expected))
        print(f'  batch {words[1]}: {found or "samples agree"}', flush=True)


def first_line(got, expected):
    lines, others = got.splitlines(), expected.splitlines()
    for i, (a, b) in enumerate(zip(lines, others)):
        if a != b:
            return f'line {i} is {a!r}, oracle {b!r}'
    if len(lines) != len(others):
        return f'{len(lines)} lines, oracle {len(others)}'
    return ''


def first_difference(got, expected, path=''):
    """Where two JSON values differ first; numbers as float32 if not whole."""
    if isinstance(got, dict) and isinstance(expected, dict):
        if set(got) != set(expected):
            return f'{path or "/"} has {list(got)}, oracle {list(expected)}'
        pairs = [(k, got[k], expected[k]) for k in expected]
    elif isinstance(got, list) and isinstance(expected, list):
        if len(got) != len(expected):
            return (f'{path} has {len(got)} elements, oracle '
                    f'{len(expected)}: {got[:20]} and {expected[:20]}')
        pairs = list(zip(range(len(got)), got, expected))
    else:
        equal = got == expected
        if isinstance(got, float) or isinstance(expected, float):
            equal = (None not in (got, expected) and
                     np.float32(got) == np.float32(expected))
        return '' if equal else f'{path} is {got}, oracle {expected}'
    for key, a, b in pairs:
        found = first_difference(a, b, f'{path}/{key}')
        if found:
            return found
    return ''


# Jobs. Each is a list of options that both programs take.

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


def jobs(extra, batch_size):
    """COMMON in both directions."""
    for direction in ('in', 'out'):
        for job in COMMON:
            size = [] if '--batch-size' in job else ['--batch-size',
                                                     str(batch_size)]
            yield [*job, *size, '--direction', direction, *extra]


def seeds_jobs(folder, name, count, extra):
    """Jobs over a seeds file with duplicates, in no order."""
    rng = np.random.default_rng(count)
    path = os.path.join(folder, f'{name}-seeds.npy')
    np.save(path, rng.integers(0, count, 23))
    for more in ([], ['--disjoint'], ['--no-shuffle', '--drop-last'],
                 ['--seed-order', 'local']):
        yield ['--fanouts', '2,3', '--batch-size', '5', '--seeds-file', path,
               *more, *extra]


def compare_stores(comparison, stores, job_list, count, batches):
    """All jobs on all stores of one dataset."""
    rng = np.random.default_rng(count)
    for job in job_list:
        totals = set()
        for store in stores:
            for epoch in ('0', '3'):
                printed = comparison.compare('digest', store, job, '--epoch',
                                             epoch, '--batches', str(batches))
                if printed and epoch == '0':
                    totals.add(printed)
            comparison.compare('sample', store, job, '--epoch', '1',
                               '--batch', '0', '--with-features', '--json')
            ids = rng.integers(0, count, 4).tolist()
            comparison.compare('sample', store, job, '--epoch', '9',
                               '--batch', '70000', '--json', '--seed-ids',
                               ','.join(map(str, ids + ids[:2])))
        if len(totals) > 1 and 'local' not in job:
            comparison.differences += 1
            print(f'DIFFERENT: {job} depends on the store: {stores}')


def partition(comparison, dataset):
    """The dataset and its stores of 1, 2, 3 and 7 partitions."""
    stores = [dataset]
    for parts, method in zip(PARTS, METHODS):
        stores.append(f'{dataset}-{parts}')
        comparison.make('partition', dataset, '--parts', str(parts), '--out',
                        stores[-1], '--method', method, '--directions',
                        'both')
    return stores


def write_parts(folder, name, nodes, relations):
    """The same by the oracle's own writer."""
    stores = []
    for parts in PARTS:
        stores.append(os.path.join(folder, f'{name}-{parts}'))
        write_store(stores[-1], nodes, relations, parts, seed=parts)
    return stores


def save(folder, name, values):
    path = os.path.join(folder, name + '.npy')
    np.save(path, values)
    return path


# Datasets. Each yields (stores, extra options, nodes of the seeds' type).

def cora(comparison, folder, source):
    dataset = os.path.join(folder, 'cora')
    comparison.make('import', 'ogb', source, '--split', 'public',
                    '--undirected', '--coalesce', '--out', dataset)
    yield partition(comparison, dataset), [], 2708


def generated(comparison, folder):
    """Multi-edges, self loops, isolated nodes, edge features; by import."""
    rng = np.random.default_rng(11)
    count, size = 200, 900
    edges = rng.integers(0, 120, (2, size))
    edges[:, 100:140] = edges[:, 60:100]          # multi-edges
    edges[1, 140:170] = edges[0, 140:170]         # self loops
    edges[1, 170:400] = 5                         # a hub
    order = rng.permutation(count)
    dataset = os.path.join(folder, 'generated')
    comparison.make(
        'import', 'npy', '--edges', save(folder, 'edges', edges),
        '--features', save(folder, 'x', rng.standard_normal((count, 5), 'f')),
        '--labels', save(folder, 'y', rng.integers(0, 4, count)),
        '--edge-features', save(folder, 'e',
                                rng.standard_normal((size, 3), 'f')),
        '--train', save(folder, 'train', order[:101]),
        '--valid', save(folder, 'valid', order[101:130]),
        '--test', save(folder, 'test', order[130:]), '--out', dataset)
    stores = partition(comparison, dataset)
    yield stores, ['--edge-features'], count
    yield stores[:3], ['--split', 'valid'], count


def heterogeneous(comparison, folder):
    """Three types, two relations of one pair; by import."""
    rng = np.random.default_rng(12)
    counts = {'user': 60, 'item': 90, 'tag': 25}
    relations = {'user__buys__item': 400, 'user__sees__item': 150,
                 'item__bought__user': 400, 'item__has__tag': 200,
                 'user__knows__user': 180}
    args = []
    for name, size in relations.items():
        src, _, dst = name.split('__')
        ends = [rng.integers(0, counts[t], size) for t in (src, dst)]
        args += ['--edges', f'{name}={save(folder, name, np.array(ends))}']
    for name, width in (('user', 3), ('item', 2), ('tag', 1)):
        x = rng.standard_normal((counts[name], width), 'f')
        args += ['--features', f'{name}={save(folder, "x" + name, x)}']
    labels = save(folder, 'yuser', rng.integers(0, 3, counts['user']))
    dataset = os.path.join(folder, 'heterogeneous')
    comparison.make('import', 'npy', *args, '--labels', f'user={labels}',
                    '--split-fractions', '0.7,0.2,0.1', '--out', dataset)
    stores = partition(comparison, dataset)
    yield stores, ['--type', 'user'], counts['user']
    yield stores[::2], ['--type', 'user', '--fanouts',
                        'user__buys__item=2', '--fanouts',
                        'item__bought__user=-1'], counts['user']


def written(folder):
    """Stores by the oracle's writer: bfloat16, labels with NaN and of two
    dimensions, times, weights, a type without edges, empty partitions."""
    rng = np.random.default_rng(13)
    graph = homogeneous(
        30, rng.integers(0, 25, (120, 2)),
        label=np.where(rng.random(30) < .3, np.nan, 1).astype('<f4'),
        time=rng.integers(0, 9, 30), edge_weight=rng.random(120, '<f4'),
        splits={'train': rng.permutation(30)[:20]})
    yield write_parts(folder, 'timed', *graph), [], 30
    nodes = {'a': Nodes(4, label=rng.integers(0, 2, (4, 3)),
                        splits={'train': [0, 2, 3]}),
             'b': Nodes(40, feature=rng.integers(0, 2**14, (40, 2), '<u2'),
                        feature_dtype='bfloat16',
                        time=rng.integers(0, 5, 40)),
             'alone': Nodes(3, feature=np.ones((3, 1), '<f2'))}
    relations = [
        Edges(s, n, d, rng.integers(0, nodes[s].count, size),
              rng.integers(0, nodes[d].count, size),
              feature=rng.standard_normal((size, 2)))
        for s, n, d, size in (('a', 'p', 'b', 50), ('b', 'q', 'a', 60),
                              ('b', 'r', 'b', 90), ('a', 'p2', 'b', 0))]
    extra = ['--type', 'a', '--edge-features']
    yield write_parts(folder, 'typed', nodes, relations), extra, 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--millrace', required=True, help='the program')
    parser.add_argument('--cora', default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), '../data/cora'))
    parser.add_argument('--store', action='append', default=[],
                        help='compares these stores of one dataset instead')
    parser.add_argument('--type', default='', help='node type of the seeds')
    parser.add_argument('--batches', type=int, default=3)
    parser.add_argument('--edge-features', action='store_true',
                        help='of stores that have them; millrace refuses '
                        'jobs with edge features so far')
    args = parser.parse_args()
    comparison = Comparison(args.millrace)
    with tempfile.TemporaryDirectory() as folder:
        if args.store:
            node_type = args.type or Store(args.store[0]).types[0].name
            count = Store(args.store[0]).by_name[node_type].count
            cases = [[(args.store, ['--type', node_type], count)]]
        else:
            cases = [written(folder), generated(comparison, folder),
                     heterogeneous(comparison, folder),
                     cora(comparison, folder, args.cora)]
        for case in cases:
            for i, (stores, extra, count) in enumerate(case):
                if not args.edge_features:
                    extra = [x for x in extra if x != '--edge-features']
                name = f'{os.path.basename(stores[0])}{i}'
                fanouts = '--fanouts' in extra
                job_list = [*jobs(extra, max(3, count // 23))]
                job_list += seeds_jobs(folder, name, count, extra)
                if fanouts:  # per relation: as many hops as they name
                    job_list = [j for j in job_list
                                if ',' not in j[j.index('--fanouts') + 1]]
                compare_stores(comparison, stores, job_list, count,
                               args.batches)
                print(f'{stores[0]}: {comparison.count} comparisons so far, '
                      f'{comparison.differences} differences', flush=True)
    print(f'{comparison.count} comparisons, '
          f'{comparison.differences} differences')
    return int(comparison.differences > 0 or comparison.count == 0)


if __name__ == '__main__':
    sys.exit(main())
