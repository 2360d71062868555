# SPDX-License-Identifier: Apache-2.0
"""The datasets that compare.py compares jobs on."""

import itertools
import os
from dataclasses import dataclass

import numpy as np

from compare_jobs import Kinds, Pairs
from store_writer import EdgeSplit, Edges, Nodes, homogeneous, write_store

PARTS = (1, 2, 3, 7)
FEW_PARTS = (1, 2, 3, 4)
METHODS = ('metis', 'ldg', 'random', 'hash')


@dataclass
class Case:
    stores: list        # stores of one dataset
    extra: list         # options for all jobs
    count: int          # nodes of the seeds' type
    kinds: Kinds = None  # for jobs other than node-wise ones; None: none
    pairs: Pairs = None  # the same for pairs
    graphs: bool = False  # whether to run jobs around whole graphs too
    common: bool = True  # whether to run node-wise jobs too
    seed_times: bool = True  # whether seeds of temporal jobs get own times
    time_unit: int = 1
    features: bool = True  # whether to print features on all stores


def partition(make, dataset):
    """The dataset, and its stores with 1, 2, 3 and 7 partitions."""
    stores = [dataset]
    for parts, method in zip(PARTS, METHODS):
        stores.append(f'{dataset}-{parts}')
        make('partition', dataset, '--parts', str(parts), '--out', stores[-1],
             '--method', method, '--directions', 'both',
             '--neighbor-original-ids')
    return stores


def write_parts(folder, name, nodes, relations, all_parts=PARTS):
    """The dataset and its stores, by the oracle's own writer."""
    stores = []
    for parts in all_parts:
        stores.append(os.path.join(folder, f'{name}-{parts}'))
        write_store(stores[-1], nodes, relations, parts, seed=parts)
    return stores


def save(folder, name, values):
    path = os.path.join(folder, name + '.npy')
    np.save(path, values)
    return path


def cora(make, folder, source):
    dataset = os.path.join(folder, 'cora')
    make('import', 'ogb', source, '--split', 'public', '--undirected',
         '--coalesce', '--out', dataset)
    yield Case(partition(make, dataset), [], 2708,
               Kinds(one_relation=True), features=False)


def generated(make, folder):
    """Multi-edges, self loops, isolated nodes, edge features; imported."""
    rng = np.random.default_rng(11)
    count, size = 200, 900
    edges = rng.integers(0, 120, (2, size))
    edges[:, 100:140] = edges[:, 60:100]          # multi-edges
    edges[1, 140:170] = edges[0, 140:170]         # self loops
    edges[1, 170:400] = 5                         # a hub
    order = rng.permutation(count)
    dataset = os.path.join(folder, 'generated')
    make('import', 'npy', '--edges', save(folder, 'edges', edges),
         '--features', save(folder, 'x', rng.standard_normal((count, 5), 'f')),
         '--labels', save(folder, 'y', rng.integers(0, 4, count)),
         '--edge-features', save(folder, 'e',
                                 rng.standard_normal((size, 3), 'f')),
         '--train', save(folder, 'train', order[:101]),
         '--valid', save(folder, 'valid', order[101:130]),
         '--test', save(folder, 'test', order[130:]), '--out', dataset)
    stores = partition(make, dataset)
    yield Case(stores, ['--edge-features'], count)
    yield Case(stores, [], count,
               Kinds(edge_features=True, one_relation=True), common=False)
    yield Case(stores[:3], ['--split', 'valid'], count)


def odd_weights(rng, size, owners):
    """Zeros, equal weights, 60 powers of two, the smallest and the largest
    floats, and lists with only zeros."""
    weights = np.exp2(rng.integers(-30, 30, size)) * rng.random(size)
    weights[rng.random(size) < .2] = 0
    weights[rng.random(size) < .3] = 1
    weights[rng.random(size) < .03] = 2.**-149
    weights[rng.random(size) < .03] = np.finfo('<f4').max
    weights[owners % 5 == 0] = 0
    return weights.astype('<f4')


