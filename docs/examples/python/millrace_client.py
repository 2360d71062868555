# SPDX-License-Identifier: Apache-2.0
"""Batches of a fleet of sampler servers, as NumPy arrays or PyG's Data.

Written from docs/protocol.md and the .proto files alone. Needs grpcio,
protobuf, numpy, and grpcio-tools or protoc. README.md shows its use.
"""

import concurrent.futures

import numpy as np

from millrace_fleet import PROTO, Fleet

IDS_PER_CALL = 1 << 20  # keeps requests below the limit of 16 MiB
SEED_KIND_EDGE, METHOD_INDUCED = 1, 4
# Arrays by the names of their kinds; the others are of the seeds.
NODE_ARRAYS = ('hop_offsets', 'node_id', 'tree')
NODE_ROWS = {'node_feature': 'FEATURE', 'node_label': 'LABEL',
             'original_id': 'ORIGINAL_ID', 'degree': 'DEGREE'}
EDGE_ARRAYS = ('indptr', 'neighbor', 'edge_hop', 'edge_id', 'visits',
               'feature_row', 'edge_feature')


def groups(owners):
    """(partition, places) of as many items as one call may carry."""
    for part in np.unique(owners):
        places = np.flatnonzero(owners == part)
        for first in range(0, len(places), IDS_PER_CALL):
            yield int(part), places[first:first + IDS_PER_CALL]


