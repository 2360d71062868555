# SPDX-License-Identifier: Apache-2.0
"""Writes small stores for tests, following docs/format.md.

XXH3 comes from libxxhash, the library that the C++ side links."""

import ctypes
import hashlib
import json
import os
import uuid
from dataclasses import dataclass, field

import numpy as np

from store import DTYPES, integer_weights


@dataclass
class Nodes:
    count: int
    feature: object = None      # [count, d]
    label: object = None        # [count] or [count, k]
    time: object = None         # [count]
    feature_dtype: str = ''     # 'bfloat16' for uint16 features
    splits: dict = field(default_factory=dict)  # name: original ids


@dataclass
class EdgeSplit:
    """Pairs of original ids, in order, and their columns."""
    src: object
    dst: object
    edge_id: object = None
    time: object = None
    edge_type: object = None
    label: object = None
    negative: object = None     # [pairs, k] destinations


@dataclass
class Edges:
    """A relation: columns have one row per edge, in edge_id order."""
    src_type: str
    name: str
    dst_type: str
    src: object
    dst: object
    feature: object = None
    weight: object = None
    time: object = None
    splits: dict = field(default_factory=dict)  # name: EdgeSplit


def xxh3(data):
    library = ctypes.CDLL('libxxhash.so.0')
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return f'{library.XXH3_64bits(data, len(data)):016x}'


def id_dtype(count):
    return '<u4' if count < 1 << 32 else '<u8'


def homogeneous(count, edges, **columns):
    """(nodes, relations) of a graph of one type; edges is [(src, dst)]."""
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    edge_columns = {k: columns.pop(f'edge_{k}')
                    for k in ('feature', 'weight', 'time', 'splits')
                    if f'edge_{k}' in columns}
    relation = Edges('node', 'to', 'node', pairs[:, 0], pairs[:, 1],
                     **edge_columns)
    return {'node': Nodes(count, **columns)}, [relation]


def write_store(root, nodes, relations, parts=1, seed=0,
                directions=('in', 'out')):
    """Assigns nodes to random partitions; with parts=1 ids are original ids.

    With several partitions, the lists contain the neighbours' original ids."""
    _Writer(root, nodes, relations, parts, seed, directions).run()


