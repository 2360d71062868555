# SPDX-License-Identifier: Apache-2.0
"""Reads a store with any number of partitions: docs/format.md.

Everything returned to other files is in original ids."""

import bisect
import functools
import json
import math
import os
from dataclasses import dataclass

import numpy as np

DTYPES = {'uint8': (1, '|u1'), 'int8': (2, '|i1'), 'int32': (3, '<i4'),
          'uint32': (4, '<u4'), 'int64': (5, '<i8'), 'uint64': (6, '<u8'),
          'float16': (7, '<f2'), 'float32': (8, '<f4'),
          'float64': (9, '<f8'), 'bfloat16': (10, '<u2')}


class OracleError(Exception):
    """A store or a job that cannot be used; the message says why."""


class NodeType:
    def __init__(self, store, info):
        self.name, self.count = info['name'], info['count']
        self.offsets = info['offsets']
        self.feature, self.label = info['feature'], info['label']
        self.time = ({'dtype': 'int64', 'shape': []} if info['time'] else
                     None)
        if (len(self.offsets) != store.parts + 1 or
                self.offsets[-1] != self.count):
            raise OracleError(f'{store.root}: offsets of {self.name}')
        self.original = np.concatenate([
            store.array(p, f'nodes/{self.name}/original_id')
            for p in range(store.parts)]).astype(np.int64)
        self.id = np.empty(self.count, np.int64)
        self.id[self.original] = np.arange(self.count)
        if not np.array_equal(np.sort(self.original), np.arange(self.count)):
            raise OracleError(f'{store.root}: original ids of {self.name}')

    def owners(self, originals):
        """The partitions that own nodes."""
        ids = self.id[np.asarray(originals, np.int64)]
        return np.searchsorted(self.offsets, ids, 'right') - 1

    def locate(self, original):
        """The partition that owns a node and the node's row there."""
        node = int(self.id[original])
        part = bisect.bisect_right(self.offsets, node) - 1
        return part, node - self.offsets[part]


class Relation:
    def __init__(self, info):
        self.src, self.dst = info['src'], info['dst']
        self.name = f"{info['src']}__{info['name']}__{info['dst']}"
        self.has = {'in': info['in'], 'out': info['out']}
        self.weight, self.time = info['weight'], info['time']
        self.feature = info['feature']

    def ends(self, direction):
        """The type whose nodes have lists, and the type of neighbours."""
        return ((self.dst, self.src) if direction == 'in' else
                (self.src, self.dst))


@dataclass
class List:
    """A node's list, or a part of it: columns with an element per slot."""
    neighbours: list
    edge_ids: list
    places: list  # (partition, row) of the edge's features, or None
    weights: list = None  # integers; None if the list has no weights
    times: list = None

    def __len__(self):
        return len(self.neighbours)

    def until(self, time):
        """The admissible part: all of the list if it has no times."""
        if self.times is None:
            return self
        return self.part(range(bisect.bisect_right(self.times, time)))

    def part(self, slots):
        """The given slots, in order, as a List."""
        return List(*(column and [column[s] for s in slots] for column in (
            self.neighbours, self.edge_ids, self.places, self.weights,
            self.times)))


def integer_weights(weights):
    """Integers in proportion to one list's weights, largest below 2^32."""
    _, exponent = math.frexp(max(weights, default=0))
    # Doubles represent float32 times a power of two exactly.
    return [max(1, math.floor(math.ldexp(w, 32 - exponent))) if w else 0
            for w in weights]