def columns(make, folder):
    """Weights, edge features, and times of edges and of nodes, unsorted and
    some of them equal; imported with reverse edges."""
    rng = np.random.default_rng(14)
    count, size = 80, 500
    edges = rng.integers(0, 70, (2, size))
    edges[:, 100:120] = edges[:, 60:80]
    edges[1, 170:260] = 6
    node_times = rng.integers(-2, 8, count)
    times = node_times[edges].max(0) + rng.integers(0, 3, size)
    dataset = os.path.join(folder, 'columns')
    make('import', 'npy', '--edges', save(folder, 'c-edges', edges),
         '--edge-weights', save(folder, 'c-w', odd_weights(rng, size,
                                                           edges[1])),
         '--edge-times', save(folder, 'c-t', times),
         '--node-times', save(folder, 'c-n', node_times),
         '--edge-features', save(folder, 'c-e',
                                 rng.standard_normal((size, 2), 'f')),
         '--num-nodes', str(count),
         '--train', save(folder, 'c-train', rng.permutation(count)[:50]),
         '--undirected', '--out', dataset)
    yield Case(partition(make, dataset), [], count,
               Kinds(True, True, True, True), common=False)


def heterogeneous(make, folder):
    """Three types, two relations between the same pair; imported."""
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
    make('import', 'npy', *args, '--labels', f'user={labels}',
         '--split-fractions', '0.7,0.2,0.1', '--out', dataset)
    stores = partition(make, dataset)
    yield Case(stores, ['--type', 'user'], counts['user'],
               Kinds(loop='user__knows__user', paths=(
                   'item__bought__user,user__buys__item',
                   'user__buys__item,item__bought__user,user__knows__user')))
    yield Case(stores[::2], ['--type', 'user', '--fanouts',
                             'user__buys__item=2', '--fanouts',
                             'item__bought__user=-1'], counts['user'])


def written(folder):
    """Stores by the oracle's writer: bfloat16, two-dimensional labels and
    labels with NaN, times, weights, a type without edges, empty partitions."""
    rng = np.random.default_rng(13)
    graph = homogeneous(
        30, rng.integers(0, 25, (120, 2)),
        label=np.where(rng.random(30) < .3, np.nan, 1).astype('<f4'),
        time=rng.integers(0, 9, 30), edge_weight=rng.random(120, '<f4'),
        splits={'train': rng.permutation(30)[:20]})
    yield Case(write_parts(folder, 'timed', *graph), [], 30,
               Kinds(True, True, one_relation=True))
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
    yield Case(write_parts(folder, 'typed', nodes, relations),
               ['--type', 'a', '--edge-features'], 4, Kinds())


def written_kinds(folder):
    """Odd weights; times of edges only; times of some types only."""
    rng = np.random.default_rng(15)
    edges = rng.integers(0, 45, (300, 2))
    graph = homogeneous(
        50, edges, edge_weight=odd_weights(rng, 300, edges[:, 1]),
        edge_time=rng.integers(-16, 16, 300) << 59,
        edge_feature=rng.random((300, 1)),
        splits={'train': rng.permutation(50)[:31]})
    yield Case(write_parts(folder, 'linked', *graph), [], 50,
               Kinds(True, True, True, True), common=False, seed_times=False,
               time_unit=1 << 59)
    nodes = {'u': Nodes(20, time=rng.integers(0, 9, 20),
                        splits={'train': rng.permutation(20)[:13]}),
             'v': Nodes(30, label=rng.integers(0, 3, 30)),
             'w': Nodes(9, time=rng.integers(0, 9, 9))}
    relations = []
    for s, n, d, size, timed in (('u', 'x', 'v', 90, False),
                                 ('v', 'y', 'u', 80, False),
                                 ('v', 'y', 'w', 60, True),
                                 ('w', 'z', 'u', 50, False),
                                 ('u', 'o', 'u', 70, True)):
        ends = [rng.integers(0, nodes[t].count, size) for t in (s, d)]
        relations.append(Edges(
            s, n, d, *ends, weight=odd_weights(rng, size, ends[1]),
            time=rng.integers(0, 9, size) if timed else None,
            feature=rng.random((size, 2), '<f4') if timed else None))
    yield Case(write_parts(folder, 'mixed', nodes, relations),
               ['--type', 'u'], 20,
               Kinds(True, True, True, loop='u__o__u', paths=(
                   'v__y__u,u__x__v,u__o__u', 'u__x__v,v__y__w,w__z__u')),
               common=False)


