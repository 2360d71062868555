# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle's seeds that are pairs of nodes.

Compares with brute force over all edges, with words taken directly from the
cipher, and with exact distributions. Each chi-square test fails by chance with
probability ALPHA; keys are fixed, so a test that passes always passes."""

import collections
import itertools
import unittest

import numpy as np

from job import Job
from philox import philox
from sampler import sample
from seeds import Seeds, SeedPlan
from store import OracleError
from store_writer import EdgeSplit, Edges, Nodes, homogeneous
from test_kinds import chi_square
from test_oracle import StoreTest

LOOP = 'node__to__node'


def pairs(src, dst, **columns):
    return Seeds(list(src), dst=list(dst), **columns)


def originals(batch, name, locals_):
    return [batch.nodes[name][v][1] for v in locals_]


def trees_of(batch, name, locals_):
    return [batch.nodes[name][v][0] for v in locals_]


class PlanTest(StoreTest):
    EDGES = [(v, (3 * v + 1) % 30) for v in range(30)]

    def split(self):
        rng = np.random.default_rng(40)
        src, dst = rng.integers(0, 30, (2, 17))
        return EdgeSplit(src, dst, time=100 * src + dst,
                         edge_type=src, label=dst,
                         negative=np.stack([src, dst], 1))

    def plan(self, parts=1, **options):
        graph = homogeneous(30, self.EDGES,
                            edge_splits={'train': self.split()})
        return SeedPlan(self.store(*graph, parts), Job(kind='edge', **options))

    def epoch(self, plan, epoch=0):
        return [plan.seeds(epoch, b) for b in range(len(plan.batches))]

    def test_a_split_keeps_its_order(self):
        split = self.split()
        got = self.epoch(self.plan(2, batch_size=7, shuffle=False))
        self.assertEqual([len(s) for s in got], [7, 7, 3])
        self.assertEqual(sum((s.ids for s in got), []), split.src.tolist())
        self.assertEqual(sum((s.dst for s in got), []), split.dst.tolist())

    def test_columns_stay_with_their_pair(self):
        for order in ('global', 'local'):
            plan = self.plan(3, batch_size=4, seed_order=order)
            for seeds in self.epoch(plan, 1):
                self.assertEqual(seeds.times,
                                 [100 * s + d for s, d in zip(seeds.ids,
                                                              seeds.dst)])
                self.assertEqual(seeds.edge_types, seeds.ids)
                self.assertEqual(seeds.labels[1].tolist(), seeds.dst)
                self.assertEqual(seeds.negatives,
                                 [[s, d] for s, d in zip(seeds.ids,
                                                         seeds.dst)])

    def test_every_pair_once(self):
        split = self.split()
        expected = sorted(zip(split.src.tolist(), split.dst.tolist()))
        for order in ('global', 'local'):
            got = self.epoch(self.plan(3, batch_size=4, seed_order=order))
            self.assertEqual(sorted(p for s in got
                                    for p in zip(s.ids, s.dst)), expected)

    def test_local_batches_have_one_owner_of_destinations(self):
        plan = self.plan(3, batch_size=3, seed_order='local')
        node_type = self.store(*homogeneous(30, []), parts=3).by_name['node']
        for seeds in self.epoch(plan):
            self.assertEqual(len(set(node_type.owners(seeds.dst))), 1)

    def test_files_of_pairs_and_of_times(self):
        for rows, times in (([[1, 2], [5, 3], [1, 2]], None),
                            ([[1, 2, -4], [5, 3, 9], [1, 2, 0]], [-4, 9, 0])):
            plan = self.plan(seeds_file=rows, shuffle=False)
            self.assertEqual(self.epoch(plan),
                             [pairs([1, 5, 1], [2, 3, 2], times=times)])
        graph = homogeneous(9, [])
        plan = SeedPlan(self.store(*graph), Job(
            seeds_file=[[4, 7], [2, -1]], shuffle=False))
        self.assertEqual(self.epoch(plan), [Seeds([4, 2], [7, -1])])

    def test_refusals(self):
        for message, options in (
                ('columns', {'seeds_file': [1, 2]}),
                ('columns', {'seeds_file': [[1, 2, 3, 4]]}),
                ('seed 0 is 30', {'seeds_file': [[30, 1]]}),
                ('seed 1 is -1', {'seeds_file': [[1, 2], [1, -1]]}),
                ('no split', {'split': 'other'}),
                ('a__b__c', {'type': 'a__b__c'}),
                ('global', {'seeds_file': [[1, 2]], 'seed_order': 'local'})):
            with self.assertRaisesRegex(OracleError, message):
                self.plan(**options)


class LocalIdTest(StoreTest):
    def batch(self, seeds, **options):
        store = self.store(*homogeneous(9, [(8, 8)]))
        options = {'fanouts': [0], **options}
        return sample(store, Job(kind='edge', **options), 0, 0, seeds)

    def test_sources_then_destinations_then_negatives(self):
        batch = self.batch(pairs([4, 2, 4], [2, 7, 5],
                                 negatives=[[4, 1], [1, 0], [7, 3]]))
        self.assertEqual(batch.nodes['node'],
                         [(0, v) for v in (4, 2, 7, 5, 1, 0, 3)])
        self.assertEqual(batch.seed_to_local, [0, 1, 0])
        self.assertEqual(batch.dst_to_local, [1, 2, 3])
        self.assertEqual(batch.negative_to_local, [0, 4, 4, 5, 2, 6])
        self.assertIsNone(batch.negative_src_to_local)

    def test_a_tree_per_pair_with_its_negatives(self):
        batch = self.batch(pairs([4, 2], [4, 7], negatives=[[4, 1], [2, 2]]),
                           disjoint=True)
        self.assertEqual(batch.nodes['node'],
                         [(0, 4), (1, 2), (1, 7), (0, 1)])
        self.assertEqual(batch.seed_to_local, [0, 1])
        self.assertEqual(batch.dst_to_local, [0, 2])
        self.assertEqual(batch.negative_to_local, [0, 3, 1, 1])

    def test_a_tree_per_drawn_pair(self):
        batch = self.batch(pairs([4, 2], [4, 7]), disjoint=True,
                           negatives='binary:1.5')
        negatives = batch.negatives
        self.assertEqual(len(negatives.src), 3)
        for name, locals_, expected in (
                ('src', batch.negative_src_to_local, negatives.src),
                ('dst', batch.negative_to_local, negatives.dst)):
            self.assertEqual(originals(batch, 'node', locals_), expected,
                             name)
            self.assertEqual(trees_of(batch, 'node', locals_), [2, 3, 4])
        # Sources of negatives come before their destinations.
        self.assertEqual([t for t, _ in batch.nodes['node'][3:6]], [2, 3, 4])

    def test_two_types_have_ids_of_their_own(self):
        nodes = {'a': Nodes(5), 'b': Nodes(40)}
        store = self.store(nodes, [Edges('b', 'to', 'a', [39], [0])])
        batch = sample(store, Job(kind='edge', fanouts=[0],
                                  negatives='triplet:2'), 0, 0,
                       pairs([39, 7], [3, 3]))
        self.assertEqual(batch.nodes['b'], [(0, 39), (0, 7)])
        self.assertEqual(batch.nodes['a'][0], (0, 3))
        self.assertTrue(max(batch.negatives.dst) < 5)
        self.assertEqual(originals(batch, 'a', batch.negative_to_local),
                         batch.negatives.dst)

    def test_times_of_trees(self):
        store = self.store(*homogeneous(9, [(8, 8)], edge_time=[3]))
        batch = sample(store, Job(kind='edge', fanouts=[1], temporal='last',
                                  negatives='binary:2.5'), 0, 0,
                       pairs([8, 1], [1, 8], times=[4, 2]))
        self.assertEqual(batch.times, [4, 2])
        self.assertEqual(batch.tree_times, [4, 2, 4, 2, 4, 2, 4])
        edges = batch.edges[LOOP]
        trees = trees_of(batch, 'node', [e.dst for e in edges])
        self.assertIn(0, trees)
        self.assertTrue(all(batch.tree_times[t] == 4 for t in trees))


class NegativeTest(StoreTest):
    """Relations between types of 7 and 5 nodes, or of a type with itself."""
    SIZES = 7, 5

    def sample(self, edges, negatives, n=1, typed=True, seeds=None, **options):
        if typed:
            nodes = {'a': Nodes(self.SIZES[0]), 'b': Nodes(self.SIZES[1])}
            relations = [Edges('a', 'other', 'b', [0], [0]),
                         Edges('a', 'to', 'b', *np.array(edges).T)]
        else:
            nodes, relations = homogeneous(self.SIZES[0], edges)
            relations.insert(0, Edges('node', 'other', 'node', [0], [0]))
        store = self.store(nodes, relations, 2)
        job = Job(kind='edge', fanouts=[0], negatives=negatives,
                  type='a__to__b' if typed else LOOP, **options)
        seeds = seeds or pairs([i % 7 for i in range(n)],
                               [i % 5 for i in range(n)])
        return sample(store, job, 2, 1, seeds)

    def words(self, q, redraw):
        """The stream of number q, directly from the cipher."""
        k = philox(1, 0, 2, 1, 3, redraw * 65536 + 1)[:2]
        return philox(*k, q, 0, 0, 0)

    def by_hand(self, edges, q, src=None):
        for redraw in range(21):
            w = self.words(q, redraw)
            pair = (w[0] * 7 >> 32 if src is None else src, w[2] * 5 >> 32)
            if pair not in edges:
                return pair, 0
        return pair, 1

    DENSE = [p for p in itertools.product(range(7), range(5))
             if p not in ((1, 1), (4, 2), (6, 0))]

    def test_binary_by_hand(self):
        for edges in ([(0, 0)], self.DENSE):
            batch = self.sample(edges, 'binary:2', 30)
            expected = [self.by_hand(edges, q) for q in range(60)]
            self.assertEqual(list(zip(batch.negatives.src,
                                      batch.negatives.dst)),
                             [pair for pair, _ in expected])
            self.assertEqual(batch.negatives.edges,
                             sum(false for _, false in expected))
        self.assertTrue(0 < batch.negatives.edges < 60)

    def test_triplet_by_hand(self):
        for edges in ([(0, 0)], self.DENSE):
            batch = self.sample(edges, 'triplet:3', 20)
            expected = [self.by_hand(edges, q, q // 3 % 7)
                        for q in range(60)]
            self.assertEqual(batch.negatives.dst,
                             [d for (_, d), _ in expected])
            self.assertEqual(batch.negatives.edges,
                             sum(false for _, false in expected))
        self.assertTrue(0 < batch.negatives.edges < 60)

    def test_shared_are_not_checked(self):
        whole = list(itertools.product(range(7), range(5)))
        batch = self.sample(whole, 'shared:40', 3)
        self.assertEqual(batch.negatives.dst,
                         [self.words(q, 0)[2] * 5 >> 32 for q in range(40)])
        self.assertEqual(batch.negatives.edges, 0)

    def test_all_pairs_are_edges(self):
        whole = list(itertools.product(range(7), range(5)))
        for mode, count in (('binary:1', 9), ('triplet:2', 18)):
            batch = self.sample(whole, mode, 9)
            self.assertEqual(batch.negatives.edges, count)
            # The last redraw is kept.
            self.assertEqual(batch.negatives.dst,
                             [self.words(q, 20)[2] * 5 >> 32
                              for q in range(count)])

    def test_drawn_pairs_are_not_edges_unless_counted(self):
        rng = np.random.default_rng(41)
        for case in range(20):
            typed = bool(case % 2)
            n_d = self.SIZES[1 if typed else 0]
            size = int(rng.integers(1, 60))
            edges = np.stack([rng.integers(0, 7, size),
                              rng.integers(0, n_d, size)], 1).tolist()
            batch = self.sample(edges, ('binary:3', 'triplet:3')[case // 2 % 2],
                                10, typed)
            sources = batch.negatives.src or [
                i % 7 for i in range(10) for _ in range(3)]
            bad = sum([s, d] in edges
                      for s, d in zip(sources, batch.negatives.dst))
            self.assertEqual(batch.negatives.edges, bad)

    def test_either_lists_tell_what_is_an_edge(self):
        graph = homogeneous(7, [(s, d) for s in range(7) for d in range(7)
                                if s < d])
        found = []
        for directions in (('in',), ('out',), ('in', 'out')):
            store = self.store(*graph, 2, directions=directions)
            job = Job(kind='edge', fanouts=[0], negatives='binary:9')
            batch = sample(store, job, 0, 0, pairs([1, 2], [3, 4]))
            negatives = list(zip(batch.negatives.src, batch.negatives.dst))
            self.assertTrue(all(s >= d for s, d in negatives))
            found.append(negatives)
        self.assertEqual(found[1:], found[:1] * 2)

    def test_checks_respect_the_direction(self):
        # For a type with itself: 3 -> 2 is an edge, 2 -> 3 is not.
        edges = [(3, v) for v in range(7) if v != 4]
        batch = self.sample(edges, 'triplet:5', typed=False,
                            seeds=pairs([3, 2], [0, 0]), direction='out')
        self.assertEqual(batch.negatives.edges, 0)
        self.assertEqual(set(batch.negatives.dst[:5]), {4})
        self.assertNotEqual(set(batch.negatives.dst[5:]), {4})

    def test_binary_is_uniform_over_non_edges(self):
        edges = [(s, d) for s, d in itertools.product(range(7), range(5))
                 if (s * d + s) % 3 == 0]
        n = 6000
        batch = self.sample(edges, 'binary:1', n)
        counts = collections.Counter(zip(batch.negatives.src,
                                         batch.negatives.dst))
        free = set(itertools.product(range(7), range(5))) - set(edges)
        self.assertEqual(batch.negatives.edges, 0)
        # 15 of 35 pairs are edges: (15 / 35)^21 is too rare to be counted.
        chi_square(self, counts, dict.fromkeys(free, 1 / len(free)), n)

    def test_triplet_is_uniform_given_the_source(self):
        edges = [(2, 0), (2, 3), (5, 1)]
        n = 4000
        batch = self.sample(edges, 'triplet:2', seeds=pairs(
            [2, 5] * (n // 2), [4] * n))
        by_seed = list(zip(*[iter(batch.negatives.dst)] * 2))
        for source, free in ((0, (1, 2, 4)), (1, (0, 2, 3, 4))):
            # The two negatives of a seed are independent.
            counts = collections.Counter(by_seed[source::2])
            chi_square(self, counts, dict.fromkeys(
                itertools.product(free, free), 1 / len(free)**2), n // 2)

    def test_shared_are_independent(self):
        n = 6000
        drawn = self.sample([(0, 0)], f'shared:{2 * n}').negatives.dst
        counts = collections.Counter(zip(drawn[::2], drawn[1::2]))
        chi_square(self, counts, dict.fromkeys(
            itertools.product(range(5), range(5)), 1 / 25), n)

    def test_remaining_edges_match_the_expected_rate(self):
        n = 4000
        batch = self.sample(self.DENSE, 'binary:1', n)
        p = (32 / 35)**21
        counts = collections.Counter(
            pair in self.DENSE for pair in zip(batch.negatives.src,
                                               batch.negatives.dst))
        self.assertEqual(counts[True], batch.negatives.edges)
        chi_square(self, counts, {True: p, False: 1 - p}, n)

    def test_numbers_of_pairs_are_rounded_up(self):
        for ratio, n, expected in (('0.25', 9, 3), ('1', 9, 9), ('1.5', 3, 5),
                                   ('1e-3', 2, 1), ('1.1', 50, 55)):
            batch = self.sample([(0, 0)], f'binary:{ratio}', n)
            self.assertEqual(len(batch.negatives.src), expected)

    def test_in_batch_draws_none_and_drawn_replace_given(self):
        given = pairs([1, 2], [3, 4], negatives=[[0], [1]])
        self.assertIsNone(self.sample([(0, 0)], 'in-batch').negatives)
        self.assertIsNone(self.sample([(0, 0)], 'in-batch',
                                      seeds=given).negatives)
        self.assertEqual(self.sample([(0, 0)], '', seeds=given).negatives.dst,
                         [0, 1])
        batch = self.sample([(0, 0)], 'triplet:3', seeds=given)
        self.assertEqual(len(batch.negatives.dst), 6)

    def test_refusals(self):
        for message, negatives, options in (
                ('not disjoint', 'shared:3', {'disjoint': True}),
                ('binary:R', 'binary:0', {}), ('binary:R', 'triplet:1.5', {}),
                ('binary:R', 'binary:inf', {}), ('binary:R', 'binary:', {}),
                ('binary:R', 'in-batch:3', {}), ('binary:R', 'random', {})):
            with self.assertRaisesRegex(OracleError, message):
                self.sample([(0, 0)], negatives, **options)


class ExclusionTest(StoreTest):
    """Every edge that a batch may have, by a search over all edges."""

    RELATIONS = (('a', 'x', 'b'), ('b', 'rev_x', 'a'), ('a', 'y', 'a'),
                 ('a', 'rev_y', 'a'), ('b', 'x', 'a'))
    REVERSES = {'a__x__b': ['b__rev_x__a'], 'b__rev_x__a': ['a__x__b'],
                'a__y__a': ['a__y__a', 'a__rev_y__a'],
                'a__rev_y__a': ['a__rev_y__a', 'a__y__a'], 'b__x__a': []}

    def graph(self, rng, timed):
        """Few nodes, so that equal and reverse edges are common."""
        relations = []
        for i, (s, name, d) in enumerate(self.RELATIONS):
            src, dst = rng.integers(0, 5, (2, 40))
            time = rng.integers(0, 4, 40) if timed >> i & 1 else None
            relations.append(Edges(s, name, d, src, dst, time=time))
        return {'a': Nodes(6), 'b': Nodes(6)}, relations

    def excluded(self, relations, job, seeds):
        """{(relation, edge_id)}, following the wording of
        docs/determinism.md."""
        result = set()
        for r in relations:
            name = f'{r.src_type}__{r.name}__{r.dst_type}'
            for e, (s, d) in enumerate(zip(r.src, r.dst)):
                for i, (a, b) in enumerate(zip(seeds.ids, seeds.dst)):
                    same = name == job.type and (s, d) == (a, b)
                    if job.exclude == 'reverse':
                        same |= (name in self.REVERSES[job.type] and
                                 (d, s) == (a, b))
                    if r.time is not None and seeds.times is not None:
                        same &= r.time[e] == seeds.times[i]
                    if same and job.exclude != 'none':
                        result.add((name, e))
        return result

    def reached(self, relations, job, batch, gone):
        """All edges of two hops: {(hop, tree, relation, edge_id)}."""
        found, seen = set(), set()
        src, _, dst = job.type.split('__')
        frontier = {(src, *batch.nodes[src][v]) for v in batch.seed_to_local}
        frontier |= {(dst, *batch.nodes[dst][v]) for v in batch.dst_to_local}
        for hop in range(2):
            seen |= frontier
            reached = set()
            for r in relations:
                name = f'{r.src_type}__{r.name}__{r.dst_type}'
                for e, ends in enumerate(zip(r.src, r.dst)):
                    here, there = ((r.dst_type, ends[1]), (r.src_type,
                                                           ends[0]))
                    if job.direction == 'out':
                        here, there = there, here
                    for type_name, tree, node in frontier:
                        if ((type_name, node) != here or (name, e) in gone or
                                (batch.tree_times and r.time is not None and
                                 r.time[e] > batch.tree_times[tree])):
                            continue
                        found.add((hop, tree, name, e))
                        reached.add((there[0], tree, there[1]))
            frontier = reached - seen
        return found

    def test_excluded_are_absent_and_all_others_present(self):
        rng, removed = np.random.default_rng(42), 0
        for case in range(60):
            timed = int(rng.integers(32))
            nodes, relations = self.graph(rng, timed)
            store = self.store(nodes, relations, 1 + case % 3)
            job = Job(kind='edge', type='__'.join(self.RELATIONS[case % 5]),
                      fanouts=[-1, -1], direction=('in', 'out')[case % 2],
                      exclude=('none', 'self', 'reverse')[case // 3 % 3],
                      disjoint=case % 4 == 1,
                      temporal='uniform' if case % 4 == 3 else '')
            times = (rng.integers(0, 4, 3).tolist()
                     if job.temporal or case % 3 else None)
            seeds = pairs(*rng.integers(0, 5, (2, 3)).tolist(), times=times)
            batch = sample(store, job, 0, 0, seeds)
            gone = self.excluded(relations, job, seeds)
            expected = self.reached(relations, job, batch, gone)
            got = {(e.hop, batch.nodes[name.split('__')[2]][e.dst][0], name,
                    e.edge_id)
                   for name, edges in batch.edges.items() for e in edges}
            self.assertEqual(got, expected)
            removed += len(self.reached(relations, job, batch, set())) - len(
                expected)
        self.assertGreater(removed, 100)

    def test_induced_subgraphs_leave_them_out(self):
        rng = np.random.default_rng(43)
        for case in range(20):
            nodes, relations = self.graph(rng, case)
            store = self.store(nodes, relations, 1 + case % 3)
            job = Job(kind='edge', type='__'.join(self.RELATIONS[case % 5]),
                      method='induced', exclude='reverse')
            seeds = pairs(*rng.integers(0, 5, (2, 3)).tolist())
            batch = sample(store, job, 0, 0, seeds)
            gone = self.excluded(relations, job, seeds)
            for r in relations:
                name = f'{r.src_type}__{r.name}__{r.dst_type}'
                inside = [[v for _, v in batch.nodes[t]]
                          for t in (r.src_type, r.dst_type)]
                expected = {e for e, (s, d) in enumerate(zip(r.src, r.dst))
                            if s in inside[0] and d in inside[1]}
                self.assertEqual({e.edge_id for e in batch.edges[name]},
                                 expected - {e for n, e in gone if n == name})

    STAR = [(v, 0) for v in range(1, 8)]

    def counts(self, n, columns=None, **options):
        """Sets of edge_ids that n trees pick for node 0 from the edges from 1
        .. 7, while those from 2 and 6 are excluded."""
        store = self.store(*homogeneous(8, self.STAR, **(columns or {})))
        job = Job(kind='edge', fanouts=[2], exclude='self', disjoint=True,
                  **options)
        batch = sample(store, job, 0, 0, pairs([2, 6] * (n // 2), [0] * n))
        picks = collections.defaultdict(list)
        for e in batch.edges[LOOP]:
            picks[e.dst].append(e.edge_id)
        return collections.Counter(tuple(sorted(p)) for p in picks.values())

    def test_subsets_of_the_others_are_equally_likely(self):
        subsets = list(itertools.combinations([0, 2, 3, 4, 6], 2))
        for method in ('uniform', 'labor'):
            chi_square(self, self.counts(4000, method=method),
                       dict.fromkeys(subsets, .1), 4000)

    def test_ordered_pairs_with_replacement(self):
        counts = self.counts(4000, replace=True)
        distribution = {(a, b): (1 if a == b else 2) / 25
                        for a, b in itertools.combinations_with_replacement(
                            [0, 2, 3, 4, 6], 2)}
        chi_square(self, counts, distribution, 4000)

    def test_weights_stay_those_of_the_whole_list(self):
        # Relative to the excluded edge from 2 the others become 1 and 1; on
        # their own they would be as 4 to 7.
        weights = [1, 2.**31, 1.75, 0, 0, 2.**30, 0]
        counts = self.counts(3000, {'edge_weight': weights}, weighted=True,
                             replace=True)
        chi_square(self, counts, {(0, 0): .25, (0, 2): .5, (2, 2): .25}, 3000)

    def test_fewer_than_the_fanout_are_all(self):
        store = self.store(*homogeneous(8, self.STAR))
        job = Job(kind='edge', fanouts=[5], exclude='self')
        batch = sample(store, job, 0, 0, pairs([2, 6], [0, 0]))
        self.assertEqual([e.edge_id for e in batch.edges[LOOP]],
                         [0, 2, 3, 4, 6])

    def test_page_rank_walks_avoid_them(self):
        store = self.store(*homogeneous(4, [(0, 1), (0, 2), (1, 3), (2, 3)]))
        job = Job(kind='edge', fanouts=[-1], method='ppr', walks=9,
                  walk_length=2, direction='out', exclude='self')
        batch = sample(store, job, 0, 0, pairs([0], [1]))
        visits = {(originals(batch, 'node', [e.src, e.dst])[0],
                   originals(batch, 'node', [e.src, e.dst])[1]): e.visits
                  for e in batch.edges[LOOP]}
        self.assertEqual(set(visits), {(0, 2), (0, 3), (1, 3)})
        self.assertEqual((visits[0, 2], visits[1, 3]), (9, 9))


if __name__ == '__main__':
    unittest.main()
