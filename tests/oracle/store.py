# SPDX-License-Identifier: Apache-2.0
"""Reads a store of any number of partitions: docs/format.md.

Everything that leaves this file is in original ids.
"""

import bisect
import json
import os

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
        self.feature = info['feature']

    def ends(self, direction):
        """The type whose nodes have lists, and the type of neighbours."""
        return ((self.dst, self.src) if direction == 'in' else
                (self.src, self.dst))


class Store:
    def __init__(self, root):
        self.root = root
        path = os.path.join(root, 'store.json')
        if not os.path.exists(path):
            raise OracleError(f'{path}: no such file')
        with open(path, encoding='utf-8') as f:
            self.manifest = json.load(f)
        for member, expected in (('format', 'millrace-store'), ('version', 1),
                                 ('sampling_version', 1)):
            if self.manifest.get(member) != expected:
                raise OracleError(f'{path}: {member} is '
                                  f'{self.manifest.get(member)!r}, '
                                  f'expected {expected!r}')
        self.parts = self.manifest['parts']
        self.cache = {}
        self.types = [NodeType(self, t) for t in self.manifest['node_types']]
        self.by_name = {t.name: t for t in self.types}
        self.relations = [Relation(r) for r in self.manifest['relations']]

    def load(self, path):
        if path not in self.cache:
            full = os.path.join(self.root, path)
            if not os.path.exists(full):
                raise OracleError(f'{full}: no such file')
            self.cache[path] = np.load(full, mmap_mode='r')
        return self.cache[path]

    def array(self, part, path):
        return self.load(f'part-{part:05d}/{path}.npy')

    def split(self, type_name, name):
        for s in self.manifest['splits']:
            if (s['type'], s['name']) == (type_name, name):
                return self.load(f'splits/{type_name}/{name}/original_id.npy')
        raise OracleError(f'{self.root}: {type_name} has no split {name!r}')

    def neighbours(self, relation, direction, original):
        """A node's list, in order: (neighbour, edge_id, feature row) each.

        The feature row is (partition, row) or None without edge features.
        """
        if not relation.has[direction]:
            raise OracleError(f'{self.root}: {relation.name} has no '
                              f'{direction}-lists')
        owner_type, other_type = map(self.by_name.get,
                                     relation.ends(direction))
        part, row = owner_type.locate(original)
        folder = f'edges/{relation.name}/{direction}'
        indptr = self.array(part, f'{folder}/indptr')
        edges = slice(int(indptr[row]), int(indptr[row + 1]))
        ids = self.array(part, f'{folder}/indices')[edges].astype(np.int64)
        others = other_type.original[ids].tolist()
        edge_ids = self.array(part, f'{folder}/edge_id')[edges].tolist()
        if not relation.feature:
            rows = [None] * len(others)
        elif direction == 'in':
            rows = [(part, i) for i in range(edges.start, edges.stop)]
        else:
            slots = self.array(part, f'{folder}/slot')[edges].tolist()
            rows = [(other_type.locate(v)[0], s)
                    for v, s in zip(others, slots)]
        return list(zip(others, edge_ids, rows))

    def node_rows(self, node_type, column, originals):
        """(dtype name, rows as stored), or None without the column."""
        spec = getattr(node_type, column)
        if not spec:
            return None
        places = [node_type.locate(v) for v in originals]
        path = f'nodes/{node_type.name}/{column}'
        return spec['dtype'], self._gather(path, spec, places)

    def edge_rows(self, relation, places):
        spec = relation.feature
        if not spec:
            return None
        path = f'edges/{relation.name}/feature'
        return spec['dtype'], self._gather(path, spec, places)

    def _gather(self, path, spec, places):
        rows = np.empty([len(places)] + spec['shape'],
                        DTYPES[spec['dtype']][1])
        for i, (part, row) in enumerate(places):
            rows[i] = self.array(part, path)[row]
        return rows
