#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real graphs give the same batches wherever they are made.

Imports and partitions the graphs of the folder MILLRACE_DATA, then compares the
digests of jobs made from the dataset, from stores with one and two threads, and
by fleets of server processes. One node-wise job, one of each kind of sampling,
and jobs around pairs of nodes are also compared with the oracle. What the
folder lacks is skipped, with a line that says why.

Exit status: 0 if all are equal, 77 if there is nothing to compare, 1
otherwise."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

from compare import Comparison
from store import Store

SKIPPED = 77
BATCHES = ['--epoch', '1', '--batches', '3']

WALK = ['--method', 'walk', '--walks', '2', '--walk-length', '5']
KINDS = [
    ['--method', 'labor'],
    ['--method', 'labor', '--direction', 'out', '--disjoint'],
    ['--method', 'induced'],
]


PAIRS = [
    ['--negatives', 'binary:1.5', '--exclude-seed-edges', 'reverse'],
    ['--negatives', 'triplet:2', '--exclude-seed-edges', 'self',
     '--disjoint', '--direction', 'out'],
    ['--negatives', 'shared:30', '--exclude-seed-edges', 'reverse',
     '--method', 'labor'],
    ['--negatives', 'in-batch', '--method', 'induced'],
]


@dataclass
class Graph:
    """Options of the import, of every job, of jobs with fanouts, and jobs."""
    import_options: list
    options: list
    fanouts: str
    kinds: list     # jobs that also get the fanouts
    walks: list
    relation: str   # whose pairs are seeds
    pairs: list     # jobs around pairs, which have times

    def around_pairs(self, seeds_file):
        seeds = ['--seeds', 'edge', '--type', self.relation, '--seeds-file',
                 seeds_file, '--batch-size', '50', '--fanouts', self.fanouts]
        return [[*seeds, *job] for job in PAIRS + self.pairs]

    def node_wise(self):
        return [[*self.options, '--fanouts', self.fanouts, *job]
                for job in JOBS]

    def others(self):
        return [[*self.options, '--fanouts', self.fanouts, *job]
                for job in KINDS + self.kinds] + [
                    [*self.options, *job] for job in self.walks]


GRAPHS = {
    'arxiv': Graph(
        ['--split', 'time', '--undirected', '--coalesce'],
        ['--batch-size', '200'], '10,5', [
            ['--temporal', 'uniform'],
            ['--temporal', 'last', '--direction', 'out'],
            ['--method', 'labor', '--temporal', 'uniform'],
            ['--method', 'ppr', '--walks', '8', '--walk-length', '3',
             '--restart', '0.2']], [WALK, [*WALK, '--direction', 'out']],
        'node__to__node', [['--temporal', 'last', '--negatives', 'binary:0.5',
                            '--exclude-seed-edges', 'reverse']]),
    'acm': Graph(
        ['--split', 'per-class-60'], ['--type', 'paper', '--batch-size', '60'],
        '6,4,2', [], [[*WALK, '--metapath', 'author__rev_written_by__paper,'
                       'paper__written_by__author']],
        'paper__written_by__author', []),
}
STORES = (('metis', 2), ('ldg', 3))
JOBS = [
    ['--direction', 'in'],
    ['--direction', 'out'],
    ['--direction', 'in', '--disjoint'],
    ['--direction', 'out', '--replace'],
    ['--direction', 'in', '--disjoint', '--replace', '--no-shuffle'],
]
LOCAL_JOB = ['--seed-order', 'local']  # its batches depend on the store


@contextlib.contextmanager
def fleet(binaries, store):
    """LIST of servers of the store's partitions, one process each."""
    with subprocess.Popen([f'{binaries}/millrace', 'up', store], text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        try:
            servers = process.stdout.readline().strip()
            if not servers:
                raise SystemExit(f'millrace up {store}: no server listens')
            yield servers
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


class Digests:
    """Digests of jobs, each compared with the first digest of the same job."""

    def __init__(self, comparison):
        self.comparison = comparison
        self.first = {}

    def add(self, source, job, group=''):
        """`group`: digests in a group must be equal; '' is the whole graph."""
        done = self.comparison.run_millrace('digest', *source, *job, *BATCHES)
        got = done.stdout if done.returncode == 0 else done.stderr
        key = (group, *job)
        where, expected = self.first.setdefault(key, (source, done.stdout))
        self.comparison.count += 1
        if done.returncode or got != expected:
            self.comparison.differences += 1
            print(f'DIFFERENT: {job}: {source}:\n{got}of {where}:\n'
                  f'{expected}', flush=True)


def write_pairs(dataset, relation_name, path):
    """An edge to every 97th node, with the node's time or 0, and as many pairs
    that are hardly ever edges."""
    store = Store(dataset)
    relation = next(r for r in store.relations if r.name == relation_name)
    src, dst = (store.by_name[t] for t in (relation.src, relation.dst))
    pairs = []
    for v in range(0, dst.count, 97):
        others = store.list_of(relation, 'in', v).neighbours
        pairs += [(u, v) for u in others[:1] + [v * 31 % src.count]]
    times = store.node_rows(dst, 'time', [v for _, v in pairs])
    times = np.zeros(len(pairs), np.int64) if times is None else times[1]
    np.save(path, np.column_stack([pairs, times]))


def compare_graph(comparison, binaries, source, graph):
    jobs = graph.node_wise() + graph.others()
    digests = Digests(comparison)
    with tempfile.TemporaryDirectory() as folder:
        dataset = os.path.join(folder, 'dataset')
        comparison.make('import', 'ogb', source, *graph.import_options,
                        '--out', dataset)
        pairs = os.path.join(folder, 'pairs.npy')
        write_pairs(dataset, graph.relation, pairs)
        jobs += graph.around_pairs(pairs)
        for job in jobs:
            digests.add(['--store', dataset, '--threads', '1'], job)
        for method, parts in STORES:
            store = os.path.join(folder, method)
            comparison.make('partition', dataset, '--parts', str(parts),
                            '--method', method, '--directions', 'both',
                            '--neighbor-original-ids', '--out', store)
            local = [*jobs[0], *LOCAL_JOB]
            with fleet(binaries, store) as servers:
                for where in (['--store', store, '--threads', '1'],
                              ['--store', store, '--threads', '2'],
                              ['--servers', servers]):
                    for job in jobs:
                        digests.add(where, job)
                    digests.add(where, local, group=method)
        for job in [jobs[0], *graph.others(), *graph.around_pairs(pairs)]:
            comparison.compare('digest', store, job, *BATCHES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--bin', required=True, help='folder of the programs')
    binaries = parser.parse_args().bin
    data = os.environ.get('MILLRACE_DATA', '')
    if not data:
        print('skipped: real_graphs_test: MILLRACE_DATA names no folder of '
              'real graphs (tests/run.sh --data DIR)')
        return SKIPPED
    comparison = Comparison(f'{binaries}/millrace')
    for name, graph in GRAPHS.items():
        source = os.path.join(data, name)
        if not os.path.isdir(source):
            print(f'skipped: real_graphs_test: there is no {source}')
            continue
        compare_graph(comparison, binaries, source, graph)
        print(f'{name}: {comparison.count} comparisons so far, '
              f'{comparison.differences} differences', flush=True)
    if not comparison.count:
        return SKIPPED
    return int(comparison.differences > 0)


if __name__ == '__main__':
    sys.exit(main())
