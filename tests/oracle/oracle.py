#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second implementation of Millrace's sampler: slow and obvious.

Prints the output of `millrace sample` and `millrace digest` for the same
arguments; written only from docs/determinism.md and docs/format.md."""

import argparse
import functools
import hashlib
import json
import sys

import numpy as np

from digest import digest
from job import METHODS, Job, check_job
from sampler import sample
from seeds import Seeds, SeedPlan
from store import OracleError, Store


@functools.lru_cache(None)
def make_parser():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    commands = parser.add_subparsers(dest='command', required=True)
    for name in ('sample', 'digest'):
        p = commands.add_parser(name)
        p.add_argument('--store', required=True)
        p.add_argument('--seeds', choices=['node', 'edge', 'graph'],
                       default='node')
        p.add_argument('--split', default='train')
        p.add_argument('--type', default='')
        p.add_argument('--seeds-file')
        p.add_argument('--fanouts', action='append', default=[])
        p.add_argument('--batch-size', type=int, default=1024)
        p.add_argument('--seed', type=int, default=1)
        p.add_argument('--shuffle', default=True,
                       action=argparse.BooleanOptionalAction)
        p.add_argument('--seed-order', choices=['global', 'local'],
                       default='global')
        for flag in ('--drop-last', '--replace', '--disjoint',
                     '--no-features', '--edge-features', '--weighted'):
            p.add_argument(flag, action='store_true')
        p.add_argument('--method', choices=METHODS, default='uniform')
        p.add_argument('--temporal', choices=['uniform', 'last'], default='')
        p.add_argument('--walks', type=int, default=0)
        p.add_argument('--walk-length', type=int, default=0)
        p.add_argument('--restart', type=float, default=0.15)
        p.add_argument('--walk-p', type=float, default=1)
        p.add_argument('--walk-q', type=float, default=1)
        p.add_argument('--metapath', default='')
        p.add_argument('--train-graph', default='full')
        p.add_argument('--negatives', default='')
        p.add_argument('--exclude-seed-edges', default='none',
                       choices=['none', 'self', 'reverse'])
        p.add_argument('--direction', choices=['in', 'out'], default='in')
        p.add_argument('--epoch', type=int, default=0)
        if name == 'sample':
            p.add_argument('--batch', type=int, default=0)
            p.add_argument('--seed-ids')
            p.add_argument('--seed-dst-ids')
            p.add_argument('--seed-times')
            p.add_argument('--with-features', action='store_true')
            p.add_argument('--json', action='store_true')
        else:
            p.add_argument('--batches', type=int)
    return parser


def parse_args(argv):
    return make_parser().parse_args(join_numbers(argv))


def join_numbers(argv):
    """Makes `--fanouts -1,2` one word, since argparse takes -1,2 for an option.
    """
    words = iter(argv)
    return [w if w not in ('--fanouts', '--seed-times') else
            f'{w}={next(words, "")}' for w in words]


def integers(text):
    return [int(v) for v in text.split(',')]


def make_job(args):
    job = Job(kind=args.seeds, type=args.type, split=args.split,
              batch_size=args.batch_size, seed=args.seed, shuffle=args.shuffle,
              seed_order=args.seed_order, drop_last=args.drop_last,
              replace=args.replace, disjoint=args.disjoint,
              direction=args.direction, features=not args.no_features,
              edge_features=args.edge_features, method=args.method,
              weighted=args.weighted, temporal=args.temporal,
              walks=args.walks, walk_length=args.walk_length,
              restart=args.restart, walk_p=args.walk_p, walk_q=args.walk_q,
              negatives=args.negatives,
              exclude=args.exclude_seed_edges, train_graph=args.train_graph,
              metapath=[x for x in args.metapath.split(',') if x])
    for text in args.fanouts:
        name, _, numbers = text.rpartition('=')
        fanouts = integers(numbers)
        if min(fanouts) < -1:
            raise OracleError(f'--fanouts {text}: a fanout is -1 or more')
        if name:
            job.relation_fanouts[name] = fanouts
        else:
            job.fanouts = fanouts
    if args.seeds_file:
        job.seeds_file = np.load(args.seeds_file)
    return job


def to_json(store, job, batch, with_features):
    columns = ['hop', 'src', 'dst', 'edge_id']
    if job.method == 'ppr':
        columns.append('visits')
    nodes = {name: [v for _, v in rows] for name, rows in batch.nodes.items()}
    out = {'epoch': batch.epoch, 'batch': batch.index,
           **(pairs_json(batch) if batch.kind == 'edge' else
              seeds_json(store, batch)), 'nodes': nodes}
    if batch.disjoint:
        out['trees'] = {name: [t for t, _ in rows]
                        for name, rows in batch.nodes.items()}
    out['edges'] = {
        name: {key: [getattr(e, key) for e in edges]
               for key in columns}
        for name, edges in batch.edges.items()}
    if job.edge_features:
        for r in store.relations:
            if r.feature:
                places = [e.place for e in batch.edges[r.name]]
                out['edges'][r.name]['x'] = floats(store.edge_rows(r, places))
    if batch.walks is not None:
        out['walks'] = batch.walks
    if with_features:
        out['x'] = {t.name: floats(store.node_rows(t, 'feature',
                                                   nodes[t.name]))
                    for t in store.types if t.feature}
        out['y'] = {}
        if batch.kind != 'edge' and store.by_name[batch.seed_type].label:
            seeds = nodes[batch.seed_type][:len(set(batch.seed_to_local))]
            out['y'][batch.seed_type] = floats(store.node_rows(
                store.by_name[batch.seed_type], 'label', seeds))
    return out


def seeds_json(store, batch):
    graphs = batch.kind == 'graph'
    seeds = {'type': batch.seed_type,
             'graphs' if graphs else 'ids': batch.seeds.ids}
    if batch.times is not None:
        seeds['time'] = batch.times
    out = {'seeds': seeds, 'seed_to_local': batch.seed_to_local}
    if graphs:
        out['graph_of'] = {}
        for r in store.relations:
            if r.dst == batch.seed_type:
                # -1 for a node that is in no graph.
                rows = out['graph_of'].setdefault(
                    r.src, [-1] * len(batch.nodes[r.src]))
                for e in batch.edges[r.name]:
                    rows[e.src] = e.dst
    return out


def pairs_json(batch):
    """Drawn pairs follow the seeds and have label 0."""
    seeds, negatives = batch.seeds, batch.negatives
    drawn = (negatives and negatives.src) or []
    labels = floats(seeds.labels) if seeds.labels else [1] * len(seeds)
    out = {'seeds': {'type': batch.seed_type, 'src': seeds.ids + drawn,
                     'dst': list(seeds.dst), 'label': [],
                     'time': batch.times or [], 'neg': []},
           'seed_to_local': [
               batch.seed_to_local + (batch.negative_src_to_local or []),
               list(batch.dst_to_local)]}
    if drawn or seeds.labels:
        out['seeds']['label'] = labels + [0] * len(drawn)
    if seeds.edge_types:
        out['seeds']['edge_type'] = seeds.edge_types
    if drawn:
        out['seeds']['dst'] += negatives.dst
        out['seed_to_local'][1] += batch.negative_to_local
    elif negatives:
        out['seeds']['neg'] = negatives.dst
        out['seed_to_local'].append(batch.negative_to_local)
    if negatives and negatives.edges is not None:
        out['false_negatives'] = negatives.edges
    return out


def floats(rows):
    """Rows as JSON numbers; NaN, which JSON lacks, becomes null."""
    dtype, values = rows
    if dtype == 'bfloat16':
        values = (values.astype('<u4') << 16).view('<f4')
    if values.dtype.kind == 'f':
        values = np.where(np.isnan(values), None, values.astype(object))
    return values.tolist()


def run_sample(store, args):
    """The object that `sample` prints."""
    job = make_job(args)
    if args.seed_ids:
        seeds = Seeds(*(integers(text) if text else None for text in (
            args.seed_ids, args.seed_times, args.seed_dst_ids)))
    elif args.seed_times or args.seed_dst_ids:
        raise OracleError('--seed-times, --seed-dst-ids: only with '
                          '--seed-ids')
    else:
        seeds = SeedPlan(store, job).seeds(args.epoch, args.batch)
    batch = sample(store, job, args.epoch, args.batch, seeds)
    return to_json(store, job, batch, args.with_features)


def run_digest(store, args):
    """The lines that `digest` prints."""
    job = make_job(args)
    check_job(store, job)
    plan, total = SeedPlan(store, job), hashlib.sha256()
    count = len(plan.batches)
    for index in range(min(count, args.batches or count)):
        batch = sample(store, job, args.epoch, index,
                       plan.seeds(args.epoch, index))
        value = digest(store, job, batch)
        total.update(value)
        yield f'{args.epoch} {index} {value.hex()}'
    yield f'total {total.hexdigest()}'


def main(argv=None):
    try:
        args = parse_args(sys.argv[1:] if argv is None else argv)
        store = Store(args.store)
        if args.command == 'sample':
            print(json.dumps(run_sample(store, args), separators=(',', ':')))
        else:
            for line in run_digest(store, args):
                print(line)
    except OracleError as error:
        print(f'oracle: {error}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
