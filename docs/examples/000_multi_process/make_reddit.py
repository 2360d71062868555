#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small graph as reddit_data.npz and reddit_graph.npz.

Half of a node's neighbours share its class, and a few of its features are
larger, so that a model can learn. Reddit itself has 232,965 nodes, 602
features, 41 classes and 114,615,892 edges.
"""

import argparse
import pathlib

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("out", type=pathlib.Path, help="folder to write to")
parser.add_argument("--nodes", type=int, default=20000)
parser.add_argument("--degree", type=int, default=50, help="mean")
parser.add_argument("--features", type=int, default=602)
parser.add_argument("--classes", type=int, default=41)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)
label = rng.integers(args.classes, size=args.nodes)
feature = rng.standard_normal((args.nodes, args.features), dtype=np.float32)
own = np.arange(args.features) % args.classes == label[:, None]
feature[own] += 0.5
# Reddit's shares: 66 % train (1), 10 % valid (2), 24 % test (3).
node_types = rng.choice([1, 2, 3], size=args.nodes, p=[0.66, 0.10, 0.24])

# Both directions of each pair are in the matrix, as in Reddit's.
pairs = args.nodes * args.degree // 2
source = rng.integers(args.nodes, size=pairs)
target = rng.integers(args.nodes, size=pairs)
by_class = np.argsort(label, kind="stable")
first = np.searchsorted(label[by_class], np.arange(args.classes + 1))
like = rng.random(pairs) < 0.5
low, high = first[label[source]], first[label[source] + 1]
target[like] = by_class[rng.integers(low, high)][like]

args.out.mkdir(parents=True, exist_ok=True)
np.savez_compressed(args.out / "reddit_data.npz", feature=feature, label=label,
                    node_types=node_types, node_ids=np.arange(args.nodes))
# What scipy.sparse.save_npz writes for a COO matrix.
np.savez_compressed(args.out / "reddit_graph.npz", format=np.array(b"coo"),
                    row=np.concatenate([source, target]).astype(np.int32),
                    col=np.concatenate([target, source]).astype(np.int32),
                    data=np.ones(2 * pairs),
                    shape=np.array([args.nodes, args.nodes]))
