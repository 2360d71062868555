# SPDX-License-Identifier: Apache-2.0
"""Jobs: what they ask for, and which are refused."""

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from draws import Rule
from store import OracleError

METHODS = ('uniform', 'labor', 'induced', 'walk', 'ppr')
MAX_STEPS = {'walk': 255, 'ppr': 256}
MAX_WALKERS_STEPS = 1 << 20
BIASES = (.001, 1000)  # of walk_p and walk_q


@dataclass
class Job:
    kind: str = 'node'  # kind of seeds: 'node', 'edge' or 'graph'
    type: str = ''      # type of the seeds, or relation of pairs
    split: str = 'train'
    seeds_file: object = None  # rows: original ids, with or without times
    fanouts: list = field(default_factory=list)
    relation_fanouts: dict = field(default_factory=dict)
    batch_size: int = 1024
    seed: int = 1
    shuffle: bool = True
    seed_order: str = 'global'
    drop_last: bool = False
    replace: bool = False
    disjoint: bool = False
    direction: str = 'in'
    features: bool = True
    edge_features: bool = False
    method: str = 'uniform'
    weighted: bool = False
    temporal: str = ''  # 'uniform' or 'last'
    walks: int = 0
    walk_length: int = 0
    restart: float = 0
    walk_p: float = 1  # node2vec's
    walk_q: float = 1
    metapath: list = field(default_factory=list)  # names of relations
    negatives: str = ''  # 'binary:R', 'triplet:K', 'shared:K', 'in-batch'
    exclude: str = 'none'  # or 'self', 'reverse'
    train_graph: str = 'full'  # or 'induced:SPLIT'

    @property
    def trees(self):
        """Whether each seed has a tree of its own."""
        return self.disjoint or bool(self.temporal)

    @property
    def biased(self):
        """Whether steps of walks depend on the steps before."""
        return self.walk_p != 1 or self.walk_q != 1

    def rule(self):
        return Rule(self.replace, self.weighted, self.temporal == 'last',
                    self.method == 'labor')

    def step_rule(self):
        """The rule for one step of a walk."""
        return Rule(replace=True, weighted=self.weighted)


def seed_type(store, job):
    """The node type of the seeds, unless they are pairs."""
    name = job.type or ('graph' if job.kind == 'graph' else '')
    if not name and len(store.types) == 1:
        return store.types[0].name
    if name not in store.by_name:
        raise OracleError(f'--type {name!r}: the store has the types '
                          f'{", ".join(store.by_name)}')
    return name


def seed_relation(store, job):
    """The number of the relation of seeds that are pairs."""
    if not job.type and len(store.relations) == 1:
        return 0
    return relation_number(store, job.type, '--type')


def relation_fanouts(store, job):
    """Number of hops, and per relation its fanouts, all of the same length."""
    names = [r.name for r in store.relations]
    if job.kind == 'graph':
        graph = seed_type(store, job)
        return 2, {r.name: [-1, 0] if r.dst == graph else [0, -1]
                   for r in store.relations}
    for name in job.relation_fanouts:
        relation_number(store, name, '--fanouts')
    lists = {n: job.relation_fanouts.get(n, job.fanouts) for n in names}
    hops = max([len(f) for f in lists.values()], default=0)
    for name, fanouts in lists.items():
        if fanouts and len(fanouts) != hops:
            raise OracleError(f'--fanouts {name}: {len(fanouts)} hops, '
                              f'others have {hops}')
    return hops, {n: f or [0] * hops for n, f in lists.items()}


def relation_number(store, name, option):
    names = [r.name for r in store.relations]
    if name not in names:
        raise OracleError(f'{option} {name}: the store has the relations '
                          f'{", ".join(names)}')
    return names.index(name)


def metapath(store, job):
    """Numbers of the relations of a walk's steps, in order."""
    if job.metapath:
        numbers = [relation_number(store, name, '--metapath')
                   for name in job.metapath]
    elif len(store.relations) == 1:
        numbers = [0]
    else:
        raise OracleError('--metapath: the graph has '
                          f'{len(store.relations)} relations')
    if job.kind == 'edge':  # PPR: any relation that check_walks accepts
        here = store.relations[numbers[0]].ends(job.direction)[0]
    else:
        here = seed_type(store, job)
    steps = []
    for step in range(job.walk_length):
        number = numbers[step % len(numbers)]
        owner, other = store.relations[number].ends(job.direction)
        if owner != here:
            raise OracleError(
                f'--metapath: step {step} leaves from {here}, but lists of '
                f'{store.relations[number].name} belong to {owner}')
        steps.append(number)
        here = other
    return steps


