# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle's seeds that are pairs of nodes or whole graphs.

Against brute force over all edges, against words straight from the cipher,
and against exact laws: each chi-square test fails by chance with probability
ALPHA; keys are fixed, so that a pass is a pass for ever.
"""

import collections
import hashlib
import itertools
import json
import struct
import unittest
from dataclasses import replace

import numpy as np

import digest
from job import Job
from philox import philox
from sampler import sample
from seeds import Seeds, SeedPlan
from store import OracleError
from store_writer import EdgeSplit, Edges, Nodes, homogeneous
from test_kinds import chi_square
from test_oracle import CommandCases, StoreTest

LOOP = 'node__to__node'


def pairs(src, dst, **columns):
    return Seeds(list(src), dst=list(dst), **columns)


def originals(batch, name, locals_):
    return [batch.nodes[name][v][1] for v in locals_]


def trees_of(batch, name, locals_):
    return [batch.nodes[name][v][0] for v in locals_]


def some_split(rng, edges, counts, size=13):
    """Pairs of which most are edges, some of them twice; all columns."""
    edge_id = rng.integers(0, len(edges), size)
    src, dst = np.asarray(edges)[edge_id].T.copy()
    src[::3] = rng.integers(0, counts[0], len(src[::3]))
    src[-2:], dst[-2:] = src[:2], dst[:2]
    return EdgeSplit(src, dst, time=rng.integers(0, 9, size),
                     edge_type=rng.integers(0, 4, size),
                     label=rng.random(size, '<f4'),
                     negative=rng.integers(0, counts[1], (size, 2)))


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
    """Of a relation between types of 7 and 5 nodes, or of a type with
    itself."""
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
        """The stream of number q, straight from the cipher."""
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
            # What stays is the last redraw.
            self.assertEqual(batch.negatives.dst,
                             [self.words(q, 20)[2] * 5 >> 32
                              for q in range(count)])

    def test_no_drawn_one_is_an_edge_unless_counted(self):
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

    def test_checks_know_the_direction(self):
        # Of a type with itself 3 -> 2 is an edge, 2 -> 3 is none.
        edges = [(3, v) for v in range(7) if v != 4]
        batch = self.sample(edges, 'triplet:5', typed=False,
                            seeds=pairs([3, 2], [0, 0]), direction='out')
        self.assertEqual(batch.negatives.edges, 0)
        self.assertEqual(set(batch.negatives.dst[:5]), {4})
        self.assertNotEqual(set(batch.negatives.dst[5:]), {4})

    def test_binary_is_uniform_over_pairs_that_are_no_edges(self):
        edges = [(s, d) for s, d in itertools.product(range(7), range(5))
                 if (s * d + s) % 3 == 0]
        n = 6000
        batch = self.sample(edges, 'binary:1', n)
        counts = collections.Counter(zip(batch.negatives.src,
                                         batch.negatives.dst))
        free = set(itertools.product(range(7), range(5))) - set(edges)
        self.assertEqual(batch.negatives.edges, 0)
        # 15 of 35 pairs are edges: (15 / 35)^21 is beyond any count.
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

    def test_as_many_stay_edges_as_the_law_says(self):
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
        """Few nodes, so that equal and reverse edges abound."""
        relations = []
        for i, (s, name, d) in enumerate(self.RELATIONS):
            src, dst = rng.integers(0, 5, (2, 40))
            time = rng.integers(0, 4, 40) if timed >> i & 1 else None
            relations.append(Edges(s, name, d, src, dst, time=time))
        return {'a': Nodes(6), 'b': Nodes(6)}, relations

    def excluded(self, relations, job, seeds):
        """{(relation, edge_id)}, by the page's words."""
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
        """Sets of edge_ids that n trees pick for node 0, of the edges from
        1 .. 7, while those from 2 and 6 are left out."""
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
        law = {(a, b): (1 if a == b else 2) / 25
               for a, b in itertools.combinations_with_replacement(
                   [0, 2, 3, 4, 6], 2)}
        chi_square(self, counts, law, 4000)

    def test_weights_stay_those_of_the_whole_list(self):
        # By the edge from 2, which is left out, the others become 1 and 1;
        # by themselves they would be as 4 to 7.
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

    def test_page_ranks_walk_around_them(self):
        store = self.store(*homogeneous(4, [(0, 1), (0, 2), (1, 3), (2, 3)]))
        job = Job(kind='edge', fanouts=[-1], method='ppr', walks=9,
                  walk_length=2, direction='out', exclude='self')
        batch = sample(store, job, 0, 0, pairs([0], [1]))
        visits = {(originals(batch, 'node', [e.src, e.dst])[0],
                   originals(batch, 'node', [e.src, e.dst])[1]): e.visits
                  for e in batch.edges[LOOP]}
        self.assertEqual(set(visits), {(0, 2), (0, 3), (1, 3)})
        self.assertEqual((visits[0, 2], visits[1, 3]), (9, 9))


