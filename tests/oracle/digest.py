# SPDX-License-Identifier: Apache-2.0
"""Digests of batches: docs/determinism.md, section 7."""

import hashlib
import struct

import numpy as np

from store import DTYPES

ABSENT = struct.pack('<I', 0)


def u32(value):
    return struct.pack('<I', value)


def array(dtype, values):
    number, npy = DTYPES[dtype]
    values = np.ascontiguousarray(values, npy)
    return (u32(number) + u32(values.ndim) +
            struct.pack(f'<{values.ndim}Q', *values.shape) + values.tobytes())


def column(rows):
    return ABSENT if rows is None else array(*rows)


def optional(dtype, values):
    return ABSENT if values is None else array(dtype, values)


def seed_arrays(store, batch):
    names = [t.name for t in store.types]
    if batch.kind == 'edge':
        names = [r.name for r in store.relations]
    negatives = batch.negatives
    return [u32(('node', 'edge', 'graph').index(batch.kind)),
            u32(names.index(batch.seed_type)),
            array('int64', batch.seeds.ids),
            optional('int64', batch.times),
            optional('int64', negatives and negatives.dst),
            array('uint32', batch.seed_to_local)]


def pair_arrays(batch):
    seeds, negatives = batch.seeds, batch.negatives
    return [array('int64', seeds.dst), column(seeds.labels),
            optional('int32', seeds.edge_types),
            optional('int64', negatives and negatives.src),
            array('uint32', batch.dst_to_local),
            optional('uint32', batch.negative_src_to_local),
            optional('uint32', batch.negative_to_local)]


def seed_labels(store, batch):
    if batch.kind == 'edge':
        return ABSENT
    seeds = batch.nodes[batch.seed_type][:len(set(batch.seed_to_local))]
    return column(store.node_rows(store.by_name[batch.seed_type], 'label',
                                  [v for _, v in seeds]))


def digest(store, job, batch):
    names = [t.name for t in store.types]
    parts = [b'millrace', u32(1), *seed_arrays(store, batch)]
    if batch.kind == 'edge':
        parts += pair_arrays(batch)
    parts.append(u32(len(names)))
    for name in names:
        nodes = batch.nodes[name]
        parts.append(array('int64', [v for _, v in nodes]))
        parts.append(array('uint32', [t for t, _ in nodes])
                     if batch.disjoint else ABSENT)
    parts.append(u32(len(store.relations)))
    for relation in store.relations:
        edges = batch.edges[relation.name]
        parts += [array('uint8', [e.hop for e in edges]),
                  array('uint32', [e.src for e in edges]),
                  array('uint32', [e.dst for e in edges]),
                  array('int64', [e.edge_id for e in edges])]
        if job.method == 'ppr':
            parts.append(array('uint32', [e.visits for e in edges]))
    if job.method == 'walk':
        shape = len(batch.walks), job.walk_length + 1
        parts.append(array('int32', np.reshape(batch.walks, shape)))
    parts.append(seed_labels(store, batch))
    for node_type in store.types:
        originals = [v for _, v in batch.nodes[node_type.name]]
        parts.append(column(store.node_rows(node_type, 'feature', originals))
                     if job.features else ABSENT)
    for relation in store.relations:
        places = [e.place for e in batch.edges[relation.name]]
        parts.append(column(store.edge_rows(relation, places))
                     if job.edge_features else ABSENT)
    return hashlib.sha256(b''.join(parts)).digest()
