#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `millrace` with the oracle, bit by bit.

Makes datasets and stores (some with `millrace import` and `partition`, some
with the oracle's own writer), runs a matrix of jobs with both programs, and
prints every difference and the number of comparisons. Exit status: 0 if all are
equal, 1 otherwise or if nothing was compared.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

import numpy as np

import oracle
from compare_data import Case, all_cases
from compare_jobs import (common_jobs, graph_jobs, seeds_jobs,
                          timed_seeds_jobs)
from store import OracleError, Store

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             '../support'))
from gpu_jobs import has_kernels  # noqa: E402  (its folder comes first)


class Comparison:
    """Runs both programs, counts comparisons, and prints differences."""

    def __init__(self, millrace, memory=()):
        self.millrace, self.memory = millrace, memory
        self.count = self.differences = 0
        self.stores = {}

    def memory_of(self, job):
        """Where `millrace` keeps its graph; the CPU may sample what GPUs have
        no kernels for."""
        if has_kernels(job):
            return self.memory
        return [word for option, value in zip(*[iter(self.memory)] * 2)
                if option != '--device-fallback' for word in (option, value)]

    def run_millrace(self, *args):
        return subprocess.run([self.millrace, *args], text=True, check=False,
                              capture_output=True)

    def make(self, *args):
        """Runs a command that must succeed."""
        done = self.run_millrace(*args)
        if done.returncode:
            raise SystemExit(f'millrace {" ".join(args)}\n{done.stderr}')

    def report(self, text):
        self.differences += 1
        print(text, flush=True)

    def store(self, path):
        if path not in self.stores:
            self.stores[path] = Store(path)
        return self.stores[path]

    def run_oracle(self, args):
        """The oracle's output (lines, or an object), or its error."""
        try:
            args = oracle.parse_args(args)
            store = self.store(args.store)
            if args.command == 'sample':
                return oracle.run_sample(store, args), ''
            return list(oracle.run_digest(store, args)), ''
        except OracleError as error:
            return None, str(error)

    def verify(self, store):
        """Checks the columns of a store that repeat others."""
        self.count += 1
        try:
            self.store(store).verify()
        except OracleError as error:
            self.report(f'DIFFERENT: {error}')

    def compare(self, command, store, job, *more, refused=False):
        """Makes one comparison; returns the common output, or None.

        `refused`: whether both programs must refuse; None: both or neither."""
        args = [command, '--store', store, *job, *more]
        expected, error = self.run_oracle(args)
        done = self.run_millrace(*args, *self.memory_of(job))
        self.count += 1
        if expected is None and refused is not False:
            difference = ('' if done.returncode in (1, 2) else
                          f'millrace does not refuse, the oracle: {error}')
        elif expected is None:
            difference = f'the oracle refuses: {error}'
        elif refused:
            difference = 'the oracle does not refuse'
        elif done.returncode:
            difference = f'exit {done.returncode}: {done.stderr.strip()}'
        elif command == 'sample':
            difference = first_difference(json.loads(done.stdout), expected)
        else:
            difference = first_line(done.stdout.splitlines(), expected)
        if not difference:
            return expected
        if command == 'digest' and expected and not done.returncode:
            difference += self.explain(store, job, difference, *more)
        self.report(f'DIFFERENT: {" ".join(args)}\n  {difference}')
        return None

    def explain(self, store, job, difference, *more):
        """Looks for the difference that causes a digest to differ."""
        words = difference.split()
        if words[0] != 'line':
            return ''
        epoch = more[more.index('--epoch') + 1]
        args = ['sample', '--store', store, *job, '--epoch', epoch, '--batch',
                words[1], '--with-features', '--json']
        expected, _ = self.run_oracle(args)
        done = self.run_millrace(*args, *self.memory_of(job))
        if done.returncode or expected is None:
            return f'\n  sample: {done.stderr.strip()}'
        found = first_difference(json.loads(done.stdout), expected)
        return f'\n  batch {words[1]}: {found or "samples agree"}'


def first_line(lines, others):
    for i, (a, b) in enumerate(zip(lines, others)):
        if a != b:
            return f'line {i} is {a!r}, oracle {b!r}'
    if len(lines) != len(others):
        return f'{len(lines)} lines, oracle {len(others)}'
    return ''


def first_difference(got, expected, path=''):
    """The first place where two JSON values differ; floats compare as float32.
    """
    if got == expected:  # the usual case, and fast
        return ''
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
        equal = (isinstance(got, float) and isinstance(expected, float) and
                 np.float32(got) == np.float32(expected))
        return '' if equal else f'{path} is {got}, oracle {expected}'
    for key, a, b in pairs:
        found = first_difference(a, b, f'{path}/{key}')
        if found:
            return found
    return ''