def pair_splits(rng, src, dst, counts, size=37):
    """Edges and other pairs, some of them repeated, with all columns."""
    edge_id = rng.integers(0, len(src), size)
    src, dst = src[edge_id], dst[edge_id]
    src[::3] = rng.integers(0, counts[0], len(src[::3]))
    src[-3:], dst[-3:] = src[:3], dst[:3]
    train = EdgeSplit(src, dst, time=rng.integers(0, 9, size),
                      edge_type=rng.integers(-1, 4, size),
                      label=rng.integers(0, 3, size))
    given = EdgeSplit(dst=dst, src=src, time=train.time,
                      label=np.where(rng.random(size) < .2, np.nan,
                                     1.5).astype('<f4'),
                      negative=rng.integers(0, counts[1], (size, 2)))
    return {'train': train, 'given': given, 'bare': EdgeSplit(src, dst)}


def column_splits(rng, src, dst, count):
    """Splits with one column, with each pair of columns, and with all, by
    name."""
    edge_id = rng.permutation(len(src))[:11]
    columns = {'edge_id': edge_id, 'time': edge_id - 5,
               'edge_type': edge_id % 3, 'label': edge_id / 7,
               'negative': rng.integers(0, count, (11, 1))}
    return {'-'.join(names): EdgeSplit(src[edge_id], dst[edge_id],
                                       **{c: columns[c] for c in names})
            for size in (1, 2, len(columns))
            for names in itertools.combinations(columns, size)}


def paired(folder):
    """Pairs of a type with itself: reverse edges, multi-edges, self loops, a
    node to which almost all have edges; a dense graph."""
    rng = np.random.default_rng(31)
    edges = rng.integers(0, 36, (2, 220))
    edges[1, :60], edges[0, :36] = 7, np.arange(36)
    edges = np.concatenate([edges, edges[::-1, 50:110], edges[:, :20]], 1)
    size = edges.shape[1]
    columns = column_splits(rng, *edges, 40)
    graph = homogeneous(
        40, edges.T, time=rng.integers(0, 9, 40),
        edge_time=rng.integers(0, 9, size),
        edge_weight=odd_weights(rng, size, edges[1]),
        edge_feature=rng.random((size, 2), '<f4'),
        edge_splits=pair_splits(rng, *edges, (40, 40)) | columns)
    yield Case(write_parts(folder, 'paired', *graph, FEW_PARTS), [], 150,
               pairs=Pairs({'node__to__node': (40, 40)}, True, True, True,
                           splits=list(columns)), common=False)
    dense = rng.permutation(list(itertools.product(range(9), range(9))))[:74]
    graph = homogeneous(9, dense, feature=rng.random((9, 1), '<f4'),
                        edge_splits=pair_splits(rng, *dense.T, (9, 9)))
    yield Case(write_parts(folder, 'dense', *graph, FEW_PARTS[1:3]), [], 150,
               pairs=Pairs({'node__to__node': (9, 9)}), common=False)


def paired_types(folder):
    """Pairs of two types; relations with reverses, and one that only looks like
    a reverse; edges with and without times."""
    rng = np.random.default_rng(32)
    counts = {'user': 30, 'item': 17}
    nodes = {'user': Nodes(30, label=rng.integers(0, 3, 30)),
             'item': Nodes(17, feature=rng.random((17, 2), '<f4'),
                           time=rng.integers(0, 9, 17))}
    relations, ends = [], {}
    for s, n, d, timed in (('user', 'buys', 'item', True),
                           ('item', 'rev_buys', 'user', True),
                           ('user', 'knows', 'user', False),
                           ('user', 'rev_knows', 'user', True),
                           ('item', 'buys', 'user', True)):
        ends[n] = ends.get(n[4:], rng.integers(0, (counts[s], counts[d]),
                                               (90, 2)).T)[::-1]
        src, dst = ends[n] = ends[n][::-1] if n[:4] != 'rev_' else ends[n]
        relations.append(Edges(
            s, n, d, src, dst, weight=odd_weights(rng, 90, dst),
            time=rng.integers(0, 4, 90) if timed else None,
            splits=pair_splits(rng, src, dst, (counts[s], counts[d]))))
    yield Case(write_parts(folder, 'paired-types', nodes, relations,
                           FEW_PARTS[1:]), [], 150,
               pairs=Pairs({f'{r.src_type}__{r.name}__{r.dst_type}':
                            (counts[r.src_type], counts[r.dst_type])
                            for r in relations}, True, True), common=False)


