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


def digest(store, job, batch):
    names = [t.name for t in store.types]
    seed_type = store.by_name[batch.seed_type]
    distinct = len(set(batch.seed_to_local))
    seed_rows = [v for _, v in batch.nodes[batch.seed_type][:distinct]]
    parts = [b'millrace', u32(1), u32(0), u32(names.index(batch.seed_type)),
             array('int64', batch.seeds),
             ABSENT if batch.times is None else array('int64', batch.times),
             ABSENT,
             array('uint32', batch.seed_to_local), u32(len(names))]
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
    parts.append(column(store.node_rows(seed_type, 'label', seed_rows)))
    for node_type in store.types:
        originals = [v for _, v in batch.nodes[node_type.name]]
        parts.append(column(store.node_rows(node_type, 'feature', originals))
                     if job.features else ABSENT)
    for relation in store.relations:
        places = [e.place for e in batch.edges[relation.name]]
        parts.append(column(store.edge_rows(relation, places))
                     if job.edge_features else ABSENT)
    return hashlib.sha256(b''.join(parts)).digest()