class Client:
    """The batches of one fleet. Threads may share it."""

    def __init__(self, servers, proto=PROTO, call_timeout=60, wait=20):
        self.fleet = Fleet(servers, proto, call_timeout, wait)
        self.pb, self.schema = self.fleet.pb, self.fleet.schema
        self.types = self.schema.node_types
        self.names = [node_type.name for node_type in self.types]
        self.relations = [(self.names[r.src], r.name, self.names[r.dst])
                          for r in self.schema.relations]

    def owners(self, node_type, ids):
        """The partition that owns each id."""
        offsets = np.asarray(self.types[node_type].offsets, '<u8')
        return np.searchsorted(offsets, ids.astype('<u8'), 'right') - 1

    def resolve(self, node_type, original_ids):
        """Ids of original ids."""
        originals = np.asarray(original_ids, '<i8').ravel()
        count = self.types[node_type].count
        if np.any((originals < 0) | (originals >= count)):
            raise ValueError(f'original ids must be below {count}')
        ids = np.empty(len(originals), '<u4' if count < 1 << 32 else '<u8')
        for part, at in groups(originals // -(-count // self.schema.parts)):
            reply = self.fleet.call('Resolve', self.pb.ResolveRequest(
                node_type=node_type, partition=part,
                original_ids=originals[at].tobytes()))
            ids[at] = np.frombuffer(reply.ids, ids.dtype)
        return ids

    def rows(self, owners, keys, sent=None, home=None, **what):
        """Rows of ids (or FEATURE_ROWs): `sent` by the home, else gathered."""
        field, out = 'rows' if 'edge_relation' in what else 'ids', None
        if sent is not None:
            out = np.empty((len(keys), *sent.shape[1:]), sent.dtype)
            out[owners == home] = sent
        for part, at in groups(owners):
            if part == home:
                continue
            _, arrays = self.fleet.call('Gather', self.pb.GatherRequest(
                partition=part, **{field: keys[at].tobytes()}, **what))
            _, rows = arrays.popitem()
            if out is None:
                out = np.empty((len(keys), *rows.shape[1:]), rows.dtype)
            out[at] = rows
        return out

    def seed_types(self, job):
        """The relation of edge seeds or None; the types of the seeds' ends."""
        if job.seed_kind == SEED_KIND_EDGE:
            names = ['__'.join(names) for names in self.relations]
            number = names.index(job.seed_type or names[0])
            ends = self.schema.relations[number]
            return number, ends.src, ends.dst
        only = 'graph' if job.seed_kind else self.names[0]
        number = self.names.index(job.seed_type or only)
        return None, number, number

    def batch_count(self, job, seeds=None):
        """How many batches an epoch has."""
        relation, node_type, _ = self.seed_types(job)
        splits = {(s.node_type, s.name): s for s in self.schema.splits}
        if relation is not None:
            splits = {(s.relation, s.name): s for s in self.schema.edge_splits}
        if seeds is not None:
            counts = [len(seeds['seed'])]
        else:
            split = splits[node_type if relation is None else relation,
                           job.split]
            counts = split.part_counts if job.seed_order else [split.count]
        spare = 0 if job.drop_last else job.batch_size - 1
        return sum((count + spare) // job.batch_size for count in counts)

    def batches(self, job, epoch=0, seeds=None, ahead=2, **columns):
        """The batches of an epoch, `ahead` of them fetched ahead.

        `job` and `columns`: the fields of Job and Columns. `seeds`: instead of
        a split a dict of arrays of original ids (`seed`; of edge seeds also
        `seed_dst`, `negative_dst`) and `seed_time`, a row for each seed.
        """
        job = self.pb.SampleRequest(job=job).job
        count, size, waiting = self.batch_count(job, seeds), job.batch_size, []
        with concurrent.futures.ThreadPoolExecutor(ahead + 1) as pool:
            for index in range(count + ahead):
                if index < count:
                    own = seeds and {
                        key: np.asarray(values)[index * size:][:size]
                        for key, values in seeds.items()}
                    waiting.append(pool.submit(self.batch, job, epoch, index,
                                               own, **columns))
                if index >= ahead:
                    yield waiting.pop(0).result()

    def add_seeds(self, request, seeds):
        """Resolves explicit seeds; nodes get their own times if need be."""
        relation, src, dst = self.seed_types(request.job)
        ids, times = self.resolve(src, seeds['seed']), seeds.get('seed_time')
        request.explicit_ids = ids.tobytes()
        if relation is not None:
            request.explicit_dst_ids = self.resolve(
                dst, seeds['seed_dst']).tobytes()
            request.explicit_negative_ids = self.resolve(
                dst, seeds.get('negative_dst', ())).tobytes()
        elif (times is None and request.job.temporal and
              self.types[src].has_time):
            times = self.rows(self.owners(src, ids), ids, node_type=src,
                              column='NODE_COLUMN_TIME')
        if times is not None:
            request.explicit_times = np.asarray(times, '<i8').tobytes()

    def batch(self, job, epoch, index, seeds=None, **columns):
        """One batch: arrays are named after their kinds; edges have ends."""
        request = self.pb.SampleRequest(
            job=job, epoch=epoch, batch=index,
            partition=index % self.schema.parts,
            columns={'features': True, 'labels': 'LABEL_ROWS_SEEDS',
                     'original_ids': True, 'edge_ids': True, **columns})
        if seeds is not None:
            self.add_seeds(request, seeds)
        stream, arrays = self.fleet.call('Sample', request)
        relation, _, _ = self.seed_types(request.job)

        def some(kinds, number):
            return {kind: arrays[kind, number] for kind in kinds
                    if (kind, number) in arrays}

        nodes = [some([*NODE_ARRAYS, *NODE_ROWS], number)
                 for number in range(len(self.names))]
        edges = [some(EDGE_ARRAYS, number)
                 for number in range(len(self.relations))]
        owners = [self.owners(number, node['node_id'])
                  for number, node in enumerate(nodes)]
        for number, node in enumerate(nodes):
            self.fill_node(number, node, owners[number], request,
                           stream.partition, relation is None and
                           number == stream.seed_type)
        for number, edge in enumerate(edges):
            ends = self.schema.relations[number]
            lists = ends.src if request.job.direction else ends.dst
            self.add_ends(edge, nodes[lists]['hop_offsets'], request.job)
            if 'edge_feature' in edge:
                edge['edge_feature'] = self.rows(
                    owners[ends.dst][edge['dst']], edge['feature_row'],
                    edge['edge_feature'], stream.partition,
                    edge_relation=number)
        return {'epoch': epoch, 'batch': index, 'hops': stream.hops,
                'direction': request.job.direction,
                'nodes': dict(zip(self.names, nodes)),
                'edges': dict(zip(self.relations, edges)),
                'seed_type': (self.names[stream.seed_type] if relation is None
                              else self.relations[relation]),
                'seeds': {**(seeds or {}), **{
                    kind: array for (kind, _), array in arrays.items()
                    if kind not in (*NODE_ARRAYS, *NODE_ROWS, *EDGE_ARRAYS)}}}

    def fill_node(self, number, node, owners, request, home, is_seed_type):
        """Completes the rows of a node type, of which the home sent its own."""
        for key in set(node) & set(NODE_ROWS):
            end, column = len(owners), NODE_ROWS[key]
            if key == 'degree':
                column = ('OUT_' if request.job.direction else 'IN_') + column
            if key == 'node_label' and request.columns.labels == 1:
                end = int(node['hop_offsets'][1]) if is_seed_type else 0
            node[key] = self.rows(
                owners[:end], node['node_id'][:end], node[key], home,
                node_type=number, column='NODE_COLUMN_' + column,
                feature_dtype=request.columns.feature_dtype)

    def add_ends(self, edge, hop_offsets, job):
        """Adds local ids of the ends, and hops, from the CSR."""
        indptr, neighbor = edge['indptr'], edge['neighbor']
        node = np.repeat(np.arange(len(indptr) - 1, dtype='<u4'),
                         np.diff(indptr))
        edge['src'], edge['dst'] = ((node, neighbor) if job.direction else
                                    (neighbor, node))
        hop = np.searchsorted(hop_offsets, node, 'right') - 1
        hop *= job.method != METHOD_INDUCED
        edge.setdefault('edge_hop', hop.astype('u1'))


def to_pyg(batch):
    """A batch as Data or HeteroData, like those of torch_geometric's loaders.

    Messages go from row 0 of edge_index to row 1, towards the seeds: against
    the edges where out-lists were sampled, whose relations are `rev_NAME` then.
    """
    import torch
    from torch_geometric.data import Data, HeteroData

    def tensor(array):
        wide = array.dtype.kind == 'u' and array.dtype.itemsize > 1
        return torch.from_numpy(array.astype('<i8') if wide else array)

    def copy(store, arrays, names):
        for kind, name in names.items():
            if kind in arrays:
                store[name] = tensor(arrays[kind])

    one = len(batch['nodes']) == len(batch['edges']) == 1
    data, seeds = Data() if one else HeteroData(), batch['seeds']
    for name, node in batch['nodes'].items():
        store = data if one else data[name]
        store.num_nodes = len(node['node_id'])
        store.num_sampled_nodes = np.diff(node['hop_offsets']).tolist()
        copy(store, node, {'node_id': 'n_id', 'original_id': 'n_id',
                           'node_feature': 'x', 'node_label': 'y',
                           'tree': 'batch', 'degree': 'degree'})
        if name == batch['seed_type']:
            store.batch_size = int(node['hop_offsets'][1])
            copy(store, seeds, {'seed': 'input_id', 'seed_time': 'seed_time',
                                'seed_to_local': 'seed_to_local',
                                'walks': 'walks'})
    for (src, relation, dst), edge in batch['edges'].items():
        key, ends = (src, relation, dst), [edge['src'], edge['dst']]
        if batch['direction']:
            key, ends = (dst, 'rev_' + relation, src), ends[::-1]
        store = data if one else data[key]
        store.edge_index = tensor(np.stack(ends))
        store.num_sampled_edges = np.bincount(
            edge['edge_hop'], minlength=batch['hops']).tolist()
        copy(store, edge, {'edge_id': 'e_id', 'edge_feature': 'edge_attr',
                           'visits': 'visits'})
        if (src, relation, dst) == batch['seed_type']:
            add_edge_seeds(store, seeds, tensor)
    return data


def add_edge_seeds(store, seeds, tensor):
    """Pairs as LinkNeighborLoader's: drawn ones come last, with label 0."""
    ends = [seeds['seed_to_local'], seeds['dst_local']]
    label = seeds.get('seed_label')
    if 'negative_src_local' in seeds:
        label = np.ones(len(ends[0]), 'f4') if label is None else label
        drawn = [seeds['negative_src_local'], seeds['negative_local']]
        ends = [np.concatenate(pair) for pair in zip(ends, drawn)]
        label = np.append(label, np.zeros(len(drawn[0]), label.dtype))
    elif 'negative_local' in seeds:
        store.dst_neg_index = tensor(seeds['negative_local'])
    store.edge_label_index = tensor(np.stack(ends))
    if label is not None:
        store.edge_label = tensor(label)