def imported_pairs(make, folder):
    """Pairs from seeds files on an imported graph that includes reverse edges.
    """
    rng = np.random.default_rng(33)
    edges = rng.integers(0, 50, (2, 200))
    dataset = os.path.join(folder, 'pairs')
    make('import', 'npy', '--edges', f'a__to__b={save(folder, "p-e", edges)}',
         '--edge-times', f'a__to__b={save(folder, "p-t", edges[0] % 7)}',
         '--num-nodes', 'a=60', '--num-nodes', 'b=50', '--add-reverse',
         '--out', dataset)
    pairs = np.stack([edges[0], edges[1], edges[0] % 7], 1)[:40]
    pairs[::4, 0] = rng.integers(0, 60, 10)
    files = [save(folder, 'p-2', pairs[:, :2]), save(folder, 'p-3', pairs)]
    times = save(folder, 'p-times', pairs[:, 2])

    def split(store, name, *options):
        make('split', store, '--type', 'a__to__b', '--name', name, *options)
    split(dataset, 'all', '--all')
    split(dataset, 'ids', '--ids', save(folder, 'p-i', edges[0, :30] * 4))
    split(dataset, 'bare', '--pairs', files[0])
    split(dataset, 'given', '--pairs', files[0], '--times', times,
          '--labels', save(folder, 'p-l', rng.random(40)), '--negatives',
          save(folder, 'p-n', rng.integers(0, 50, (40, 3))))
    stores = partition(make, dataset)[:4]
    for store in stores:  # added to each store, after partitioning
        split(store, 'train', '--pairs', files[0], '--times', times,
              '--edge-types', save(folder, 'p-k', pairs[:, 0]))
    of = {'a__to__b': (60, 50)}
    yield Case(stores[1:], [], 200, pairs=Pairs(of, times=True, files=files),
               common=False)
    yield Case(stores[::3], [], 200, common=False,
               pairs=Pairs(of, times=True, splits=['all', 'ids', 'bare']))


def collections(make, folder):
    """Whole graphs whose nodes are not contiguous; imported, and by the
    oracle's writer with empty graphs."""
    rng = np.random.default_rng(34)
    graph_of = np.concatenate([np.arange(25), rng.integers(0, 25, 60)])
    rng.shuffle(graph_of)
    src = np.repeat(np.arange(85), 3)
    dst = np.array([rng.choice(np.flatnonzero(graph_of == graph_of[v]))
                    for v in src])
    x = rng.random((85, 2), '<f4')
    dataset = os.path.join(folder, 'graphs')
    make('import', 'npy', '--edges', 'node__to__node=' +
         save(folder, 'g-e', np.stack([src, dst])), '--edges',
         'node__in__graph=' + save(folder, 'g-i', np.stack([np.arange(85),
                                                            graph_of])),
         '--features', 'node=' + save(folder, 'g-x', x),
         '--labels', 'graph=' + save(folder, 'g-y', np.arange(25) % 2),
         '--train', 'graph=' + save(folder, 'g-t', np.arange(0, 25, 2)),
         '--add-reverse', '--out', dataset)
    yield Case(partition(make, dataset), [], 25, graphs=True, common=False)
    nodes = {'atom': Nodes(85, feature=x),
             'molecule': Nodes(31, label=rng.random((31, 2), '<f4'),
                               splits={'train': rng.permutation(31)[:26]})}
    relations = [Edges('atom', 'in', 'molecule', np.arange(85),
                       graph_of + graph_of // 9),
                 Edges('atom', 'to', 'atom', src, dst,
                       feature=rng.random((255, 1), '<f4'))]
    yield Case(write_parts(folder, 'molecules', nodes, relations, FEW_PARTS),
               ['--type', 'molecule', '--edge-features'], 31, graphs=True,
               common=False)


def all_cases(make, folder, cora_source):
    yield from written(folder)
    yield from paired(folder)
    yield from paired_types(folder)
    yield from imported_pairs(make, folder)
    yield from collections(make, folder)
    yield from written_kinds(folder)
    yield from generated(make, folder)
    yield from columns(make, folder)
    yield from heterogeneous(make, folder)
    yield from cora(make, folder, cora_source)
