# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle's whole graphs as seeds, and of what graphs and pairs as
seeds add to digests, to printed objects and to stores."""

import hashlib
import itertools
import json
import struct
import unittest
from dataclasses import replace

import numpy as np

import digest
from job import Job
from sampler import sample
from seeds import SeedPlan
from store import OracleError
from store_writer import EdgeSplit, Edges, Nodes, homogeneous
from test_edges import LOOP, pairs
from test_oracle import CommandCases, StoreTest


def some_split(rng, edges, counts, size=13):
    """Pairs, most of which are edges and some repeated; all columns."""
    edge_id = rng.integers(0, len(edges), size)
    src, dst = np.asarray(edges)[edge_id].T.copy()
    src[::3] = rng.integers(0, counts[0], len(src[::3]))
    src[-2:], dst[-2:] = src[:2], dst[:2]
    return EdgeSplit(src, dst, time=rng.integers(0, 9, size),
                     edge_type=rng.integers(0, 4, size),
                     label=rng.random(size, '<f4'),
                     negative=rng.integers(0, counts[1], (size, 2)))


def collection(rng, graphs, empty=()):
    """Graphs of up to 5 nodes, which are not contiguous; those in `empty` have
    none. Two node types, one of them with a reverse relation."""
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
    """No batch around pairs or graphs may depend on the partitions."""

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
    """The bytes that pairs and graphs add to a digest, by hand."""
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
        # The digest includes times although the job is not temporal.
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

    def test_drawn_pairs_come_last_with_label_0(self):
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

    def test_inconsistent_columns(self):
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
