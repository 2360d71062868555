# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle's kinds of sampling: weighted, temporal, LABOR, induced
subgraphs, walks and personalised PageRank.

Compares with values of pyg-lib's tests, with brute force over all edges, and
with exact distributions. Each chi-square test and each z-test fails by chance
with probability ALPHA; keys are fixed, so a test that passes always passes."""

import collections
import hashlib
import itertools
import json
import math
import struct
import unittest
from fractions import Fraction

import numpy as np

import digest
import draws
from job import Job
from philox import philox
from sampler import sample
from seeds import SeedPlan
from store import List, OracleError, integer_weights
from store_writer import Edges, Nodes, homogeneous
from test_oracle import (ALPHA, CommandCases, ConformanceCases, StoreTest,
                         chi2_tail, cycle, random_hetero)

Z = 5  # P(|normal| > 5) < ALPHA


def chi_square(test, counts, distribution, draws_made):
    """Tests whether counts (a Counter) follow a distribution
    {outcome: probability}."""
    test.assertLessEqual(set(counts), set(distribution))
    x = sum((counts[o] - draws_made * p)**2 / (draws_made * p)
            for o, p in distribution.items())
    test.assertGreater(chi2_tail(x, len(distribution) - 1), ALPHA)


def row(batch, relation='node__to__node'):
    return batch.edges[relation]


class WeightTest(unittest.TestCase):
    """Integer weights by their definition, in fractions."""

    def defined(self, weights):
        largest = Fraction(max(weights))
        if largest == 0:
            return [0] * len(weights)
        e = -200
        while Fraction(2)**e <= largest:
            e += 1
        self.assertTrue(Fraction(2)**(e - 1) <= largest < Fraction(2)**e)
        return [max(1, math.floor(Fraction(w) * Fraction(2)**(32 - e)))
                if w else 0 for w in weights]

    def test_known_answers(self):
        self.assertEqual(integer_weights([1, 0, .5]), [2**31, 0, 2**30])
        self.assertEqual(integer_weights([3, 1, 2**-40]),
                         [3 << 30, 1 << 30, 1])
        self.assertEqual(integer_weights([0, 0]), [0, 0])
        self.assertEqual(integer_weights([]), [])
        self.assertEqual(integer_weights([-0.0, 2**-149]), [0, 2**31])

    def test_definition(self):
        rng = np.random.default_rng(21)
        bits = rng.integers(0, 0x7F800000, (300, 6)).astype('<u4')
        for weights in bits.view('<f4').tolist():  # weights of all magnitudes
            self.assertEqual(integer_weights(weights), self.defined(weights))
        for weights in rng.random((300, 6), '<f4').tolist():
            self.assertEqual(integer_weights(weights), self.defined(weights))


def successive_distribution(weights, k):
    """Probabilities of the sets of successive draws, by enumeration."""
    distribution = collections.Counter()
    total = sum(weights)
    for order in itertools.permutations(range(len(weights)), k):
        p, rest = Fraction(1), total
        for slot in order:
            p *= Fraction(weights[slot], rest) if rest else 0
            rest -= weights[slot]
        if p:
            distribution[tuple(sorted(order))] += p
    return {o: float(p) for o, p in distribution.items()}


class WeightedTest(StoreTest):
    def picks(self, weights, k, nodes, replace=False, times=None):
        """Picks for `nodes` nodes with the same list."""
        slots = List(*[list(range(len(weights)))] * 3,
                     integer_weights(weights), times)
        return draws.pick_slots(
            draws.Domain(1, 0, 0, draws.NEIGHBOUR),
            [(0, node) for node in range(nodes)],
            [slots.until(4) if times else slots] * nodes, k,
            draws.Rule(replace, weighted=True))

    def count(self, *args, **options):
        return collections.Counter(map(tuple, self.picks(*args, **options)))

    def test_edge_cases(self):
        self.assertEqual(self.picks([0, 0], 2, 1), [[]])
        self.assertEqual(self.picks([0, 0], 2, 1, True), [[]])
        self.assertEqual(self.picks([0, 0], -1, 1), [[0, 1]])
        self.assertEqual(self.picks([], 2, 1), [[]])
        self.assertEqual(self.picks([0, 2, 0, 1], 3, 1), [[1, 3]])
        self.assertEqual(self.picks([0, 2, 0], 3, 1, True), [[1, 1, 1]])
        self.assertEqual(self.picks([1, 2], 0, 1), [[]])

    def test_successive_draws(self):
        n = 6000
        for weights, k in (([5, 1, 0, 3, 2], 2), ([1, 1, 8, 2], 3),
                           ([1, 1, 1, 1], 2), ([7, 1, 1, 1, 4], 4)):
            chi_square(self, self.count(weights, k, n),
                       successive_distribution(weights, k), n)

    def test_with_replacement_draws_are_independent(self):
        weights, n = [5, 1, 0, 3], 6000
        distribution = {(a, b): weights[a] * weights[b] / 81
                        for a in range(4) for b in range(4)
                        if weights[a] * weights[b]}
        chi_square(self, self.count(weights, 2, n, True), distribution, n)

    def test_admissible_part_scales_as_the_whole(self):
        # Relative to the last slot, which is not admissible, the others become
        # 1 and 1; on their own they would be as 4 to 7.
        weights, n = [1, 1.75, 2.**31], 3000
        counts = self.count(weights, 1, n, times=[1, 4, 5])
        chi_square(self, counts, {(0,): .5, (1,): .5}, n)

    def test_draws_are_64_bit_words(self):
        key = draws.Domain(1, 0, 0, draws.NEIGHBOUR).key()
        for node, picks in enumerate(self.picks([2, 3], 1, 50)):
            low, high = (draws.word(key, node, 0, i) for i in range(2))
            x = (low + (high << 32)) * 5 >> 64
            self.assertEqual(picks, [int(x >= 2)])


class TemporalTest(StoreTest):
    def graph(self, rng, edge_times):
        """A graph with unsorted times that have ties."""
        count, size = 12, 60
        edges = rng.integers(0, count, (size, 2))
        options = ({'edge_time': rng.integers(0, 8, size)} if edge_times else
                   {})
        return homogeneous(count, edges, time=rng.integers(0, 8, count),
                           **options)

    def admissible(self, nodes, relation, direction, node, time):
        """Edges of a list by (time, edge_id), over all edges."""
        ends, others = ((relation.dst, relation.src) if direction == 'in' else
                        (relation.src, relation.dst))
        times = (relation.time if relation.time is not None else
                 nodes['node'].time[others])
        return [e for t, e in sorted(zip(times, range(len(ends))))
                if ends[e] == node and t <= time]

    def test_brute_force_over_all_edges(self):
        rng = np.random.default_rng(22)
        for case in range(24):
            nodes, relations = self.graph(rng, case % 2)
            store = self.store(nodes, relations, 1 + case % 3)
            direction = ('in', 'out')[case // 2 % 2]
            for strategy, fanouts in (('uniform', [-1, -1]),
                                      ('last', [3, 2]), ('uniform', [3, 2])):
                job = Job(fanouts=fanouts, temporal=strategy,
                          direction=direction)
                seeds = rng.integers(0, 12, 5).tolist()
                times = (rng.integers(-1, 9, 5).tolist() if case % 4 else
                         None)
                batch = sample(store, job, 0, 0, seeds, times)
                self.check(batch, nodes, relations[0], job, seeds, times)

    def check(self, batch, nodes, relation, job, seeds, times):
        if times is None:
            times = nodes['node'].time[seeds].tolist()
        self.assertEqual(batch.times, times)
        found = collections.defaultdict(list)
        for e in row(batch):
            found[e.dst if job.direction == 'in' else e.src].append(e)
        hops = {local: 0 for local in batch.seed_to_local}
        for e in row(batch):
            there = e.src if job.direction == 'in' else e.dst
            hops.setdefault(there, e.hop + 1)
        for here, (tree, node) in enumerate(batch.nodes['node']):
            if hops[here] == 2:
                self.assertEqual(found[here], [])
                continue
            k = job.fanouts[hops[here]]
            all_of = self.admissible(nodes, relation, job.direction, node,
                                     times[tree])
            got = [e.edge_id for e in found[here]]
            if k == -1:
                self.assertEqual(got, all_of)
            elif job.temporal == 'last':
                self.assertEqual(got, all_of[-k:])
            else:
                self.assertEqual(got, [e for e in all_of if e in got])
                self.assertEqual(len(got), min(k, len(all_of)))

    def test_lists_without_times_are_admissible(self):
        nodes = {'a': Nodes(3, time=[5, 6, 7]), 'b': Nodes(2)}
        relation = Edges('a', 'to', 'b', np.array([0, 1, 2]),
                         np.array([0, 0, 0]))
        store = self.store(nodes, [relation])
        job = Job(type='b', fanouts=[-1], temporal='last')
        batch = sample(store, job, 0, 0, [0], [6])
        self.assertEqual([e.edge_id for e in batch.edges['a__to__b']], [0, 1])
        job = Job(type='a', fanouts=[-1], temporal='last', direction='out')
        batch = sample(store, job, 0, 0, [2], [-3])
        self.assertEqual([e.edge_id for e in batch.edges['a__to__b']], [2])

    def test_admissible_subsets_are_equally_likely(self):
        edges = [(v, 0) for v in range(1, 8)]
        store = self.store(*homogeneous(
            8, edges, edge_time=[4, 9, 1, 4, 9, 2, 4]))
        job = Job(fanouts=[2], temporal='uniform')
        # A batch of many seeds: each tree has its own stream.
        n = 4000
        batch = sample(store, job, 0, 0, [0] * n, [4] * n)
        picks = collections.defaultdict(list)
        for e in row(batch):
            picks[e.dst].append(e.edge_id)
        counts = collections.Counter(tuple(sorted(p)) for p in picks.values())
        subsets = list(itertools.combinations([0, 2, 3, 5, 6], 2))
        chi_square(self, counts, dict.fromkeys(subsets, .1), n)


class LaborTest(StoreTest):
    def number(self, v, tree, hop, relation, epoch=0):
        """r(v), directly from the cipher."""
        k = philox(1, 0, epoch, 0, 5, hop * 65536 + relation)[:2]
        w = philox(*k, v, 0, tree, 0)
        return w[0] + (w[1] << 32)

    def test_by_hand(self):
        rng = np.random.default_rng(23)
        edges = rng.integers(0, 10, (60, 2)).tolist()
        edges[20:25] = edges[10:15]  # among multi-edges the slot decides
        for parts, disjoint in ((1, False), (3, False), (1, True)):
            store = self.store(*homogeneous(10, edges), parts)
            job = Job(fanouts=[3, 2], method='labor', disjoint=disjoint)
            batch = sample(store, job, 0, 0, [4, 7, 4])
            got = collections.defaultdict(list)
            for e in row(batch):
                got[e.hop, e.dst].append(e.edge_id)
            for (hop, here), picks in got.items():
                tree, node = batch.nodes['node'][here]
                mine = [e for e in range(60) if edges[e][1] == node]
                order = sorted(mine, key=lambda e: (self.number(
                    edges[e][0], tree, hop, 0), e))
                self.assertEqual(picks, sorted(order[:job.fanouts[hop]]))

    def test_equal_lists_give_equal_picks(self):
        edges = [(v, d) for d in (0, 1) for v in range(2, 12)]
        store = self.store(*homogeneous(12, edges))
        batch = sample(store, Job(fanouts=[4], method='labor'), 0, 0, [0, 1])
        self.assertEqual(len(batch.nodes['node']), 6)
        self.assertEqual(len(row(batch)), 8)

    def test_subsets_are_equally_likely(self):
        # So each neighbour is included with probability k / d, each pair with k
        # (k - 1) / (d (d - 1)). Each tree has its own numbers.
        slots, n = List(*[list(range(5))] * 3), 6000
        domain = draws.Domain(1, 0, 0, draws.NEIGHBOUR)
        picks = draws.pick_slots(domain, [(t, 3) for t in range(n)],
                                 [slots] * n, 2, draws.Rule(labor=True))
        counts = collections.Counter(map(tuple, picks))
        subsets = list(itertools.combinations(range(5), 2))
        chi_square(self, counts, dict.fromkeys(subsets, .1), n)

    def test_temporal_draws_of_the_admissible(self):
        edges = [(v, 0) for v in range(1, 8)]
        store = self.store(*homogeneous(
            8, edges, edge_time=[4, 9, 1, 4, 9, 2, 4]))
        job = Job(fanouts=[2], method='labor', temporal='uniform')
        for seed_tree, time in ((0, 4), (1, 1), (2, 9)):
            batch = sample(store, job, 0, 0, [0, 0, 0], [4, 1, 9])
            here = batch.seed_to_local[seed_tree]
            got = [e.edge_id for e in row(batch) if e.dst == here]
            can = [e for e, t in enumerate([4, 9, 1, 4, 9, 2, 4])
                   if t <= time]
            can.sort(key=lambda e: self.number(e + 1, seed_tree, 0, 0))
            self.assertEqual(sorted(got), sorted(can[:2]))


class InducedTest(ConformanceCases):
    def test_subgraph(self):
        # pyg-lib's rowptr 0 1 3 5 6; nodes 1 .. 4 are local ids 0 .. 3.
        self.run_both(cycle(6), [1, 2, 3, 4], [],
                      ([0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2], [1, 2, 3, 4],
                       [3, 4, 5, 6, 7, 8], [6]), method='induced')

    def test_brute_force(self):
        rng = np.random.default_rng(24)
        for case in range(12):
            count, size = 15, 70
            edges = rng.integers(0, count, (size, 2))
            times = rng.integers(0, 6, size)
            store = self.store(*homogeneous(count, edges, edge_time=times),
                               1 + case % 3)
            job = Job(fanouts=[[], [2], [2, 2]][case % 3], method='induced',
                      disjoint=bool(case % 2),
                      direction=('in', 'out')[case // 2 % 2],
                      temporal=['', 'uniform', 'last'][case // 4])
            seeds = rng.integers(0, count, 4).tolist()
            given = [3, 1, 5, 0] if job.temporal else None
            batch = sample(store, job, 0, 0, seeds, given)
            expected = set()
            local = {node: i for i, node in enumerate(batch.nodes['node'])}
            for e, (s, d) in enumerate(edges.tolist()):
                for tree in range(4 if batch.disjoint else 1):
                    if ((tree, s) in local and (tree, d) in local and
                            (given is None or times[e] <= given[tree])):
                        expected.add((0, local[tree, s], local[tree, d], e))
            got = [(e.hop, e.src, e.dst, e.edge_id) for e in row(batch)]
            self.assertEqual(set(got), expected)
            self.assertEqual(len(got), len(expected))
            owner = 2 if job.direction == 'in' else 1
            order = [(e[owner], times[e[3]], e[3]) for e in got]
            self.assertEqual(order, sorted(order))

    def test_every_relation_even_without_fanouts(self):
        nodes = {'a': Nodes(3), 'b': Nodes(3)}
        relations = [Edges(s, n, d, np.arange(3), np.arange(3))
                     for s, n, d in (('a', 'x', 'b'), ('b', 'y', 'a'),
                                     ('a', 'z', 'a'))]
        store = self.store(nodes, relations)
        job = Job(type='b', method='induced',
                  relation_fanouts={'a__x__b': [-1]})
        batch = sample(store, job, 0, 0, [1])
        self.assertEqual([[e.edge_id for e in edges]
                          for edges in batch.edges.values()], [[1]] * 3)


class TrainGraphTest(StoreTest):
    JOBS = [dict(fanouts=[3, 2]), dict(fanouts=[-1], replace=True),
            dict(fanouts=[3, 3], method='labor'),
            dict(fanouts=[2], method='induced'),
            dict(fanouts=[2, 2], temporal='last'),
            dict(method='walk', walks=2, walk_length=4),
            dict(fanouts=[3], method='ppr', walks=4, walk_length=3)]

    def test_is_the_graph_without_edges_to_others(self):
        rng = np.random.default_rng(25)
        for case, kind in enumerate(self.JOBS * 2):
            count, size = 20, 150
            direction = ('in', 'out')[case % 2]
            split = np.flatnonzero(rng.random(count) < 0.6)
            edges = rng.integers(0, count, (size, 2))
            times = rng.integers(0, 6, size)
            kept = np.flatnonzero(np.isin(
                edges[:, 0 if direction == 'in' else 1], split))
            splits = {'part': split}
            whole = self.store(*homogeneous(
                count, edges, edge_time=times, splits=splits), 1 + case % 3)
            part = self.store(*homogeneous(
                count, edges[kept], edge_time=times[kept], splits=splits))
            job = Job(direction=direction, **kind)
            seeds = rng.permutation(count)[:5].tolist()
            given = [3, 1, 5, 0, 4] if job.temporal else None
            expected = sample(part, job, 0, 0, seeds, given)
            job.train_graph = 'induced:part'
            got = sample(whole, job, 0, 0, seeds, given)
            self.assertEqual(got.nodes, expected.nodes)
            self.assertEqual(got.walks, expected.walks)
            self.assertEqual(
                [(e.hop, e.src, e.dst, e.edge_id) for e in row(got)],
                [(e.hop, e.src, e.dst,
                  kept[e.edge_id] if e.edge_id >= 0 else -1)
                 for e in row(expected)])

    def test_types_without_the_split_are_whole(self):
        nodes = {'a': Nodes(3, splits={'train': [1]}), 'b': Nodes(3)}
        relations = [Edges('a', 'x', 'b', [0, 1, 2], [0, 0, 0]),
                     Edges('b', 'y', 'a', [0, 1, 2], [1, 1, 1])]
        store = self.store(nodes, relations)
        job = Job(type='b', fanouts=[-1, -1], train_graph='induced:train')
        batch = sample(store, job, 0, 0, [0])
        self.assertEqual([[e.edge_id for e in edges]
                          for edges in batch.edges.values()],
                         [[1], [0, 1, 2]])
        for wrong in ('induced:valid', 'induced', 'part'):
            job.train_graph = wrong
            with self.assertRaises(OracleError):
                sample(store, job, 0, 0, [0])


class PygLibTest(ConformanceCases):
    """Weighted and temporal cases of pyg-lib, by value."""

    def test_weighted(self):
        self.run_both(cycle(6), [0, 1], [1],
                      ([0, 1], [2, 0], [0, 1, 5], [0, 2], [2]),
                      columns={'edge_weight': np.arange(12) % 2 == 0},
                      weighted=True)

    NODE_TIME = ([0, 1, 2, 2, 3, 3], [2, 3, 4, 0, 5, 1],
                 [(0, 2), (1, 3), (0, 1), (1, 2), (0, 0), (1, 1)],
                 [4, 6, 2, 3, 4, 5], [2, 4])

    def test_node_time(self):
        columns = {'time': np.arange(6)}
        self.run_both(cycle(6), [2, 3], [2, 2], self.NODE_TIME,
                      columns=columns, temporal='uniform')
        row_, col, nodes, edge_ids, _ = self.NODE_TIME
        self.run_both(cycle(6), [2, 3], [1, 2],
                      (row_, col, nodes, edge_ids, [2, 4]), columns=columns,
                      temporal='last')

    def test_edge_time(self):
        self.run_both(cycle(6), [2, 3], [2, 2],
                      ([0, 0, 1, 2, 2, 4, 4], [2, 3, 4, 5, 0, 6, 1],
                       [(0, 2), (1, 3), (0, 1), (0, 3), (1, 2), (0, 0),
                        (1, 1)], [4, 5, 6, 2, 3, 4, 5], [3, 4]),
                      columns={'edge_time': np.arange(12)}, times=[5, 6],
                      temporal='uniform')

    def test_nothing_admissible(self):
        self.run_both(cycle(6), [2, 3], [1, 1],
                      ([], [], [(0, 2), (1, 3)], [], [0, 0]),
                      columns={'time': np.arange(6)}, times=[-1, -1],
                      temporal='uniform', replace=True)

    def test_one_hop_of_an_owner(self):
        self.run_both(cycle(6), [2, 3], [2],
                      ([0, 1], [2, 3], [(0, 2), (1, 3), (0, 1), (1, 2)],
                       [4, 6], [2]),
                      columns={'time': np.arange(6)}, temporal='uniform')

    def test_random_walk_on_a_cycle(self):
        store = self.store(*homogeneous(4, cycle(4)))
        job = Job(method='walk', walks=1, walk_length=5, direction='out')
        batch = sample(store, job, 0, 0, [0, 1, 2, 3])
        walks = np.array(batch.walks)
        self.assertEqual(walks.shape, (4, 6))
        originals = np.array([v for _, v in batch.nodes['node']])[walks]
        self.assertEqual(originals[:, 0].tolist(), [0, 1, 2, 3])
        self.assertTrue(set(np.diff(originals, axis=1).ravel() % 4) <= {1, 3})


class WalkTest(StoreTest):
    def test_edges_are_the_steps(self):
        rng = np.random.default_rng(25)
        for case in range(12):
            edges = rng.integers(0, 10, (25, 2))
            store = self.store(*homogeneous(12, edges), 1 + case % 3)
            job = Job(method='walk', walks=3, walk_length=4,
                      disjoint=bool(case % 2),
                      direction=('in', 'out')[case // 2 % 2])
            seeds = rng.integers(0, 12, 5).tolist() + [11]  # 11 is isolated
            batch = sample(store, job, 0, 0, seeds)
            self.check(batch, job, edges, seeds)

    def check(self, batch, job, edges, seeds):
        steps = []
        for w, path in enumerate(batch.walks):
            self.assertEqual(path[0], batch.seed_to_local[w // 3])
            end = path.index(-1) if -1 in path else len(path)
            self.assertEqual(path[end:], [-1] * (len(path) - end))
            for s in range(end - 1):
                steps.append((path[s], s, w, path[s + 1]))
            if end < len(path):  # only where no edge leads on
                node = batch.nodes['node'][path[end - 1]][1]
                self.assertNotIn(node,
                                 edges[:, 1 if job.direction == 'in' else 0])
        got = [(e.dst, e.hop, e.src) if job.direction == 'in' else
               (e.src, e.hop, e.dst) for e in row(batch)]
        self.assertEqual(got, [(a, s, b) for a, s, _, b in sorted(steps)])
        for e in row(batch):
            ends = [batch.nodes['node'][v] for v in (e.src, e.dst)]
            self.assertEqual([v for _, v in ends],
                             edges[e.edge_id].tolist())
            self.assertEqual(ends[0][0], ends[1][0])
        firsts = []
        for s in range(5):
            firsts += [p[s] for p in batch.walks if p[s] != -1]
        self.assertEqual(list(dict.fromkeys(firsts)),
                         list(range(len(batch.nodes['node']))))

    def test_two_steps_follow_the_weights(self):
        edges = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 3), (2, 0), (2, 3),
                 (3, 4)]
        weights = [1, 2, 0, 3, 1, 1, 1, 0]
        store = self.store(*homogeneous(5, edges, edge_weight=weights))
        n = 6000
        for weighted, distribution in (
                (True, {(1, 0): 1 / 4, (1, 3): 1 / 12, (2, 0): 1 / 3,
                        (2, 3): 1 / 3}),
                (False, {(1, 0): 1 / 6, (1, 3): 1 / 6, (2, 0): 1 / 6,
                         (2, 3): 1 / 6, (3, 4): 1 / 3})):
            job = Job(method='walk', walks=n, walk_length=2,
                      weighted=weighted, direction='out')
            batch = sample(store, job, 0, 0, [0])
            names = [v for _, v in batch.nodes['node']]
            counts = collections.Counter(
                (names[a], names[b]) for _, a, b in batch.walks)
            chi_square(self, counts, distribution, n)

    # Chi-square with a false alarm in 10^6; see chi_square().
    def test_biased_steps_follow_node2vec(self):
        edges = [(0, 1), (0, 2), (1, 0), (1, 2), (1, 2), (1, 3), (1, 1),
                 (2, 0), (3, 1)]
        store = self.store(*homogeneous(4, edges))
        n = 6000
        for p, q in ((.25, 4), (4, .5), (3, 1), (1, 3)):
            job = Job(method='walk', walks=n, walk_length=2, walk_p=p,
                      walk_q=q, direction='out')
            batch = sample(store, job, 0, 0, [0])
            names = [v for _, v in batch.nodes['node']]
            counts = collections.Counter(
                (names[a], names[b]) for _, a, b in batch.walks)
            # From 1 after 0: back to 0, twice to 2 (next to 0), to 3, and a
            # loop to 1, which is next to 0 too.
            total = 1 / p + 3 + 1 / q
            chi_square(self, counts, {
                (1, 0): .5 / p / total, (1, 2): .5 * 2 / total,
                (1, 1): .5 / total, (1, 3): .5 / q / total, (2, 0): .5}, n)

    def test_p_and_q_of_1_change_nothing(self):
        edges = np.random.default_rng(31).integers(0, 10, (25, 2))
        store = self.store(*homogeneous(12, edges))
        plain = Job(method='walk', walks=3, walk_length=6)
        same = Job(method='walk', walks=3, walk_length=6, walk_p=1, walk_q=1)
        self.assertEqual(sample(store, plain, 0, 0, [1, 2]).walks,
                         sample(store, same, 0, 0, [1, 2]).walks)

    def test_biased_walks_do_not_depend_on_partitions(self):
        edges = np.random.default_rng(32).integers(0, 10, (40, 2))
        job = Job(method='walk', walks=3, walk_length=6, walk_p=.3, walk_q=2.5)
        one, three = (sample(self.store(*homogeneous(12, edges), parts), job,
                             0, 0, [1, 2, 11]) for parts in (1, 3))
        self.assertEqual(one.walks, three.walks)
        self.assertEqual(one.edges, three.edges)

    def test_weightless_lists_end_walks(self):
        store = self.store(*homogeneous(3, [(0, 1), (1, 2)],
                                        edge_weight=[1, 0]))
        job = Job(method='walk', walks=2, walk_length=3, weighted=True,
                  direction='out')
        self.assertEqual(sample(store, job, 0, 0, [0]).walks,
                         [[0, 1, -1, -1]] * 2)

    def test_metapaths_repeat(self):
        nodes = {'a': Nodes(4), 'b': Nodes(4)}
        pairs = np.arange(4), (np.arange(4) + 1) % 4
        relations = [Edges('a', 'x', 'b', *pairs), Edges('b', 'y', 'a', *pairs),
                     Edges('a', 'z', 'a', *pairs)]
        store = self.store(nodes, relations)
        job = Job(type='a', method='walk', walks=1, walk_length=5,
                  direction='out', metapath=['a__x__b', 'b__y__a', 'a__z__a'])
        batch = sample(store, job, 0, 0, [0])
        # Each step adds one node; their types are a b a a b a.
        self.assertEqual(batch.walks, [[0, 0, 1, 2, 1, 3]])
        self.assertEqual(batch.nodes['a'], [(0, 0), (0, 2), (0, 3), (0, 1)])
        self.assertEqual(batch.nodes['b'], [(0, 1), (0, 0)])
        self.assertEqual([(e.hop, e.src, e.dst)
                          for e in batch.edges['a__x__b']],
                         [(0, 0, 0), (3, 2, 1)])
        job.metapath = ['a__x__b', 'a__z__a']
        with self.assertRaisesRegex(OracleError, 'step 1 leaves from b'):
            sample(store, job, 0, 0, [0])


class PageRankTest(StoreTest):
    def graph(self, weighted=False):
        rng = np.random.default_rng(26)
        edges = rng.integers(0, 9, (40, 2))
        columns = ({'edge_weight': rng.integers(0, 3, 40)} if weighted else
                   {})
        return edges, homogeneous(10, edges, **columns)

    def walk_one(self, store, job, hop, node, n):
        """The path of walker n, one word at a time."""
        path = []
        for s in range(job.walk_length):
            number = 256 * hop + s
            if s > 0:
                key = philox(1, 0, 0, 0, 6, number * 65536)[:2]
                if philox(*key, n, 0, 0, 0)[0] < int(job.restart * 2**32):
                    break
            slots = store.list_of(store.relations[0], job.direction, node)
            key = draws.Domain(1, 0, 0, draws.WALK, number)
            if job.weighted:
                total = sum(slots.weights)
                if not total:
                    break
                x = draws.wide(key, node, n, 0, total)
                slot = next(i for i in range(len(slots))
                            if x < sum(slots.weights[:i + 1]))
            elif not slots:
                break
            else:
                slot = draws.bounded(key, node, n, 0, len(slots))
            node = slots.neighbours[slot]
            path.append(node)
        return path

    def test_one_walker_at_a_time(self):
        for weighted in (False, True):
            _, graph = self.graph(weighted)
            for parts, direction in ((1, 'in'), (3, 'out')):
                store = self.store(*graph, parts)
                job = Job(fanouts=[3, 2], method='ppr', walks=5,
                          walk_length=4, restart=.3, direction=direction,
                          weighted=weighted)
                batch = sample(store, job, 0, 0, [2, 9, 5, 2])
                self.assertEqual(batch.nodes['node'][:3],
                                 [(0, 2), (0, 9), (0, 5)])
                self.check(store, job, batch)

    def check(self, store, job, batch):
        names = [v for _, v in batch.nodes['node']]
        frontier, expected = [0, 1, 2], []
        for hop in range(2):
            known = frontier[-1] + 1
            for f, here in enumerate(frontier):
                visits = {}
                for n in range(5 * f, 5 * f + 5):
                    for v in self.walk_one(store, job, hop, names[here], n):
                        if v != names[here]:
                            visits[v] = visits.get(v, 0) + 1
                order = sorted(visits, key=lambda v: -visits[v])
                expected += [(hop, names[here], v, -1, visits[v])
                             for v in order[:job.fanouts[hop]]]
            frontier = list(range(known, 1 + max(
                names.index(v) for _, _, v, _, _ in expected)))
        got = [(e.hop, names[e.dst], names[e.src], e.edge_id, e.visits)
               if job.direction == 'in' else
               (e.hop, names[e.src], names[e.dst], e.edge_id, e.visits)
               for e in row(batch)]
        self.assertEqual(got, expected)

    def test_mean_visits_are_page_ranks(self):
        edges, graph = self.graph()
        store, n, length, restart = self.store(*graph), 4000, 5, .25
        job = Job(fanouts=[-1], method='ppr', walks=n, walk_length=length,
                  restart=restart, direction='out')
        batch = sample(store, job, 0, 0, [4])
        steps = np.zeros((10, 10))
        np.add.at(steps, tuple(edges.T), 1)
        steps /= np.maximum(steps.sum(1, keepdims=True), 1)
        mean, at = np.zeros(10), np.eye(10)[4]
        for s in range(length):
            at = (at if s == 0 else (1 - restart) * at) @ steps
            mean += at
        names = [v for _, v in batch.nodes['node']]
        visits = np.zeros(10)
        visits[[names[e.dst] for e in row(batch)]] = [e.visits
                                                      for e in row(batch)]
        mean[4] = 0  # the node itself does not count
        # A walker's visits of a node are between 0 and `length`.
        error = np.abs(visits - n * mean)
        bound = Z * np.sqrt(n * length * np.maximum(mean, 1e-9))
        self.assertTrue((error <= bound).all(), (error, bound))
        self.assertEqual(sorted((e.visits for e in row(batch)),
                                reverse=True),
                         [e.visits for e in row(batch)])

    def test_one_relation_of_several(self):
        nodes = {'a': Nodes(4), 'b': Nodes(4)}
        pairs = np.arange(4), (np.arange(4) + 1) % 4
        store = self.store(nodes, [Edges('a', 'x', 'b', *pairs),
                                   Edges('a', 'z', 'a', *pairs)])
        job = Job(type='a', fanouts=[2, 2], method='ppr', walks=3,
                  walk_length=2, metapath=['a__z__a'], direction='out')
        batch = sample(store, job, 0, 0, [0])
        self.assertEqual(batch.edges['a__x__b'], [])
        self.assertEqual([(e.hop, e.src, e.dst, e.visits)
                          for e in batch.edges['a__z__a']],
                         [(0, 0, 1, 3), (0, 0, 2, 3), (1, 1, 2, 3),
                          (1, 1, 3, 3), (1, 2, 3, 3), (1, 2, 0, 3)])

    def test_certain_restarts_leave_one_step(self):
        store = self.store(*homogeneous(4, [(0, 1), (0, 2), (1, 3), (2, 3)]))
        job = Job(fanouts=[-1], method='ppr', walks=20, walk_length=9,
                  restart=1, direction='out')
        batch = sample(store, job, 0, 0, [0])
        self.assertEqual({v for _, v in batch.nodes['node']}, {0, 1, 2})
        self.assertEqual(sum(e.visits for e in row(batch)), 20)


def kinds(direction, weights, times):
    """Options for jobs of each kind on a graph with those columns."""
    fanouts = {'fanouts': [3, 2], 'direction': direction,
               'edge_features': True}
    plain = [{}, {'replace': True}, {'disjoint': True}, {'method': 'labor'},
             {'method': 'labor', 'disjoint': True}, {'method': 'induced'},
             {'method': 'induced', 'disjoint': True},
             {'method': 'induced', 'fanouts': []}]
    if weights:
        plain += [{'weighted': True}, {'weighted': True, 'replace': True},
                  {'weighted': True, 'disjoint': True},
                  {'weighted': True, 'method': 'induced'}]
    if times:
        plain += [{'temporal': 'uniform'}, {'temporal': 'last'},
                  {'temporal': 'uniform', 'replace': True},
                  {'temporal': 'uniform', 'method': 'labor'},
                  {'temporal': 'last', 'method': 'induced'}]
    if weights and times:
        plain.append({'weighted': True, 'temporal': 'uniform'})
    return [{**fanouts, **options} for options in plain]


class PartitionTest(StoreTest):
    """No kind of sampling may depend on the partitions."""

    def digests(self, store, options):
        job = Job(batch_size=7, **options)
        plan = SeedPlan(store, job)
        return [digest.digest(store, job, sample(store, job, 0, b,
                                                 plan.seeds(0, b)))
                for b in range(min(2, len(plan.batches)))]

    def compare(self, graph, options_list):
        stores = [self.store(*graph, parts, seed=parts)
                  for parts in (1, 2, 4)]
        for store in stores:
            store.verify()
        for options in options_list:
            first, *others = [self.digests(s, options) for s in stores]
            for other in others:
                self.assertEqual(other, first, options)

    def test_homogeneous(self):
        rng = np.random.default_rng(27)
        for edge_times in (False, True):
            columns = {'edge_time': rng.integers(0, 9, 150)}
            graph = homogeneous(
                30, rng.integers(0, 28, (150, 2)), time=rng.integers(0, 9, 30),
                edge_weight=rng.integers(0, 4, 150).astype('<f4'),
                edge_feature=rng.standard_normal((150, 2)),
                splits={'train': rng.permutation(30)[:20]},
                **(columns if edge_times else {}))
            for direction in ('in', 'out'):
                walk = {'method': 'walk', 'walks': 2, 'walk_length': 4,
                        'direction': direction, 'edge_features': True}
                ppr = {'fanouts': [3, 2], 'method': 'ppr', 'walks': 6,
                       'walk_length': 3, 'restart': .2,
                       'direction': direction}
                self.compare(graph, kinds(direction, True, True) + [
                    walk, {**walk, 'weighted': True},
                    {**walk, 'disjoint': True}, ppr,
                    {**ppr, 'weighted': True}])

    def test_heterogeneous(self):
        nodes, relations = random_hetero(np.random.default_rng(28))
        nodes['b'].splits = {'train': range(7)}
        for direction in ('in', 'out'):
            path = ['a__x__b', 'b__x__a']
            walk = {'method': 'walk', 'walks': 2, 'walk_length': 5,
                    'direction': direction,
                    'metapath': path if direction == 'in' else path[::-1]}
            self.compare((nodes, relations), [
                {**options, 'type': 'b'} for options in
                kinds(direction, False, False) + [walk]])


class DigestTest(StoreTest):
    """The bytes that the kinds add to a digest, by hand."""

    def digest(self, job, seeds, times=None, **columns):
        store = self.store(*homogeneous(3, [(1, 0)], **columns))
        return digest.digest(store, job,
                             sample(store, job, 0, 0, seeds, times))

    def expected(self, times, trees, columns, walks):
        p = struct.pack
        return hashlib.sha256(
            b'millrace' + p('<III', 1, 0, 0) + p('<IIQq', 5, 1, 1, 0) +
            times + p('<I', 0) + p('<IIQI', 4, 1, 1, 0) + p('<I', 1) +
            p('<IIQqq', 5, 1, 2, 0, 1) + trees + p('<I', 1) +
            p('<IIQB', 1, 1, 1, 0) + p('<IIQI', 4, 1, 1, 1) +
            p('<IIQI', 4, 1, 1, 0) + columns + walks +
            p('<III', 0, 0, 0)).digest()

    EDGE_ID = struct.pack('<IIQq', 5, 1, 1, 0)

    def test_times(self):
        self.assertEqual(
            self.digest(Job(fanouts=[-1], temporal='last'), [0], [-7],
                        edge_time=[-9]),
            self.expected(struct.pack('<IIQq', 5, 1, 1, -7),
                          struct.pack('<IIQII', 4, 1, 2, 0, 0), self.EDGE_ID,
                          b''))

    def test_visits(self):
        job = Job(fanouts=[-1], method='ppr', walks=6, walk_length=2)
        absent = struct.pack('<I', 0)
        self.assertEqual(
            self.digest(job, [0]),
            self.expected(absent, absent, struct.pack('<IIQq', 5, 1, 1, -1) +
                          struct.pack('<IIQI', 4, 1, 1, 6), b''))

    def test_walks(self):
        job = Job(method='walk', walks=1, walk_length=2)
        absent = struct.pack('<I', 0)
        self.assertEqual(
            self.digest(job, [0]),
            self.expected(absent, absent, self.EDGE_ID,
                          struct.pack('<IIQQiii', 3, 2, 1, 3, 0, 1, -1)))


class CommandTest(CommandCases):
    """What the kinds add to the printed object."""

    def sample(self, edges, *args, **columns):
        store = self.store(*homogeneous(3, edges, **columns))
        code, out, err = self.run_oracle('sample', '--store', store.root,
                                         '--seed-ids', '0', *args)
        self.assertEqual((code, err), (0, ''))
        return json.loads(out)

    def test_times(self):
        got = self.sample([(1, 0), (2, 0)], '--fanouts', '-1', '--temporal',
                          'last', '--seed-times', '-3', edge_time=[-3, -2])
        self.assertEqual(got['seeds'],
                         {'type': 'node', 'ids': [0], 'time': [-3]})
        self.assertEqual(got['trees'], {'node': [0, 0]})

    def test_walks(self):
        got = self.sample([(0, 1), (1, 2)], '--method', 'walk', '--walks', '2',
                          '--walk-length', '3', '--direction', 'out')
        self.assertEqual(got['walks'], [[0, 1, 2, -1]] * 2)
        self.assertEqual(got['edges']['node__to__node'], {
            'hop': [0, 0, 1, 1], 'src': [0, 0, 1, 1], 'dst': [1, 1, 2, 2],
            'edge_id': [0, 0, 1, 1]})

    def test_visits(self):
        got = self.sample([(0, 1), (1, 2)], '--method', 'ppr', '--walks', '2',
                          '--walk-length', '3', '--direction', 'out',
                          '--fanouts', '5')
        self.assertEqual(got['edges']['node__to__node'], {
            'hop': [0, 0], 'src': [0, 0], 'dst': [1, 2], 'edge_id': [-1, -1],
            'visits': [2, 2]})

    def test_edge_features(self):
        got = self.sample([(1, 0)], '--fanouts', '1', '--edge-features',
                          edge_feature=np.array([[2.5, 3]]))
        self.assertEqual(got['edges']['node__to__node']['x'], [[2.5, 3]])

    def test_seed_times_need_explicit_seeds(self):
        store = self.store(*homogeneous(3, []))
        code, _, err = self.run_oracle('sample', '--store', store.root,
                                       '--seed-times', '1')
        self.assertEqual(code, 1)
        self.assertIn('--seed-ids', err)


class RefusalTest(StoreTest):
    def setUp(self):
        super().setUp()
        self.plain = self.store(*homogeneous(4, cycle(4)))
        pairs = np.array(cycle(4)).T
        self.typed = self.store({'a': Nodes(4), 'b': Nodes(4)},
                                [Edges('a', 'x', 'b', *pairs)])

    def refused(self, message, store=None, times=None, **options):
        with self.assertRaisesRegex(OracleError, message):
            sample(store or self.plain, Job(**options), 0, 0, [0], times)

    def test_labor(self):
        for options in ({'replace': True}, {'weighted': True},
                        {'temporal': 'last'}):
            self.refused('labor', method='labor', fanouts=[1], times=[1] if
                         'temporal' in options else None, **options)

    def test_labor_without_original_ids(self):
        store = self.store(*homogeneous(4, cycle(4)), parts=2)
        sample(store, Job(method='labor', fanouts=[1]), 0, 0, [0])
        store.neighbor_original_ids = False
        self.refused('original ids', store, method='labor', fanouts=[1])

    def test_walks(self):
        walk = {'method': 'walk', 'walks': 2, 'walk_length': 3}
        self.refused('no fanouts', fanouts=[1], **walk)
        self.refused('temporal', temporal='uniform', times=[1], **walk)
        self.refused('out of range', **{**walk, 'walk_length': 256})
        self.refused('out of range', **{**walk, 'walks': 1 << 20})
        self.refused('out of range', **{**walk, 'walks': 0})
        self.refused('replace', replace=True, **walk)
        self.refused('a__b__c', metapath=['a__b__c'], **walk)
        self.refused('leaves from a', self.typed, type='a', **walk)

    def test_page_rank(self):
        ppr = {'method': 'ppr', 'walks': 2, 'walk_length': 3, 'fanouts': [1]}
        self.refused('temporal', temporal='uniform', times=[1], **ppr)
        self.refused('disjoint', disjoint=True, **ppr)
        self.refused('features', edge_features=True, **ppr)
        self.refused('out of range', **{**ppr, 'walk_length': 257})
        self.refused('out of range', **{**ppr, 'walks': 1 << 20})
        self.refused('restart', restart=1.5, **ppr)
        self.refused('replace', replace=True, **ppr)
        self.refused('leaves from a', self.typed, type='a', **ppr)
        self.refused('one relation', metapath=['node__to__node'] * 2, **ppr)

    def test_missing_columns(self):
        self.refused('no weights', weighted=True, fanouts=[1])
        self.refused('no times', temporal='uniform', fanouts=[1])
        self.refused('not temporal', times=[1], fanouts=[1])
        self.refused('any', edge_features=True, fanouts=[1])
        self.refused('last', replace=True, temporal='last', times=[1],
                     fanouts=[1])
        self.refused('last', weighted=True, temporal='last', times=[1],
                     fanouts=[1])
        self.refused('of --method', metapath=['node__to__node'], fanouts=[1])
        self.refused('2 of 1', times=[1, 2], temporal='last', fanouts=[1])

    def test_columns_that_disagree(self):
        graph = homogeneous(4, cycle(4), edge_weight=np.arange(8), time=[
            3, 1, 2, 0], splits={'train': [1, 2]})
        folder = 'part-00000/edges/node__to__node/in/'
        for path in (folder + 'weight_sum', folder + 'time',
                     folder + 'neighbor_original_id',
                     'splits/node/train/time', 'splits/node/train/id'):
            store = self.store(*graph, 2)
            store.verify()
            values = np.array(store.load(path + '.npy'))
            values[0] += 1
            store.cache[path + '.npy'] = values
            store.lists.clear()
            with self.assertRaises(OracleError):
                store.verify()


if __name__ == '__main__':
    unittest.main()