def collection(rng, graphs, empty=()):
    """Graphs of up to 5 nodes, which are not contiguous; those of `empty`
    have none. Two types of nodes, one of them with a relation back."""
    sizes = [0 if g in empty else int(rng.integers(1, 6))
             for g in range(graphs)]
    graph_of = rng.permutation(np.repeat(np.arange(graphs), sizes))
    count = len(graph_of)
    members = [np.flatnonzero(graph_of == g) for g in range(graphs)]
    edges = np.array([rng.choice(m, 2) for m in members if len(m)
                      for _ in range(3 * len(m))])
    rng.shuffle(edges)
    nodes = {'node': Nodes(count, feature=rng.random((count, 2), '<f4')),
             'graph': Nodes(graphs, label=rng.integers(0, 2, graphs),
                            splits={'train': rng.permutation(graphs)[
                                :graphs * 3 // 4]})}
    relations = [Edges('node', 'to', 'node', *edges.T,
                       feature=rng.random((len(edges), 1), '<f4')),
                 Edges('node', 'in', 'graph', np.arange(count), graph_of)]
    return nodes, relations


class GraphTest(StoreTest):
    def test_brute_force(self):
        rng = np.random.default_rng(44)
        for case in range(12):
            nodes, relations = collection(rng, 9, (3,))
            store = self.store(nodes, relations, 1 + case % 3)
            job = Job(kind='graph', disjoint=bool(case % 2))
            seeds = rng.integers(0, 9, 4).tolist() + [3]
            batch = sample(store, job, 0, 0, seeds)
            wanted = (list(enumerate(seeds)) if job.disjoint else
                      [(0, g) for g in dict.fromkeys(seeds)])
            self.assertEqual(batch.nodes['graph'], wanted)
            to, within = relations
            self.assertEqual(
                batch.nodes['node'],
                [(tree, v) for tree, g in wanted
                 for v in np.flatnonzero(within.dst == g).tolist()])
            for r, name, hop in ((within, 'node__in__graph', 0),
                                 (to, LOOP, 1)):
                ends = r.src.tolist(), r.dst.tolist()
                local = [{node: i for i, node in
                          enumerate(batch.nodes[name.split('__')[end]])}
                         for end in (0, 2)]
                trees = range(5) if job.disjoint else [0]
                expected = {(hop, local[0][t, s], local[1][t, d], e)
                            for t in trees
                            for e, (s, d) in enumerate(zip(*ends))
                            if (t, s) in local[0] and (t, d) in local[1]}
                got = [(e.hop, e.src, e.dst, e.edge_id)
                       for e in batch.edges[name]]
                self.assertEqual(set(got), expected)
                self.assertEqual(len(got), len(expected))

    def test_the_type_that_is_named(self):
        pairs_ = np.arange(3), np.array([0, 0, 1])
        nodes = {'atom': Nodes(3), 'bond': Nodes(3), 'molecule': Nodes(2)}
        store = self.store(nodes, [
            Edges('molecule', 'like', 'molecule', [1], [0]),
            Edges('atom', 'of', 'molecule', *pairs_),
            Edges('molecule', 'has', 'atom', *pairs_[::-1]),
            Edges('bond', 'of', 'molecule', *pairs_)])
        batch = sample(store, Job(kind='graph', type='molecule'), 0, 0, [0])
        self.assertEqual({name: [v for _, v in rows]
                          for name, rows in batch.nodes.items()},
                         {'atom': [0, 1], 'bond': [0, 1],
                          'molecule': [0, 1]})
        self.assertEqual({name: [e.hop for e in edges]
                          for name, edges in batch.edges.items()},
                         {'molecule__like__molecule': [0],
                          'atom__of__molecule': [0, 0],
                          'molecule__has__atom': [1, 1],
                          'bond__of__molecule': [0, 0]})

    def test_refusals(self):
        store = self.store(*collection(np.random.default_rng(45), 4))
        for options in ({'fanouts': [1]}, {'direction': 'out'},
                        {'method': 'induced'}, {'weighted': True},
                        {'temporal': 'last'}, {'negatives': 'in-batch'},
                        {'exclude': 'self'}):
            with self.assertRaises(OracleError):
                sample(store, Job(kind='graph', **options), 0, 0, [0])
        with self.assertRaisesRegex(OracleError, 'seed 0 is 4'):
            sample(store, Job(kind='graph'), 0, 0, [4])


class PartitionTest(StoreTest):
    """No batch around pairs or graphs depends on the partitions."""

    def compare(self, graph, options_list):
        stores = [self.store(*graph, parts, seed=parts)
                  for parts in (1, 2, 4)]
        for store in stores:
            store.verify()
        for options in options_list:
            job = Job(batch_size=7, **options)
            first, *others = [self.digests(store, job) for store in stores]
            for other in others:
                self.assertEqual(other, first, options)

    @staticmethod
    def digests(store, job):
        plan = SeedPlan(store, job)
        return [digest.digest(store, job,
                              sample(store, job, 0, b, plan.seeds(0, b)))
                for b in range(min(2, len(plan.batches)))]

    def jobs(self, type_name):
        kinds = [{'fanouts': [3, 2]}, {'fanouts': [2, -1], 'disjoint': True},
                 {'fanouts': [3, 2], 'temporal': 'last'},
                 {'fanouts': [3, 2], 'weighted': True},
                 {'fanouts': [3, 2], 'method': 'labor'},
                 {'fanouts': [2], 'method': 'induced'}]
        for i, (kind, negatives) in enumerate(itertools.product(
                kinds, ('', 'binary:1.5', 'triplet:2', 'shared:3',
                        'in-batch'))):
            if negatives != 'shared:3' or len(kind) == 1:
                yield {'kind': 'edge', 'type': type_name, **kind,
                       'negatives': negatives,
                       'exclude': ('none', 'self', 'reverse')[i % 3],
                       'direction': ('in', 'out')[i % 2],
                       'edge_features': True}

    def test_homogeneous(self):
        rng = np.random.default_rng(46)
        edges = rng.integers(0, 25, (120, 2))
        edges = np.concatenate([edges, edges[:40, ::-1]])
        self.compare(homogeneous(
            30, edges, edge_time=rng.integers(0, 9, 160),
            edge_weight=rng.integers(0, 4, 160).astype('<f4'),
            edge_feature=rng.random((160, 1)),
            edge_splits={'train': some_split(rng, edges, (30, 30))}),
                     self.jobs(LOOP))

    def test_heterogeneous(self):
        rng = np.random.default_rng(47)
        counts = {'a': 20, 'b': 9}
        ends = rng.integers(0, 20, 60), rng.integers(0, 9, 60)

        def relation(src, name, dst, ends, **columns):
            return Edges(src, name, dst, *ends, time=rng.integers(0, 9, 60),
                         weight=rng.integers(0, 4, 60).astype('<f4'),
                         feature=rng.random((60, 1)), **columns)
        relations = [relation('a', 'x', 'b', ends), relation(
            'b', 'rev_x', 'a', ends[::-1], splits={'train': some_split(
                rng, np.stack(ends[::-1], 1), (9, 20))})]
        self.compare(({name: Nodes(n) for name, n in counts.items()},
                      relations), self.jobs('b__rev_x__a'))

    def test_graphs(self):
        self.compare(collection(np.random.default_rng(48), 12),
                     [{'kind': 'graph'},
                      {'kind': 'graph', 'disjoint': True,
                       'edge_features': True}])


class DigestTest(StoreTest):
    """The bytes that pairs and graphs add, by hand."""
    ABSENT = struct.pack('<I', 0)

    @staticmethod
    def ints(number, *values):
        form = {3: 'i', 4: 'I', 5: 'q', 8: 'f', 1: 'B'}[number]
        return struct.pack(f'<IIQ{len(values)}{form}', number, 1,
                           len(values), *values)

    def rest(self, *nodes):
        return b''.join([struct.pack('<I', 1), self.ints(5, *nodes),
                         self.ABSENT, struct.pack('<I', 1), self.ints(1),
                         self.ints(4), self.ints(4), self.ints(5)] +
                        [self.ABSENT] * 3)

    def check(self, seeds, head, nodes, **options):
        store = self.store(*homogeneous(9, [(8, 8)], label=range(9)))
        job = Job(kind='edge', fanouts=[0], **options)
        batch = sample(store, job, 0, 0, seeds)
        self.assertEqual(
            digest.digest(store, job, batch),
            hashlib.sha256(b'millrace' + struct.pack('<III', 1, 1, 0) +
                           b''.join(head(batch)) +
                           self.rest(*nodes(batch))).digest())

    def test_bare_pairs(self):
        self.check(pairs([4, 2], [2, 7]), lambda _: [
            self.ints(5, 4, 2), self.ABSENT, self.ABSENT, self.ints(4, 0, 1),
            self.ints(5, 2, 7), self.ABSENT, self.ABSENT, self.ABSENT,
            self.ints(4, 1, 2), self.ABSENT, self.ABSENT],
                   lambda _: [4, 2, 7])

    def test_all_columns(self):
        # Times stand in the digest although the job is not temporal.
        seeds = pairs([4, 2], [2, 7], times=[-1, 5], edge_types=[3, 0],
                      labels=('float32', np.array([.5, 1], '<f4')),
                      negatives=[[4, 1], [2, 2]])
        self.check(seeds, lambda _: [
            self.ints(5, 4, 2), self.ints(5, -1, 5), self.ints(5, 4, 1, 2, 2),
            self.ints(4, 0, 1), self.ints(5, 2, 7), self.ints(8, .5, 1),
            self.ints(3, 3, 0), self.ABSENT, self.ints(4, 1, 2), self.ABSENT,
            self.ints(4, 0, 3, 1, 1)], lambda _: [4, 2, 7, 1])

    def test_drawn_pairs(self):
        def head(batch):
            n = batch.negatives
            return [self.ints(5, 4, 2), self.ABSENT, self.ints(5, *n.dst),
                    self.ints(4, 0, 1), self.ints(5, 2, 7), self.ABSENT,
                    self.ABSENT, self.ints(5, *n.src), self.ints(4, 1, 2),
                    self.ints(4, *batch.negative_src_to_local),
                    self.ints(4, *batch.negative_to_local)]
        self.check(pairs([4, 2], [2, 7]), head,
                   lambda batch: [v for _, v in batch.nodes['node']],
                   negatives='binary:2')

    def test_graphs(self):
        nodes = {'graph': Nodes(2, label=[5, 6])}
        store = self.store(nodes, [Edges('graph', 'to', 'graph', [], [])])
        job = Job(kind='graph')
        got = digest.digest(store, job, sample(store, job, 0, 0, [1, 1]))
        self.assertEqual(got, hashlib.sha256(b''.join([
            b'millrace', struct.pack('<III', 1, 2, 0), self.ints(5, 1, 1),
            self.ABSENT, self.ABSENT, self.ints(4, 0, 0),
            struct.pack('<I', 1), self.ints(5, 1), self.ABSENT,
            struct.pack('<I', 1), self.ints(1), self.ints(4), self.ints(4),
            self.ints(5), self.ints(5, 6), self.ABSENT,
            self.ABSENT])).digest())


class CommandTest(CommandCases):
    """What pairs and graphs add to the printed object."""

    def sample(self, graph, *args):
        store = self.store(*graph)
        code, out, err = self.run_oracle('sample', '--store', store.root,
                                         *args)
        self.assertEqual((code, err), (0, ''))
        return json.loads(out)

    def test_explicit_pairs(self):
        got = self.sample(
            homogeneous(9, [(8, 3), (3, 8), (1, 3)]), '--fanouts', '-1',
            '--seeds', 'edge', '--seed-ids', '8,2', '--seed-dst-ids', '3,2',
            '--seed-times', '-5,6', '--exclude-seed-edges', 'reverse')
        self.assertEqual(got, {
            'epoch': 0, 'batch': 0,
            'seeds': {'type': LOOP, 'src': [8, 2], 'dst': [3, 2],
                      'label': [], 'time': [-5, 6], 'neg': []},
            'seed_to_local': [[0, 1], [2, 1]],
            'nodes': {'node': [8, 2, 3, 1]},
            'edges': {LOOP: {'hop': [0], 'src': [3], 'dst': [2],
                             'edge_id': [2]}}})

    def split(self, **columns):
        return homogeneous(9, [(8, 3)], edge_splits={
            'train': EdgeSplit([8, 2], [3, 2], **columns)})

    OPTIONS = '--seeds', 'edge', '--fanouts', '0', '--no-shuffle'

    def test_drawn_pairs_stand_behind_with_label_0(self):
        for columns, labels in (({}, [1, 1]),
                                ({'label': [2.5, np.nan]}, [2.5, None])):
            got = self.sample(self.split(**columns), *self.OPTIONS,
                              '--negatives', 'binary:2')
            seeds = got['seeds']
            self.assertEqual(seeds['src'][:2] + seeds['dst'][:2],
                             [8, 2, 3, 2])
            self.assertEqual(seeds['label'], labels + [0] * 4)
            self.assertEqual(seeds['neg'], [])
            nodes = got['nodes']['node']
            for i, ends in enumerate(('src', 'dst')):
                self.assertEqual([nodes[v] for v in got['seed_to_local'][i]],
                                 seeds[ends])
                self.assertEqual(len(seeds[ends]), 6)
            self.assertEqual(got['false_negatives'], 0)

    def test_given_columns(self):
        got = self.sample(self.split(
            label=[4, 5], time=[1, 2], edge_type=[7, 0],
            negative=[[1, 8], [2, 2]]), *self.OPTIONS)
        self.assertEqual(got['seeds'], {
            'type': LOOP, 'src': [8, 2], 'dst': [3, 2], 'label': [4, 5],
            'time': [1, 2], 'edge_type': [7, 0], 'neg': [1, 8, 2, 2]})
        self.assertEqual(got['seed_to_local'],
                         [[0, 1], [2, 1], [3, 0, 1, 1]])
        self.assertNotIn('false_negatives', got)

    def test_graphs(self):
        nodes = {'node': Nodes(4), 'graph': Nodes(3, label=[7, 8, 9])}
        got = self.sample(
            (nodes, [Edges('node', 'in', 'graph', range(4), [2, 0, 2, 1])]),
            '--seeds', 'graph', '--seed-ids', '0,2', '--with-features')
        self.assertEqual(got, {
            'epoch': 0, 'batch': 0,
            'seeds': {'type': 'graph', 'graphs': [0, 2]},
            'seed_to_local': [0, 1], 'graph_of': {'node': [0, 1, 1]},
            'nodes': {'node': [1, 0, 2], 'graph': [0, 2]},
            'edges': {'node__in__graph': {
                'hop': [0, 0, 0], 'src': [0, 1, 2], 'dst': [0, 1, 1],
                'edge_id': [1, 0, 2]}}, 'x': {}, 'y': {'graph': [7, 9]}})

    def test_failures_name_the_cause(self):
        store = self.store(*self.split())
        for args, message in (
                (['--seeds', 'edge', '--seed-ids', '1'], '0 of 1'),
                (['--seeds', 'edge', '--seed-ids', '1', '--seed-dst-ids',
                  '1,2'], '2 of 1'),
                (['--seeds', 'edge', '--seed-ids', '1', '--seed-dst-ids',
                  '1', '--seed-times', '1,2'], '--seed-times: 2 of 1'),
                (['--seeds', 'edge', '--seed-dst-ids', '1'], '--seed-ids'),
                (['--seed-ids', '1', '--seed-dst-ids', '1'], 'edge'),
                (['--seed-ids', '1', '--negatives', 'in-batch'], 'edge'),
                (['--seed-ids', '1', '--exclude-seed-edges', 'self'],
                 'edge'),
                (['--seed-ids', '1', '--seed-times', '4'], 'not temporal'),
                (['--seeds', 'edge', '--temporal', 'last'], 'no times'),
                (['--seeds', 'edge', '--split', 'valid'], "'valid'"),
                (['--seeds', 'graph'], 'graph')):
            code, _, err = self.run_oracle('sample', '--store', store.root,
                                           '--fanouts', '1', *args)
            self.assertEqual(code, 1)
            self.assertIn(message, err)

    def test_walks_and_page_ranks(self):
        store = self.store(*self.split())
        walk = {'walks': 2, 'walk_length': 2, 'kind': 'edge'}
        with self.assertRaisesRegex(OracleError, 'walk'):
            sample(store, Job(method='walk', **walk), 0, 0, pairs([1], [2]))
        nodes = {name: Nodes(3) for name in 'abc'}
        store = self.store(nodes, [Edges('a', 'x', 'b', [0], [0]),
                                   Edges('c', 'y', 'c', [0], [0])])
        with self.assertRaisesRegex(OracleError, "seeds' types"):
            sample(store, Job(method='ppr', type='a__x__b', fanouts=[1],
                              metapath=['c__y__c'], **walk), 0, 0,
                   pairs([1], [2]))


class VerifyTest(StoreTest):
    def test_every_combination_of_columns(self):
        rng = np.random.default_rng(49)
        edges = rng.integers(0, 9, (30, 2))
        whole = some_split(rng, edges, (9, 9))
        optional = ('time', 'edge_type', 'label', 'negative')
        splits = {}
        for size in range(5):
            for chosen in itertools.combinations(optional, size):
                splits['-'.join(chosen) or 'bare'] = replace(
                    whole, **{c: None for c in optional if c not in chosen})
        splits['ids'] = EdgeSplit(*edges.T, edge_id=np.arange(30))
        store = self.store(*homogeneous(9, edges, edge_splits=splits), 3)
        store.verify()
        for name, split in splits.items():
            job = Job(kind='edge', split=name, shuffle=False)
            seeds = SeedPlan(store, job).seeds(0, 0)
            self.assertEqual(seeds.ids, split.src.tolist())
            for column, values in (('times', split.time),
                                   ('edge_types', split.edge_type),
                                   ('negatives', split.negative)):
                self.assertEqual(getattr(seeds, column),
                                 None if values is None else values.tolist())
            self.assertEqual(seeds.labels is None, split.label is None)

    def test_what_disagrees(self):
        rng = np.random.default_rng(50)
        edges = np.stack([np.arange(9), rng.permutation(9)], 1)
        split = EdgeSplit(*edges.T, edge_id=np.arange(9),
                          negative=rng.integers(0, 9, (9, 2)))
        folder = f'splits/{LOOP}/train'
        for column in ('src', 'dst', 'negative', 'edge_id',
                       'dst_original_id'):
            store = self.store(*homogeneous(9, edges,
                                            edge_splits={'train': split}), 2)
            store.verify()
            values = np.array(store.load(f'{folder}/{column}.npy'))
            values[0] = (values[0] + 1) % 9
            store.cache[f'{folder}/{column}.npy'] = values
            with self.assertRaises(OracleError):
                store.verify()
        store = self.store(*homogeneous(9, edges,
                                        edge_splits={'train': split}), 2)
        store.manifest['edge_splits'][0]['part_counts'] = [9, 0]
        with self.assertRaisesRegex(OracleError, 'owners'):
            store.verify()
        store.manifest['edge_splits'][0]['negatives'] = 3
        with self.assertRaisesRegex(OracleError, 'shape'):
            store.verify()


if __name__ == '__main__':
    unittest.main()