class Store:
    def __init__(self, root):
        self.root = root
        path = os.path.join(root, 'store.json')
        if not os.path.exists(path):
            raise OracleError(f'{path}: no such file')
        with open(path, encoding='utf-8') as f:
            self.manifest = json.load(f)
        for member, expected in (('format', ['millrace-store']),
                                 ('version', [2, 3]),
                                 ('sampling_version', [1])):
            if self.manifest.get(member) not in expected:
                raise OracleError(f'{path}: {member} is '
                                  f'{self.manifest.get(member)!r}, '
                                  f'expected one of {expected!r}')
        self.parts = self.manifest['parts']
        self.neighbor_original_ids = self.manifest['neighbor_original_ids']
        self.cache, self.lists = {}, {}
        self.types = [NodeType(self, t) for t in self.manifest['node_types']]
        self.by_name = {t.name: t for t in self.types}
        self.relations = [Relation(r) for r in self.manifest['relations']]

    def load(self, path):
        if path not in self.cache:
            full = os.path.join(self.root, path)
            if not os.path.exists(full):
                raise OracleError(f'{full}: no such file')
            self.cache[path] = np.asarray(np.load(full, mmap_mode='r'))
        return self.cache[path]

    def array(self, part, path):
        return self.load(f'part-{part:05d}/{path}.npy')

    def node_splits(self):
        return {s['name'] for s in self.manifest['splits']}

    @functools.lru_cache(None)
    def members(self, type_name, name):
        """A split's original ids; None if the type has no such split."""
        for s in self.manifest['splits']:
            if (s['type'], s['name']) == (type_name, name):
                return frozenset(self.split(type_name, name).tolist())
        return None

    def split(self, type_name, name):
        for s in self.manifest['splits']:
            if (s['type'], s['name']) == (type_name, name):
                return self.load(f'splits/{type_name}/{name}/original_id.npy')
        raise OracleError(f'{self.root}: {type_name} has no split {name!r}')

    def edge_split(self, relation, name):
        """Columns by their names in docs/format.md, with original ids."""
        for s in self.manifest.get('edge_splits', []):
            if (s['relation'], s['name']) == (relation.name, name):
                break
        else:
            raise OracleError(f'{self.root}: {relation.name} has no split '
                              f'{name!r}')
        folder = f'splits/{relation.name}/{name}'
        columns = {'src': 'src_original_id', 'dst': 'dst_original_id'}
        for column in ('edge_id', 'time', 'edge_type', 'label'):
            if s[column]:
                columns[column] = column
        if s['negatives']:
            columns['negative'] = 'negative_original_id'
        split = {c: self.load(f'{folder}/{file}.npy')
                 for c, file in columns.items()}
        for column, values in split.items():
            shape = ((s['count'], s['negatives']) if column == 'negative' else
                     (s['count'],))
            if values.shape != shape:
                raise OracleError(f'{self.root}: {folder}: {column} has the '
                                  f'shape {values.shape}, expected {shape}')
        if s['label']:
            split['label'] = s['label']['dtype'], split['label']
        return split

    def has_edge(self, relation, src, dst):
        direction = 'in' if relation.has['in'] else 'out'
        of, other = (dst, src) if direction == 'in' else (src, dst)
        return other in self.list_of(relation, direction, of).neighbours

    def list_times(self, relation, direction):
        """Where the times of these lists come from; None if they have none."""
        _, other = relation.ends(direction)
        if relation.time == 'neighbor' and not self.by_name[other].time:
            return None
        return relation.time

    def list_of(self, relation, direction, original):
        """A node's whole list."""
        key = relation.name, direction, original
        if key not in self.lists:
            self.lists[key] = self._read_list(*key)
        return self.lists[key]

    def _read_list(self, name, direction, original):
        relation = next(r for r in self.relations if r.name == name)
        if not relation.has[direction]:
            raise OracleError(f'{self.root}: {name} has no {direction}-lists')
        owner_type, other_type = map(self.by_name.get,
                                     relation.ends(direction))
        part, row = owner_type.locate(original)

        def column(file):
            return self.array(part, f'edges/{name}/{direction}/{file}')

        first, last = map(int, column('indptr')[row:row + 2])
        ids = column('indices')[first:last].astype(np.int64)
        result = List(other_type.original[ids].tolist(),
                      column('edge_id')[first:last].tolist(),
                      [None] * len(ids))
        if relation.feature and direction == 'in':
            result.places = [(part, i) for i in range(first, last)]
        elif relation.feature:
            slots = column('slot')[first:last].tolist()
            result.places = [(other_type.locate(v)[0], s)
                             for v, s in zip(result.neighbours, slots)]
        if relation.weight:
            result.weights = integer_weights(
                column('weight')[first:last].tolist())
        if self.list_times(relation, direction):
            result.times = column('time')[first:last].tolist()
        return result

    def node_rows(self, node_type, column, originals):
        """(dtype name, rows as stored), or None if there is no such column."""
        spec = getattr(node_type, column)
        if not spec:
            return None
        ids = node_type.id[np.asarray(originals, np.int64)]
        parts = node_type.owners(originals)
        rows = ids - np.asarray(node_type.offsets)[parts]
        path = f'nodes/{node_type.name}/{column}'
        return spec['dtype'], self._gather(path, spec, parts, rows)

    def edge_rows(self, relation, places):
        spec = relation.feature
        if not spec:
            return None
        parts, rows = np.asarray(places, np.int64).reshape(-1, 2).T
        path = f'edges/{relation.name}/feature'
        return spec['dtype'], self._gather(path, spec, parts, rows)

    def _gather(self, path, spec, parts, rows):
        values = np.empty([len(rows)] + spec['shape'],
                          DTYPES[spec['dtype']][1])
        for part in set(parts.tolist()):
            mine = parts == part
            values[mine] = self.array(part, path)[rows[mine]]
        return values

    def verify(self):
        """Raises unless the columns that repeat others agree with them.
        
        These are: the order of lists, sums of weights, times and original ids
        of neighbours, times of splits, and their ids and owners.
        """
        for relation in self.relations:
            for direction in ('in', 'out'):
                if relation.has[direction]:
                    self._verify_lists(relation, direction)
        for s in self.manifest['splits']:
            node_type, folder = self.by_name[s['type']], (
                f"splits/{s['type']}/{s['name']}")
            seeds = self.split(s['type'], s['name'])
            self._expect(f'{folder}/id', node_type.id[seeds])
            self._expect_counts(folder, s, node_type.owners(seeds))
            if node_type.time:
                self._expect(f'{folder}/time',
                             self.node_rows(node_type, 'time', seeds)[1])

        for s in self.manifest.get('edge_splits', []):
            self._verify_edge_split(s)

    def _verify_edge_split(self, s):
        relation = next(r for r in self.relations if r.name == s['relation'])
        split = self.edge_split(relation, s['name'])
        folder = f"splits/{relation.name}/{s['name']}"
        src, dst = map(self.by_name.get, (relation.src, relation.dst))
        for column, node_type in (('src', src), ('dst', dst),
                                  ('negative', dst)):
            if column in split:
                self._expect(f'{folder}/{column}',
                             node_type.id[split[column]])
        self._expect_counts(folder, s, dst.owners(split['dst']))
        if 'edge_id' in split:
            edges = zip(split['src'].tolist(), split['dst'].tolist(),
                        split['edge_id'].tolist())
            for i, (a, b, edge) in enumerate(edges):
                found = self._ends(relation).get(edge)
                if found not in (None, (a, b)):  # the graph may lack it
                    raise OracleError(
                        f'{self.root}: {folder}: seed {i} joins {a} and {b}, '
                        f'its edge {edge} {found}')

    @functools.lru_cache(None)
    def _ends(self, relation):
        """Source and destination by edge_id."""
        direction = 'in' if relation.has['in'] else 'out'
        owner, _ = relation.ends(direction)
        result = {}
        for v in range(self.by_name[owner].count):
            slots = self.list_of(relation, direction, v)
            for other, edge in zip(slots.neighbours, slots.edge_ids):
                result[edge] = ((other, v) if direction == 'in' else
                                (v, other))
        return result

    def _expect_counts(self, folder, info, owners):
        counts = np.bincount(owners, minlength=self.parts).tolist()
        if (info['count'], info['part_counts']) != (len(owners), counts):
            raise OracleError(f'{self.root}: {folder}: owners have {counts} '
                              f"seeds, not {info['part_counts']}")

    def _expect(self, path, values):
        if not np.array_equal(self.load(f'{path}.npy'), values):
            raise OracleError(f'{self.root}: {path} is not what it should be')

    def _verify_lists(self, relation, direction):
        owner_type, other_type = map(self.by_name.get,
                                     relation.ends(direction))
        neighbours = self.list_times(relation, direction) == 'neighbor'
        for part in range(self.parts):
            first, last = owner_type.offsets[part:part + 2]
            lists = [self.list_of(relation, direction, v)
                     for v in owner_type.original[first:last].tolist()]
            folder = f'part-{part:05d}/edges/{relation.name}/{direction}'
            for slots in lists:
                order = list(zip(slots.times or [0] * len(slots),
                                 slots.edge_ids))
                if order != sorted(order):
                    raise OracleError(f'{self.root}: {folder} has a list out '
                                      'of order')
            others = [v for slots in lists for v in slots.neighbours]
            if relation.weight:
                sums = [np.cumsum(slots.weights, dtype=np.uint64)
                        for slots in lists if len(slots)]
                self._expect(f'{folder}/weight_sum',
                             np.concatenate([np.empty(0, np.uint64), *sums]))
            if neighbours:
                self._expect(f'{folder}/time',
                             self.node_rows(other_type, 'time', others)[1])
            if self.neighbor_original_ids:
                self._expect(f'{folder}/neighbor_original_id', others)