def case_jobs(case, folder, name):
    extra, size = case.extra, max(3, case.count // 23)
    result = []
    if case.common:
        result += common_jobs(extra, size)
        result += seeds_jobs(folder, name, case.count, extra)
    if '--fanouts' in extra:  # as many hops per relation as the options give
        return [j for j in result if ',' not in
                j.options[j.options.index('--fanouts') + 1]]
    for kinds in (case.kinds, case.pairs):
        if kinds:
            result += kinds.jobs(extra, size)
    if case.kinds and case.kinds.times:
        result += timed_seeds_jobs(folder, name, case.count, case.time_unit,
                                   extra)
    if case.graphs:
        result += graph_jobs(extra, size)
    return result


def compare_job(comparison, case, job, number, batches):
    """Compares job `number` of the case on all stores of the dataset."""
    rng = np.random.default_rng([case.count, number])
    stores, totals = case.stores, set()
    timeless = job.temporal and not (job.pairs or job.times or
                                     case.seed_times)
    refused = job.refused or timeless
    if refused:
        stores = [stores[number % len(stores)]]
    if job.explicit:
        comparison.compare('sample', stores[0], job.options, '--json',
                           refused=True)
        return
    for i, store in enumerate(stores):
        printed = comparison.compare(
            'digest', store, job.options, '--epoch', '3', '--batches',
            str(batches), refused=refused)
        totals.add(tuple(printed or ()))
        turn = (number + i) % len(stores)
        if (job.everywhere or turn == 0) and not refused:
            features = ['--with-features'] if case.features or not turn else []
            comparison.compare('sample', store, job.options, '--epoch', '1',
                               '--batch', '0', '--json', *features,
                               refused=None if job.local else False)
        if timeless or (job.everywhere or turn == len(stores) - 1) and (
                not refused):
            compare_seeds(comparison, case, store, job, rng)
    if len(totals - {()}) > 1 and not job.local:
        comparison.report(f'DIFFERENT: {job.options} depends on the store: '
                          f'{stores}')


def compare_seeds(comparison, case, store, job, rng):
    """Explicit seeds, some of them repeated; also with times of their own."""
    if '--seeds-file' in job.options:
        return  # the two cannot be used together
    counts = [case.count]
    if job.pairs:
        counts = case.pairs.relations[
            job.options[job.options.index('--type') + 1]]
    more = []
    for option, count in zip(('--seed-ids', '--seed-dst-ids'), counts):
        ids = rng.integers(0, count, 4).tolist()
        more += [option, ','.join(map(str, ids + ids[:2]))]
    always = job.temporal and (job.pairs or not case.seed_times)
    if always or (job.temporal or job.pairs) and rng.integers(2):
        times = (rng.integers(-3, 12, 6) * case.time_unit).tolist()
        more += ['--seed-times', ','.join(map(str, times))]
    comparison.compare('sample', store, job.options, '--epoch', '9',
                       '--batch', '70000', '--json', *more,
                       refused=job.refused)


class Worker:
    """Compares tasks (case, job, number) in a process of its own."""
    comparison = None
    batches = 0

    @classmethod
    def start(cls, millrace, batches, memory):
        cls.comparison, cls.batches = Comparison(millrace, memory), batches

    @classmethod
    def run(cls, task):
        comparison = cls.comparison
        comparison.count = comparison.differences = 0
        case, job, number = task
        if job is None:
            for store in case.stores:
                comparison.verify(store)
        else:
            compare_job(comparison, case, job, number, cls.batches)
        return comparison.count, comparison.differences


def tasks(cases, folder, stride):
    """Every `stride`-th job of each case, from the first or a later one on."""
    for i, case in enumerate(cases):
        yield case, None, 0
        jobs = case_jobs(case, folder, f'case-{i}')
        yield from ((case, job, number) for number, job in enumerate(jobs)
                    if (number + i) % stride == 0)


def given_cases(stores, node_type):
    """Stores of one dataset given on the command line."""
    first = Store(stores[0])
    node_type = node_type or first.types[0].name
    return [Case(stores, ['--type', node_type],
                 first.by_name[node_type].count, kinds=None)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--millrace', required=True, help='the program')
    parser.add_argument('--cora', default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), '../data/cora'))
    parser.add_argument('--store', action='append', default=[],
                        help='compares these stores of one dataset instead')
    parser.add_argument('--type', default='', help='node type of the seeds')
    parser.add_argument('--batches', type=int, default=2,
                        help='of an epoch, for each job and store')
    parser.add_argument('--stride', type=int, default=1,
                        help='compares only every STRIDE-th job of each case')
    parser.add_argument('--memory', default='',
                        help="options of `millrace` alone, such as "
                        "'--graph-memory cuda --device-fallback forbid', the "
                        'latter where GPUs have kernels')
    parser.add_argument('--processes', type=int, default=os.cpu_count())
    args = parser.parse_args()
    comparison = Comparison(args.millrace)
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(
            args.processes, Worker.start,
            (args.millrace, args.batches, args.memory.split())) as pool:
        cases = (given_cases(args.store, args.type) if args.store else
                 [*all_cases(comparison.make, folder, args.cora)])
        for count, differences in pool.imap_unordered(
                Worker.run, tasks(cases, folder, args.stride), chunksize=4):
            comparison.count += count
            comparison.differences += differences
    print(f'{comparison.count} comparisons, '
          f'{comparison.differences} differences')
    return int(comparison.differences > 0 or comparison.count == 0)


if __name__ == '__main__':
    sys.exit(main())