class _Writer:
    def __init__(self, root, nodes, relations, parts, seed, directions):
        self.root, self.nodes, self.relations = root, nodes, relations
        self.parts, self.directions = parts, directions
        self.rng = np.random.default_rng(seed)
        self.files = []
        # Per type: original ids by id, ids by original id, offsets, hotness.
        self.original, self.id, self.offsets, self.hot = {}, {}, {}, {}

    def run(self):
        os.makedirs(self.root)
        for name, nodes in self.nodes.items():
            self.number(name, nodes)
            self.write_nodes(name, nodes)
        relations = [self.write_relation(r) for r in self.relations]
        splits = [self.write_edge_split(r, name, split)
                  for r in self.relations for name, split in r.splits.items()]
        self.write_manifest(relations, splits)

    def save(self, path, values, dtype):
        path += '.npy'
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        np.save(full, np.ascontiguousarray(values, dtype))
        with open(full, 'rb') as f:
            data = f.read()
        self.files.append({'path': path, 'bytes': len(data),
                           'xxh3': xxh3(data)})

    def number(self, name, nodes):
        n = nodes.count
        owner = self.rng.integers(self.parts, size=n)
        hot = self.rng.integers(5, size=n).astype('<f4')
        if self.parts == 1:
            hot[:] = 0
        order = np.lexsort((np.arange(n), -hot, owner))
        self.original[name], self.hot[name] = order, hot[order]
        self.id[name] = np.empty(n, np.int64)
        self.id[name][order] = np.arange(n)
        self.offsets[name] = np.searchsorted(
            owner[order], np.arange(self.parts + 1)).tolist()

    def write_nodes(self, name, nodes):
        ids = id_dtype(nodes.count)
        width = -(-nodes.count // self.parts)
        for p in range(self.parts):
            folder = f'part-{p:05d}'
            rows = slice(*self.offsets[name][p:p + 2])
            mine = self.original[name][rows]
            self.save(f'{folder}/nodes/{name}/original_id', mine, ids)
            for column in ('feature', 'label', 'time'):
                values = getattr(nodes, column)
                if values is not None:
                    values = np.asarray(values)
                    self.save(f'{folder}/nodes/{name}/{column}',
                              values[mine], values.dtype)
            if self.parts > 1:
                self.save(f'{folder}/nodes/{name}/hotness',
                          self.hot[name][rows], '<f4')
            self.save(f'{folder}/lookup/{name}',
                      self.id[name][p * width:(p + 1) * width], ids)
        for split, originals in nodes.splits.items():
            originals = np.sort(originals)
            self.save(f'splits/{name}/{split}/original_id', originals, '<i8')
            self.save(f'splits/{name}/{split}/id', self.id[name][originals],
                      ids)
            if nodes.time is not None:
                self.save(f'splits/{name}/{split}/time',
                          np.asarray(nodes.time)[originals], '<i8')

    def write_relation(self, r):
        name = f'{r.src_type}__{r.name}__{r.dst_type}'
        ends = {'in': (r.dst_type, r.dst, r.src_type, r.src),
                'out': (r.src_type, r.src, r.dst_type, r.dst)}
        count = len(r.src)
        node_times = [self.nodes[t].time for t in (r.src_type, r.dst_type)]
        list_time = 'edge' if r.time is not None else (
            'neighbor' if any(t is not None for t in node_times) else None)
        slot = np.empty(count, np.int64)
        for direction in ('in', 'out'):  # 'in' first: it fills `slot`
            owner_type, owner, other_type, other = ends[direction]
            time = r.time
            if time is None and self.nodes[other_type].time is not None:
                time = np.asarray(self.nodes[other_type].time)[other]
            at = self.id[owner_type][owner]
            order = np.lexsort((np.arange(count),
                                np.zeros(count) if time is None else time,
                                at))
            columns = {'indices': (self.id[other_type][other],
                                   id_dtype(self.nodes[other_type].count)),
                       'edge_id': (np.arange(count), '<i8')}
            if self.parts > 1:
                columns['neighbor_original_id'] = (np.asarray(other),
                                                   columns['indices'][1])
            if r.weight is not None:
                columns['weight'] = np.asarray(r.weight), '<f4'
                columns['weight_sum'] = weight_sums(r.weight, at, order), '<u8'
            if time is not None:
                columns['time'] = np.asarray(time), '<i8'
            if direction == 'out' and r.feature is not None:
                columns['slot'] = slot, '<i8'
            for p in range(self.parts):
                first, last = self.offsets[owner_type][p:p + 2]
                cut = np.searchsorted(at[order], np.arange(first, last + 1))
                mine = order[cut[0]:cut[-1]]
                folder = f'part-{p:05d}/edges/{name}'
                if direction == 'in':
                    slot[mine] = np.arange(len(mine))
                    if r.feature is not None:
                        values = np.asarray(r.feature)
                        self.save(f'{folder}/feature', values[mine],
                                  values.dtype)
                if direction in self.directions:
                    folder += f'/{direction}'
                    self.save(f'{folder}/indptr', cut - cut[0], '<i8')
                    for column, (values, dtype) in columns.items():
                        self.save(f'{folder}/{column}', values[mine], dtype)
        return {'src': r.src_type, 'name': r.name, 'dst': r.dst_type,
                'edges': count, 'max_edge_id': count - 1,
                'in': 'in' in self.directions,
                'out': 'out' in self.directions,
                'weight': r.weight is not None, 'time': list_time,
                'type': False, 'feature': spec(r.feature)}

    def write_edge_split(self, r, name, split):
        relation = f'{r.src_type}__{r.name}__{r.dst_type}'
        folder = f'splits/{relation}/{name}'
        for column, end in (('src', r.src_type), ('dst', r.dst_type),
                            ('negative', r.dst_type)):
            originals = getattr(split, column)
            if originals is not None:
                originals = np.asarray(originals, np.int64)
                self.save(f'{folder}/{column}', self.id[end][originals],
                          id_dtype(self.nodes[end].count))
                self.save(f'{folder}/{column}_original_id', originals, '<i8')
        for column, dtype in (('edge_id', '<i8'), ('time', '<i8'),
                              ('edge_type', '<i4'), ('label', None)):
            values = getattr(split, column)
            if values is not None:
                values = np.asarray(values)
                self.save(f'{folder}/{column}', values, dtype or values.dtype)
        return {'relation': relation, 'name': name, 'count': len(split.src),
                'part_counts': self.part_counts(r.dst_type, split.dst),
                'fingerprint': self.split_fingerprint(folder),
                **{c: getattr(split, c) is not None
                   for c in ('edge_id', 'time', 'edge_type')},
                'label': spec(split.label),
                'negatives': (0 if split.negative is None else
                              np.shape(split.negative)[1])}

    def write_manifest(self, relations, edge_splits):
        types = [{'name': name, 'count': n.count,
                  'offsets': self.offsets[name],
                  'id_dtype': ('uint32' if id_dtype(n.count) == '<u4' else
                               'uint64'),
                  'feature': spec(n.feature, n.feature_dtype),
                  'label': spec(n.label), 'time': n.time is not None,
                  'hotness': self.parts > 1}
                 for name, n in self.nodes.items()]
        splits = [{'type': name, 'name': split, 'count': len(originals),
                   'part_counts': self.part_counts(name, originals),
                   'fingerprint': self.split_fingerprint(
                       f'splits/{name}/{split}')}
                  for name, n in self.nodes.items()
                  for split, originals in n.splits.items()]
        fingerprint = self.fingerprint(
            lambda path: not path.startswith('splits/'))
        dataset = (fingerprint if self.parts == 1 else
                   hashlib.sha256(b'given').hexdigest())
        method = 'given' if self.parts > 1 else 'none'
        manifest = {
            'format': 'millrace-store', 'version': 3, 'sampling_version': 1,
            'uuid': str(uuid.UUID(int=int(self.rng.integers(1 << 62)),
                                  version=4)),
            'fingerprint': fingerprint, 'dataset_fingerprint': dataset,
            'parts': self.parts,
            'partitioning': {'method': method, 'seed': 0, 'hot': 'degree'},
            'node_types': types, 'relations': relations,
            'neighbor_original_ids': self.parts > 1, 'splits': splits,
            'files': self.files, 'checksum': '0' * 16}
        if edge_splits:
            manifest['edge_splits'] = edge_splits
        text = json.dumps(manifest, indent=1)
        checksum = xxh3(text.encode())
        text = text.replace('"checksum": "' + '0' * 16,
                            '"checksum": "' + checksum)
        with open(os.path.join(self.root, 'store.json'), 'w',
                  encoding='utf-8') as f:
            f.write(text)

    def fingerprint(self, counts):
        """The fingerprint of the files whose paths `counts` accepts."""
        lines = ''.join(f"{f['path']} {f['bytes']} {f['xxh3']}\n"
                        for f in sorted(self.files, key=lambda f: f['path'])
                        if counts(f['path']))
        return hashlib.sha256(lines.encode()).hexdigest()

    def split_fingerprint(self, folder):
        ids = ('id.npy', 'src.npy', 'dst.npy', 'negative.npy')
        return self.fingerprint(
            lambda path: path.startswith(f'{folder}/')
            and os.path.basename(path) not in ids)

    def part_counts(self, name, originals):
        # Histogram bins [offset p, offset p + 1), empty ones included.
        return np.histogram(self.id[name][np.asarray(originals, np.int64)],
                            np.array(self.offsets[name]) - 0.5)[0].tolist()


def weight_sums(weights, owners, order):
    """For each edge, the sum of its list's integer weights up to it."""
    sums = np.zeros(len(order), np.uint64)
    ends = np.flatnonzero(np.diff(owners[order], append=-1)) + 1
    for mine in np.split(order, ends):
        integers = integer_weights(np.asarray(weights, '<f4')[mine].tolist())
        sums[mine] = np.cumsum(np.array(integers, np.uint64))
    return sums


def spec(values, dtype=''):
    if values is None:
        return None
    values = np.asarray(values)
    names = {npy: name for name, (_, npy) in DTYPES.items()
             if name != 'bfloat16'}
    return {'dtype': dtype or names[values.dtype.str],
            'shape': list(values.shape[1:])}