def check_job(store, job):
    """Refuses what section 3 or 5 excludes, and what the store lacks."""
    if job.method not in METHODS:
        raise OracleError(f'--method {job.method}')
    if job.temporal == 'last' and (job.replace or job.weighted):
        raise OracleError('--temporal last: not with --replace, --weighted')
    if job.edge_features and not any(r.feature for r in store.relations):
        raise OracleError('--edge-features: no relation has any')
    if job.method == 'labor' and (job.replace or job.weighted or
                                  job.temporal == 'last'):
        raise OracleError('--method labor: not with --replace, --weighted, '
                          '--temporal last')
    if (job.method == 'labor' and store.parts > 1 and
            not store.neighbor_original_ids):
        raise OracleError('--method labor: lists lack original ids of '
                          'neighbours')
    check_train_graph(store, job)
    if job.kind == 'graph':
        check_graphs(store, job)
    if job.kind == 'edge':
        check_pairs(job)
    elif job.negatives or job.exclude != 'none':
        raise OracleError('--negatives, --exclude-seed-edges: of --seeds '
                          'edge')
    if job.method in ('walk', 'ppr'):
        check_walks(store, job)
    elif job.metapath:
        raise OracleError('--metapath: of --method walk and ppr')
    if job.biased:
        check_biased(store, job)
    for relation in drawn_relations(store, job):
        if job.weighted and not relation.weight:
            raise OracleError(f'--weighted: {relation.name} has no weights')


def check_train_graph(store, job):
    if job.train_graph == 'full':
        return
    kind, _, split = job.train_graph.partition(':')
    if kind != 'induced' or split not in store.node_splits():
        raise OracleError(f'--train-graph {job.train_graph}: full, or induced '
                          'by a split of nodes')
    if job.kind == 'graph':
        raise OracleError('--train-graph: not with --seeds graph')


def check_graphs(store, job):
    """Refuses choices that whole graphs do not allow."""
    if (job.fanouts or job.relation_fanouts or job.method != 'uniform' or
            job.weighted or job.temporal or job.direction != 'in'):
        raise OracleError('--seeds graph: neither fanouts, --method, '
                          '--weighted, --temporal nor --direction out')
    graph = seed_type(store, job)
    if not any(r.dst == graph for r in store.relations):
        raise OracleError(f'--seeds graph: no relation leads to {graph}')


def check_pairs(job):
    mode, _ = negative_mode(job)
    if mode == 'shared' and job.trees:
        raise OracleError('--negatives shared: not disjoint')
    if job.method == 'walk':
        raise OracleError('--method walk: not with --seeds edge')


def negative_mode(job):
    """(mode, number); '' draws none, and in-batch has no number."""
    mode, _, number = job.negatives.partition(':')
    try:
        if mode == 'binary' and Fraction(Decimal(number)) > 0:
            return mode, Fraction(Decimal(number))
        if mode in ('triplet', 'shared') and int(number) > 0:
            return mode, int(number)
    except (ArithmeticError, ValueError):  # not a number, or infinite
        pass
    if job.negatives in ('', 'in-batch'):
        return mode, 0
    raise OracleError(f'--negatives {job.negatives}: binary:R, triplet:K, '
                      'shared:K or in-batch')


def check_walks(store, job):
    if (min(job.walks, job.walk_length) < 1 or
            job.walk_length > MAX_STEPS[job.method] or
            job.walks * job.walk_length > MAX_WALKERS_STEPS):
        raise OracleError(f'--walks {job.walks} --walk-length '
                          f'{job.walk_length}: out of range')
    if job.temporal or job.replace:
        raise OracleError(f'--method {job.method}: neither temporal nor with '
                          '--replace')
    if job.method == 'walk':
        if job.fanouts or job.relation_fanouts:
            raise OracleError('--method walk: no fanouts')
        return
    if job.disjoint:
        raise OracleError('--method ppr: not disjoint')
    if job.edge_features:
        raise OracleError('--method ppr: its edges have no features')
    if not 0 <= job.restart <= 1:
        raise OracleError(f'--restart {job.restart}: a probability')
    path = {store.relations[n] for n in metapath(store, job)}
    if len(job.metapath) > 1 or any(r.src != r.dst for r in path):
        raise OracleError('--method ppr: one relation, of a type with itself')
    if job.kind == 'edge':
        pairs = store.relations[seed_relation(store, job)]
        if any(r.src not in (pairs.src, pairs.dst) for r in path):
            raise OracleError('--method ppr: the relation is not of the '
                              "seeds' types")


def check_biased(store, job):
    if job.method != 'walk' or job.weighted:
        raise OracleError('--walk-p, --walk-q: of --method walk, not weighted')
    if not all(BIASES[0] <= x <= BIASES[1] for x in (job.walk_p, job.walk_q)):
        raise OracleError(f'--walk-p {job.walk_p} --walk-q {job.walk_q}: out '
                          'of range')
    path = {store.relations[n] for n in metapath(store, job)}
    if len(job.metapath) > 1 or any(r.src != r.dst for r in path):
        raise OracleError('--walk-p, --walk-q: one relation, of a type with '
                          'itself')


def drawn_relations(store, job):
    """The relations from whose lists slots are drawn."""
    if job.method in ('walk', 'ppr'):
        return [store.relations[n] for n in metapath(store, job)]
    _, fanouts = relation_fanouts(store, job)
    return [r for r in store.relations if any(fanouts[r.name])]
