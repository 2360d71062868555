# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle against independent answers.

Cases by value come from the test suites of pyg-lib and PyG; test_kinds.py has
those of weighted, temporal and induced sampling and of walks, test_edges.py
those of pairs as seeds. These parts of the suites are not covered:

    merge                   (the fleet's merging of picks)
    alias and CDF tables    (weights are integers here)
    METIS                   tests of the partitioners

Each chi-square test fails by chance with probability ALPHA; keys are fixed, so
a test that passes always passes."""

import contextlib
import hashlib
import io
import json
import math
import os
import struct
import tempfile
import unittest

import numpy as np

import digest
import draws
import oracle
from job import Job
from philox import MASK, philox, words
from sampler import sample
from seeds import SeedPlan
from store import List, OracleError, Store
from store_writer import Edges, Nodes, homogeneous, write_store

ALPHA = 1e-6


def chi2_tail(x, df):
    """P(chi-square of `df` degrees >= x), by continued fraction or series."""
    a, x = df / 2, x / 2
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a)) if x > 0 else 0
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return 1 - total * scale
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 10000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return scale * h


class StoreTest(unittest.TestCase):
    """Gives tests a folder, and stores in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.stores = folder.name, 0

    def store(self, nodes, relations, parts=1, **options):
        path = os.path.join(self.folder, str(self.stores))
        self.stores += 1
        write_store(path, nodes, relations, parts, **options)
        return Store(path)


class PhiloxTest(unittest.TestCase):
    """Known answers of Random123's tests/kat_vectors, rows philox4x32 10."""

    CASES = [
        ((0, 0), (0, 0, 0, 0),
         (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)),
        ((MASK, MASK), (MASK, MASK, MASK, MASK),
         (0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd)),
        ((0xa4093822, 0x299f31d0),
         (0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
         (0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)),
    ]

    def test_known_answers(self):
        for key, counter, expected in self.CASES:
            self.assertEqual(philox(*key, *counter), expected)

    def test_known_answers_of_arrays(self):
        columns = np.array([k + c for k, c, _ in self.CASES], np.uint64).T
        answers = np.stack(philox(*columns), axis=1)
        self.assertEqual(answers.tolist(), [list(e) for *_, e in self.CASES])

    def test_streams_of_arrays_are_words(self):
        key, nodes, trees = (5, 6), [7, 2**40 + 3], [0, 9]
        for row, (u, t) in zip(words(key, nodes, trees, 11), zip(nodes, trees)):
            self.assertEqual(row.tolist(),
                             [draws.word(key, u, t, i) for i in range(11)])

    def test_key_packs_hop_and_relation(self):
        domain = draws.Domain(2**32 + 7, 3, 4, 1, 2, 5).retry(6)
        self.assertEqual(domain.key(),
                         philox(7, 1, 3, 4, 1 + 256 * 6, 2 * 65536 + 5)[:2])


class BoundedTest(unittest.TestCase):
    def test_rejections_take_the_next_purpose(self):
        # For n = 3 * 2^30, a quarter of the words are rejected.
        n, retries = 3 << 30, 0
        for node in range(200):
            domain = draws.Domain(1, 0, 0, draws.NEIGHBOUR)
            value = draws.bounded(domain, node, 0, 2, n)
            r = 0
            while True:
                w = draws.word(domain.retry(r).key(), node, 0, 2)
                # The accepted words, by counting: those whose product is in the
                # last (2^32 / n, rounded down) * n of its class.
                if (w * n) % 2**32 >= 2**32 % n:
                    break
                r += 1
            retries += r
            self.assertEqual(value, w * n // 2**32)
        self.assertGreater(retries, 30)

    def test_wide_rejections_take_the_next_purpose(self):
        n, retries = 3 << 62, 0  # a quarter are rejected
        for node in range(200):
            domain = draws.Domain(1, 0, 0, draws.WALK)
            value = draws.wide(domain, node, 4, 1, n)
            r = 0
            while True:
                key = domain.retry(r).key()
                low, high = (draws.word(key, node, 4, i) for i in (2, 3))
                w = low + (high << 32)
                if (w * n) % 2**64 >= 2**64 % n:
                    break
                r += 1
            retries += r
            self.assertEqual(value, w * n >> 64)
        self.assertGreater(retries, 30)

    def test_large_bounds_use_two_words(self):
        domain = draws.Domain(1, 0, 0, draws.NEIGHBOUR)
        low, high = (draws.word(domain.key(), 8, 0, i) for i in (6, 7))
        n = 1 << 40
        self.assertEqual(draws.bounded(domain, 8, 0, 3, n),
                         (low + (high << 32)) >> 24)


class PermutationTest(unittest.TestCase):
    @staticmethod
    def values(n, positions, first=0, second=7):
        """P(key, n) of many positions, or of one position with many keys, at
        once."""
        h = draws.half_bits(n)
        k0, x = np.broadcast_arrays(*(np.array(a, np.uint64).reshape(-1)
                                      for a in (first, positions)))
        k1, x = np.full(len(x), second, np.uint64), x.copy()
        walking = np.arange(len(x))
        while len(walking):
            x[walking] = draws.feistel((k0[walking], k1[walking]), h,
                                       x[walking])
            walking = walking[x[walking] >= n]
        return x.astype(np.int64)

    def test_scalar_and_array_positions_agree(self):
        for n in (1, 3, 200, 2**33):
            many = self.values(n, range(min(n, 20)))
            self.assertEqual([draws.permute((0, 7), n, q)
                              for q in range(len(many))], many.tolist())

    def test_is_a_bijection(self):
        for n in (1, 2, 3, 255, 256, 257, 1000, 1024, 1025, 65537):
            values = self.values(n, range(n), n)
            self.assertEqual(sorted(values), list(range(n)), n)

    def test_keys_give_different_orders(self):
        orders = {tuple(self.values(100, range(100), k)) for k in range(50)}
        self.assertEqual(len(orders), 50)

    def chi_square(self, counts, expected):
        x = sum((c - e)**2 / e for c, e in zip(counts, expected))
        self.assertGreater(chi2_tail(x, len(counts) - 1), ALPHA)

    def test_each_position_is_uniform(self):
        n, keys = 200, 20000
        for position in (0, 150):
            values = self.values(n, position, range(keys))
            counts = np.bincount(values, minlength=n)
            self.chi_square(counts, [keys / n] * n)

    def test_pairs_of_positions_are_uniform(self):
        n, keys = 256, 20000
        a, b = (self.values(n, q, range(keys)) // 32 for q in (10, 11))
        counts = np.bincount(8 * a + b, minlength=64)
        same = keys * 32 * 31 / (n * (n - 1))
        other = keys * 32 * 32 / (n * (n - 1))
        self.chi_square(counts,
                        np.where(np.eye(8), same, other).ravel())

    def test_all_orders_of_three_are_equally_likely(self):
        keys = 6000
        orders = sum(3**q * self.values(3, q, range(keys)) for q in range(3))
        _, counts = np.unique(orders, return_counts=True)
        self.assertEqual(len(counts), 6)
        self.chi_square(counts, [keys / 6] * 6)


class PickTest(unittest.TestCase):
    def picks_of(self, nodes, degree, fanout, replace=False):
        domain = draws.Domain(1, 0, 0, draws.NEIGHBOUR)
        slots = List(*[list(range(degree))] * 3)
        return draws.pick_slots(domain, [(0, node) for node in nodes],
                                [slots] * len(nodes), fanout,
                                draws.Rule(replace))

    def picks(self, *args):
        return self.picks_of([3], *args)[0]

    def test_edge_cases(self):
        self.assertEqual(self.picks(0, 3), [])
        self.assertEqual(self.picks(0, -1, True), [])
        self.assertEqual(self.picks(5, 0), [])
        self.assertEqual(self.picks(4, -1, True), [0, 1, 2, 3])
        self.assertEqual(self.picks(3, 3), [0, 1, 2])
        self.assertEqual(self.picks(3, 7), [0, 1, 2])
        self.assertEqual(self.picks(1, 4, True), [0, 0, 0, 0])

    def test_without_replacement_is_a_sorted_set(self):
        for picks in self.picks_of(range(200), 9, 4):
            self.assertEqual(picks, sorted(set(picks)))
            self.assertEqual(len(picks), 4)
            self.assertTrue(0 <= picks[0] and picks[-1] < 9)

    def test_every_subset_is_equally_likely(self):
        nodes, subsets = 8000, {}
        for s in map(tuple, self.picks_of(range(nodes), 6, 3)):
            subsets[s] = subsets.get(s, 0) + 1
        self.assertEqual(len(subsets), 20)
        e = nodes / 20
        x = sum((c - e)**2 / e for c in subsets.values())
        self.assertGreater(chi2_tail(x, 19), ALPHA)


def cycle(n):
    """The n-cycle of pyg-lib's tests: the list of v is v - 1, v + 1."""
    return [(v, (v + d) % n) for v in range(n) for d in (-1, 1)]


def reverse(edges):
    return [(d, s) for s, d in edges]


class ConformanceCases(StoreTest):
    """`row` is the frontier node and `col` the neighbour, as with csc=False;
    for direction `in` on the reversed graph they are dst and src."""

    def run_both(self, edges, seeds, fanouts, expected, count=6, columns=None,
                 times=None, **options):
        """`columns` are the graph's, `times` the seeds', `options` the
        job's."""
        row, col, nodes, edge_ids, per_hop = expected
        for direction, pairs in (('out', edges), ('in', reverse(edges))):
            store = self.store(*homogeneous(count, pairs, **(columns or {})))
            job = Job(fanouts=fanouts, direction=direction, **options)
            batch = sample(store, job, 0, 0, seeds, times)
            got = batch.edges['node__to__node']
            ends = [(e.src, e.dst) for e in got]
            if direction == 'in':
                ends = reverse(ends)
            self.assertEqual([r for r, _ in ends], row)
            self.assertEqual([c for _, c in ends], col)
            self.assertEqual([e.edge_id for e in got], edge_ids)
            found = batch.nodes['node']
            if not batch.disjoint:
                found = [v for _, v in found]
            self.assertEqual(found, nodes)
            self.assertEqual([sum(e.hop == h for e in got)
                              for h in range(len(per_hop))], per_hop)


class ConformanceTest(ConformanceCases):
    def test_full_two_hops(self):
        self.run_both(cycle(6), [2, 3], [-1, -1],
                      ([0, 0, 1, 1, 2, 2, 3, 3], [2, 1, 0, 3, 4, 0, 1, 5],
                       [2, 3, 1, 4, 0, 5], [4, 5, 6, 7, 2, 3, 8, 9], [4, 4]))

    def test_empty_graph(self):
        self.run_both([], list(range(5)), [-1, -1],
                      ([], [], list(range(5)), [], [0, 0]), count=5)

    def test_one_neighbour_per_hop(self):
        for replace in (False, True):
            store = self.store(*homogeneous(6, cycle(6)))
            job = Job(fanouts=[1, 1], direction='out', replace=replace)
            batch = sample(store, job, 0, 0, [2, 3])
            edges = batch.edges['node__to__node']
            self.assertEqual([e.hop for e in edges][:2], [0, 0])
            self.assertEqual([e.src for e in edges], list(range(len(edges))))
            for e in edges:
                ends = tuple(batch.nodes['node'][v][1] for v in (e.src, e.dst))
                self.assertEqual(ends, cycle(6)[e.edge_id])

    DISJOINT = ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
                [2, 3, 4, 5, 6, 0, 0, 7, 8, 1, 1, 9],
                [(0, 2), (1, 3), (0, 1), (0, 3), (1, 2), (1, 4), (0, 0),
                 (0, 4), (1, 1), (1, 5)],
                [4, 5, 6, 7, 2, 3, 6, 7, 4, 5, 8, 9], [4, 8])

    def test_disjoint(self):
        self.run_both(cycle(6), [2, 3], [2, 2], self.DISJOINT, disjoint=True)

    def test_hetero_with_one_relation(self):
        pairs = np.array(cycle(6))
        nodes = {'paper': Nodes(6), 'other': Nodes(2)}
        relation = Edges('paper', 'to', 'paper', pairs[:, 0], pairs[:, 1])
        store = self.store(nodes, [relation])
        job = Job(type='paper', direction='out',
                  relation_fanouts={'paper__to__paper': [2, 2]})
        batch = sample(store, job, 0, 0, [2, 3])
        edges = batch.edges['paper__to__paper']
        self.assertEqual([v for _, v in batch.nodes['paper']],
                         [2, 3, 1, 4, 0, 5])
        self.assertEqual(batch.nodes['other'], [])
        self.assertEqual([e.edge_id for e in edges], [4, 5, 6, 7, 2, 3, 8, 9])
        self.assertEqual([e.dst for e in edges], [2, 1, 0, 3, 4, 0, 1, 5])

    def test_one_hop_of_an_owner(self):
        # Picks with their seeds: 2 3 | 1 3 2 4, cumulated 2 4 6.
        self.run_both(cycle(6), [2, 3], [-1],
                      ([0, 0, 1, 1], [2, 1, 0, 3], [2, 3, 1, 4],
                       [4, 5, 6, 7], [4]))
        self.run_both(cycle(6), [2, 3], [2],
                      ([0, 0, 1, 1], [2, 3, 4, 5],
                       [(0, 2), (1, 3), (0, 1), (0, 3), (1, 2), (1, 4)],
                       [4, 5, 6, 7], [4]), disjoint=True)

    def test_one_hop_sizes(self):
        store = self.store(*homogeneous(6, cycle(6)))
        for replace, fanout in ((False, 1), (True, 2), (True, 5)):
            job = Job(fanouts=[fanout], direction='out', replace=replace)
            edges = sample(store, job, 0, 0, [2, 3]).edges['node__to__node']
            self.assertEqual([e.src for e in edges], [0] * fanout +
                             [1] * fanout)

    def test_relabel(self):
        self.run_both([(2, 1), (2, 3), (3, 2), (3, 4)], [2, 3], [-1],
                      ([0, 0, 1, 1], [2, 1, 0, 3], [2, 3, 1, 4],
                       [0, 1, 2, 3], [4]))
        self.run_both([(2, 1), (2, 3), (3, 2), (3, 4)], [2, 3], [-1],
                      ([0, 0, 1, 1], [2, 3, 4, 5],
                       [(0, 2), (1, 3), (0, 1), (0, 3), (1, 2), (1, 4)],
                       [0, 1, 2, 3], [4]), disjoint=True)

    def test_metapath_counts(self):
        a, b, c = 10, 200, 1000
        ab = [(i % a, i) for i in range(b)]      # 20 for each a
        bc = [(i % b, i) for i in range(c)]      # 5 for each b
        nodes = {'A': Nodes(a), 'B': Nodes(b), 'C': Nodes(c)}
        relations = [Edges(s, 'to', d, *np.array(pairs).T)
                     for s, d, pairs in (('A', 'B', ab), ('B', 'C', bc))]
        store = self.store(nodes, relations)
        job = Job(type='A', direction='out', relation_fanouts={
            'A__to__B': [10, 0], 'B__to__C': [0, 2]})
        for seeds, first, second in (([0], 10, 20), (range(10), 100, 200)):
            batch = sample(store, job, 0, 0, list(seeds))
            self.assertEqual(len(batch.edges['A__to__B']), first)
            self.assertEqual(len(batch.edges['B__to__C']), second)
            self.assertEqual(len(batch.nodes['C']), second)


class SeedTest(StoreTest):
    def plan(self, parts=1, **options):
        graph = homogeneous(50, cycle(50), splits={'train': range(3, 40)})
        return SeedPlan(self.store(*graph, parts), Job(**options))

    def epoch(self, plan, epoch=0):
        return [plan.seeds(epoch, b).ids for b in range(len(plan.batches))]

    def test_in_order(self):
        plan = self.plan(batch_size=10, shuffle=False)
        self.assertEqual(self.epoch(plan), [
            list(range(3, 13)), list(range(13, 23)), list(range(23, 33)),
            list(range(33, 40))])

    def test_every_seed_once(self):
        for parts in (1, 3):
            for order in ('global', 'local'):
                for shuffle in (False, True):
                    plan = self.plan(parts, batch_size=6, shuffle=shuffle,
                                     seed_order=order)
                    for epoch in range(2):
                        seeds = sum(self.epoch(plan, epoch), [])
                        self.assertEqual(sorted(seeds), list(range(3, 40)))

    def test_epochs_and_seeds_differ(self):
        plan = self.plan(batch_size=37)
        other = self.plan(batch_size=37, seed=2)
        self.assertNotEqual(plan.seeds(0, 0), plan.seeds(1, 0))
        self.assertNotEqual(plan.seeds(0, 0), other.seeds(0, 0))

    def test_drop_last(self):
        plan = self.plan(batch_size=10, drop_last=True)
        self.assertEqual([len(s) for s in self.epoch(plan)], [10, 10, 10])

    def test_local_batches_have_one_owner(self):
        plan = self.plan(7, batch_size=2, seed_order='local')
        graph = homogeneous(50, cycle(50))
        node_type = self.store(*graph, parts=7).by_name['node']
        for seeds in self.epoch(plan):
            self.assertEqual(len({node_type.locate(v)[0] for v in seeds}), 1)

    def test_a_file_keeps_order_and_duplicates(self):
        plan = self.plan(seeds_file=[7, 2, 7], shuffle=False)
        self.assertEqual(self.epoch(plan), [[7, 2, 7]])

    def test_refuses_missing_seeds_splits_and_batches(self):
        with self.assertRaisesRegex(OracleError, 'seed 1 is 50'):
            self.plan(seeds_file=[0, 50])
        with self.assertRaisesRegex(OracleError, "no split 'test'"):
            self.plan(split='test')
        with self.assertRaisesRegex(OracleError, 'batch 4'):
            self.plan(batch_size=10).seeds(0, 4)


def random_graph(rng):
    """Multi-edges, self loops, isolated nodes; all columns."""
    count = int(rng.integers(1, 40))
    size = int(rng.integers(0, 4 * count))
    edges = rng.integers(0, max(1, count - 2), (size, 2))
    return homogeneous(
        count, edges, feature=rng.standard_normal((count, 3), '<f4'),
        label=rng.integers(0, 5, count),
        edge_feature=rng.standard_normal((size, 2), '<f4'),
        splits={'train': rng.permutation(count)[:(count + 1) // 2]})


def random_hetero(rng):
    """Three types, two relations between the same pair, one of a type with
    itself, one type without any."""
    counts = {'a': 12, 'b': 7, 'c': 20, 'lonely': 4}
    nodes = {name: Nodes(n, label=rng.integers(0, 3, n))
             for name, n in counts.items()}
    nodes['a'].feature = rng.standard_normal((12, 4), '<f4')
    nodes['c'].feature = rng.integers(0, 9, (20, 2)).astype('<u2')
    nodes['c'].feature_dtype = 'bfloat16'
    relations = []
    for src, name, dst, size in (('a', 'x', 'b', 30), ('b', 'x', 'a', 25),
                                 ('a', 'y', 'b', 9), ('c', 'z', 'c', 50),
                                 ('b', 'w', 'c', 40), ('c', 'none', 'a', 0)):
        relations.append(Edges(src, name, dst,
                               rng.integers(0, counts[src], size),
                               rng.integers(0, counts[dst], size),
                               feature=rng.standard_normal((size, 1))))
    return nodes, relations


class PropertyTest(StoreTest):
    """Properties of every sampler, over random graphs and jobs."""

    def random_job(self, rng):
        return Job(fanouts=rng.integers(-1, 5, rng.integers(1, 4)).tolist(),
                   seed=int(rng.integers(1 << 63)),
                   replace=bool(rng.integers(2)),
                   disjoint=bool(rng.integers(2)),
                   direction=['in', 'out'][rng.integers(2)])

    def check(self, store, job, relations, batch, seeds):
        for i, v in enumerate(seeds):
            tree, node = batch.nodes[batch.seed_type][batch.seed_to_local[i]]
            self.assertEqual(node, v)
            self.assertEqual(tree, i if job.disjoint else 0)
        reached = {(batch.seed_type, v) for v in batch.seed_to_local}
        for t in store.types:
            nodes = batch.nodes[t.name]
            self.assertEqual(len(nodes), len(set(nodes)))
        for r, edges in zip(relations, batch.edges.values()):
            for e in edges:
                s, d = (batch.nodes[r.src_type][e.src],
                        batch.nodes[r.dst_type][e.dst])
                self.assertEqual((s[1], d[1]),
                                 (r.src[e.edge_id], r.dst[e.edge_id]))
                self.assertEqual(s[0], d[0])
                reached |= {(r.src_type, e.src), (r.dst_type, e.dst)}
            if not job.replace:
                names = [(e.edge_id, batch.nodes[r.src_type][e.src][0])
                         for e in edges]
                self.assertEqual(len(names), len(set(names)))
            hops = [e.hop for e in edges]
            self.assertEqual(hops, sorted(hops))
        self.assertEqual(len(reached), sum(map(len, batch.nodes.values())))

    def check_fanouts(self, store, job, relations, batch):
        """Each node is expanded once, at the hop after it first appears."""
        for number, relation in enumerate(store.relations):
            r = relations[number]
            owner, _ = relation.ends(job.direction)
            ends = r.dst if job.direction == 'in' else r.src
            count = {}
            for e in batch.edges[relation.name]:
                here = e.dst if job.direction == 'in' else e.src
                count.setdefault(here, []).append(e.hop)
            for here, hops in count.items():
                self.assertEqual(len(set(hops)), 1)
                fanout = job.relation_fanouts.get(relation.name,
                                                  job.fanouts)[hops[0]]
                node = batch.nodes[owner][here][1]
                degree = int(np.sum(np.asarray(ends) == node))
                expected = (degree if fanout == -1 else fanout if job.replace
                            else min(fanout, degree))
                self.assertEqual(len(hops), expected)

    def test_homogeneous(self):
        rng = np.random.default_rng(1)
        for _ in range(60):
            nodes, relations = random_graph(rng)
            store, job = self.store(nodes, relations), self.random_job(rng)
            seeds = rng.integers(0, nodes['node'].count, 6).tolist()
            batch = sample(store, job, 1, 2, seeds)
            self.check(store, job, relations, batch, seeds)
            self.check_fanouts(store, job, relations, batch)

    def test_heterogeneous(self):
        rng = np.random.default_rng(2)
        nodes, relations = random_hetero(rng)
        store = self.store(nodes, relations)
        for _ in range(40):
            job = self.random_job(rng)
            job.type = ['a', 'b', 'c', 'lonely'][rng.integers(4)]
            job.relation_fanouts = {
                'b__w__c': rng.integers(-1, 4, len(job.fanouts)).tolist()}
            seeds = rng.integers(0, nodes[job.type].count, 5).tolist()
            batch = sample(store, job, 0, 0, seeds)
            self.check(store, job, relations, batch, seeds)
            self.check_fanouts(store, job, relations, batch)

    def test_columns_are_the_users(self):
        rng = np.random.default_rng(3)
        for parts in (1, 3):
            nodes, relations = random_graph(rng)
            store = self.store(nodes, relations, parts)
            for direction in ('in', 'out'):
                job = Job(fanouts=[3, 3], direction=direction)
                batch = sample(store, job, 0, 0, [0])
                ids = [v for _, v in batch.nodes['node']]
                _, x = store.node_rows(store.types[0], 'feature', ids)
                np.testing.assert_array_equal(x, nodes['node'].feature[ids])
                edges = batch.edges['node__to__node']
                _, x = store.edge_rows(store.relations[0],
                                       [e.place for e in edges])
                np.testing.assert_array_equal(
                    x, relations[0].feature[[e.edge_id for e in edges]])

    def test_full_fanouts_equal_the_whole_graph(self):
        # Layers of sums with a fixed matrix, in integers: exact.
        rng = np.random.default_rng(4)
        for direction in ('in', 'out'):
            nodes, relations = random_graph(rng)
            store, r = self.store(nodes, relations), relations[0]
            job = Job(fanouts=[-1] * 3, direction=direction)
            x = rng.integers(-3, 4, (nodes['node'].count, 2))
            w = rng.integers(-2, 3, (2, 2))
            seeds = rng.integers(0, len(x), 4).tolist()
            batch = sample(store, job, 0, 0, seeds)
            edges = batch.edges[store.relations[0].name]
            local = x[[v for _, v in batch.nodes['node']]]
            src, dst = ([getattr(e, k) for e in edges] for k in ('src', 'dst'))
            for _ in range(3):
                x = self.layer(x, r.src, r.dst, w, direction)
                local = self.layer(local, src, dst, w, direction)
            np.testing.assert_array_equal(local[batch.seed_to_local],
                                          x[seeds])

    @staticmethod
    def layer(x, src, dst, w, direction):
        out = x.copy()
        to, of = (dst, src) if direction == 'in' else (src, dst)
        np.add.at(out, np.asarray(to, int), (x @ w)[np.asarray(of, int)])
        return out


class DigestTest(StoreTest):
    def digests(self, store, **options):
        job = Job(batch_size=5, **options)
        plan = SeedPlan(store, job)
        return [digest.digest(store, job, sample(store, job, 0, b,
                                                 plan.seeds(0, b)))
                for b in range(len(plan.batches))]

    def test_partitioning_does_not_change_it(self):
        rng = np.random.default_rng(5)
        for make, options in ((random_graph, {}),
                              (random_hetero, {'type': 'b',
                                               'seeds_file': range(7)})):
            nodes, relations = make(rng)
            stores = [self.store(nodes, relations, p, seed=p)
                      for p in (1, 2, 3, 7)]
            for direction in ('in', 'out'):
                results = [self.digests(s, fanouts=[2, 2], edge_features=True,
                                        direction=direction, **options)
                           for s in stores]
                for other in results[1:]:
                    self.assertEqual(other, results[0])

    def test_bytes_of_a_small_batch(self):
        graph = homogeneous(3, [(1, 0)], label=np.array([4, 5, 6]),
                            feature=np.array([[1.], [2.], [3.]], '<f4'),
                            splits={'train': [0]})
        job = Job(fanouts=[-1], shuffle=False)
        store = self.store(*graph)
        got = digest.digest(store, job, sample(store, job, 0, 0, [0]))
        p = struct.pack
        expected = hashlib.sha256(
            b'millrace' + p('<III', 1, 0, 0) +
            p('<IIQq', 5, 1, 1, 0) + p('<II', 0, 0) + p('<IIQI', 4, 1, 1, 0) +
            p('<I', 1) + p('<IIQqq', 5, 1, 2, 0, 1) + p('<I', 0) +
            p('<I', 1) + p('<IIQB', 1, 1, 1, 0) + p('<IIQI', 4, 1, 1, 1) +
            p('<IIQI', 4, 1, 1, 0) + p('<IIQq', 5, 1, 1, 0) +
            p('<IIQq', 5, 1, 1, 4) + p('<IIQQff', 8, 2, 2, 1, 1., 2.) +
            p('<I', 0)).digest()
        self.assertEqual(got, expected)


class CommandCases(StoreTest):
    def run_oracle(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = oracle.main(list(args))
        return code, out.getvalue(), err.getvalue()


class CommandTest(CommandCases):
    def test_sample_prints_the_documented_object(self):
        store = self.store(*homogeneous(
            6, cycle(6), feature=np.eye(6, dtype='<f4'),
            label=np.array([0, np.nan, 2, 3, 4, 5], '<f4')))
        code, out, _ = self.run_oracle(
            'sample', '--store', store.root, '--fanouts', '-1,0',
            '--direction', 'out', '--disjoint', '--seed-ids', '1,1',
            '--epoch', '2', '--batch', '3', '--with-features')
        self.assertEqual(code, 0)
        got = json.loads(out)
        x = got.pop('x')
        self.assertEqual(x['node'][0], [0, 1, 0, 0, 0, 0])
        self.assertEqual(got, {
            'epoch': 2, 'batch': 3,
            'seeds': {'type': 'node', 'ids': [1, 1]}, 'seed_to_local': [0, 1],
            'nodes': {'node': [1, 1, 0, 2, 0, 2]},
            'trees': {'node': [0, 1, 0, 0, 1, 1]},
            'edges': {'node__to__node': {
                'hop': [0, 0, 0, 0], 'src': [0, 0, 1, 1],
                'dst': [2, 3, 4, 5], 'edge_id': [2, 3, 2, 3]}},
            'y': {'node': [None, None]}})

    def test_digest_prints_lines_and_their_total(self):
        store = self.store(*homogeneous(6, cycle(6),
                                        splits={'train': range(6)}))
        code, out, _ = self.run_oracle(
            'digest', '--store', store.root, '--fanouts', '1', '--epoch', '4',
            '--batch-size', '4')
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(code, 0)
        self.assertEqual([line[:-1] for line in lines],
                         [['4', '0'], ['4', '1'], ['total']])
        whole = b''.join(bytes.fromhex(line[-1]) for line in lines[:-1])
        self.assertEqual(lines[-1][-1], hashlib.sha256(whole).hexdigest())

    def test_failures_name_the_cause(self):
        graph = homogeneous(6, cycle(6))
        store = self.store(*graph, directions=('in',))
        for args, message in (
                (['--fanouts', '1', '--seed-ids', '9'], 'seed 0 is 9'),
                (['--fanouts', 'a__b__c=1', '--seed-ids', '1'], 'a__b__c'),
                (['--fanouts', '1', '--seed-ids', '1', '--direction', 'out'],
                 'no out-lists'),
                (['--fanouts', '-2', '--seed-ids', '1'], '-1 or more')):
            code, _, err = self.run_oracle('sample', '--store', store.root,
                                           *args)
            self.assertEqual(code, 1)
            self.assertIn(message, err)


if __name__ == '__main__':
    unittest.main()
