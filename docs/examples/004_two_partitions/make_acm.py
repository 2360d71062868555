#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small graph like ACM: papers, their authors and subjects, as .npy.

Papers have a class and features, authors and subjects neither. Most authors
and subjects keep to one class, so the relations say more than the features.
"""

import argparse
import pathlib

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("out", type=pathlib.Path, help="folder to write to")
parser.add_argument("--papers", type=int, default=4000)
parser.add_argument("--subjects", type=int, default=60)
parser.add_argument("--features", type=int, default=128)
parser.add_argument("--classes", type=int, default=3)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)
label = rng.integers(args.classes, size=args.papers)
feature = rng.standard_normal((args.papers, args.features), dtype=np.float32)
feature[np.arange(args.features) % args.classes == label[:, None]] += 0.1


def others(per_paper, count):
    """Edges from others to papers; 80 % join those of one class."""
    paper = np.repeat(np.arange(args.papers), per_paper)
    other = rng.integers(count, size=paper.size)
    like = rng.random(paper.size) < 0.8
    own = other - other % args.classes + label[paper]
    other = np.where(like & (own < count), own, other)
    return np.stack([other, paper])


args.out.mkdir(parents=True, exist_ok=True)
np.save(args.out / "features.npy", feature)
np.save(args.out / "labels.npy", label)
np.save(args.out / "writes.npy", others(3, args.papers * 7 // 4))
np.save(args.out / "covers.npy", others(1, args.subjects))
