# SPDX-License-Identifier: Apache-2.0
"""A whole epoch of temporal batches on collegemsg, checked against all edges.

For every expanded node, a scan of the edge list determines which of its
in-edges were admissible (not later than the seed): no others may be there,
`last` must have taken the latest, `uniform` as many as it could. Uses one
partition and three, made from an edge list whose times are not in order.

Needs collegemsg in MILLRACE_DATA; skipped (77) without it."""
import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

FANOUTS = (5, 3)
BATCH = 2048


def millrace(flags, *arguments):
    done = subprocess.run([flags.bin / "millrace", *arguments], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout


def read_shuffled(folder):
    """The edges [e, 2] and their times in arbitrary order."""
    with gzip.open(folder / "raw" / "edge.csv.gz", "rt") as file:
        edges = np.loadtxt(file, delimiter=",", dtype=np.int64)
    with gzip.open(folder / "raw" / "edge_time.csv.gz", "rt") as file:
        times = np.loadtxt(file, dtype=np.int64)
    order = np.random.default_rng(3).permutation(len(edges))
    return edges[order], times[order]


class Past:
    """All edges by destination, each list ordered by (time, edge id)."""

    def __init__(self, edges, times):
        self.edges, self.times = edges, times
        order = np.lexsort((np.arange(len(edges)), times, edges[:, 1]))
        ends = np.searchsorted(edges[order, 1],
                               np.arange(edges.max() + 2))
        self.lists = [order[begin:end] for begin, end in zip(ends, ends[1:])]

    def until(self, node, time):
        ids = self.lists[node]
        return ids[:np.searchsorted(self.times[ids], time, side="right")]


def check_batch(batch, past, strategy):
    """Checks one batch; returns the numbers of checked lists and admissible
    edges."""
    nodes = batch["nodes"]["node"]
    seed_time = batch["seeds"]["time"]
    time = [seed_time[tree] for tree in batch["trees"]["node"]]
    edges = batch["edges"]["node__to__node"]
    taken = {}
    found = max(max(side) for side in batch["seed_to_local"]) + 1
    frontier = list(range(found))
    for hop, src, dst, edge in zip(*(edges[key] for key in
                                     ("hop", "src", "dst", "edge_id"))):
        assert past.times[edge] <= time[dst], f"edge {edge} is later"
        assert tuple(past.edges[edge]) == (nodes[src], nodes[dst])
        assert time[src] == time[dst], "an edge joins two trees"
        taken.setdefault((hop, dst), []).append(edge)
        if hop == 0 and src >= found:
            found = src + 1
    lists = admissible = 0
    for hop, fanout in enumerate(FANOUTS):
        for node in frontier:
            allowed = past.until(nodes[node], time[node])
            picks = taken.pop((hop, node), [])
            if strategy == "last":
                assert set(picks) == set(allowed[-fanout:].tolist())
            assert len(set(picks)) == len(picks) == min(fanout, len(allowed))
            lists += 1
            admissible += len(allowed)
        frontier = list(range(len(frontier), found))
    assert not taken, "edges of nodes that were not expanded"
    return lists, admissible


def check_epoch(flags, store, past, seeds, strategy):
    job = ["--store", store, "--seeds", "edge", "--temporal", strategy,
           "--fanouts", ",".join(map(str, FANOUTS)),
           "--batch-size", str(BATCH)]
    seen = []
    totals = np.zeros(2, dtype=np.int64)
    for batch in range(-(-seeds // BATCH)):
        sampled = json.loads(millrace(flags, "sample", *job,
                                      "--batch", str(batch)))
        totals += check_batch(sampled, past, strategy)
        seen += zip(sampled["seeds"]["src"], sampled["seeds"]["dst"],
                    sampled["seeds"]["time"])
    everything = zip(*past.edges.T.tolist(), past.times.tolist())
    assert sorted(seen) == sorted(everything), "not each edge once"
    print(f"{store.name} {strategy}: {totals[0]} lists, {totals[1]} "
          "admissible edges", flush=True)
    return millrace(flags, "digest", *job)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    flags = parser.parse_args()
    data = pathlib.Path(os.environ.get("MILLRACE_DATA", "")) / "collegemsg"
    if "MILLRACE_DATA" not in os.environ or not data.is_dir():
        print("skipped: MILLRACE_DATA names no folder with collegemsg")
        sys.exit(77)
    edges, times = read_shuffled(data)
    assert (np.diff(times) < 0).any()
    past = Past(edges, times)
    with tempfile.TemporaryDirectory(prefix="millrace-temporal-") as name:
        folder = pathlib.Path(name)
        np.save(folder / "edges.npy", np.ascontiguousarray(edges.T))
        np.save(folder / "times.npy", times)
        stores = [folder / "one", folder / "three"]
        millrace(flags, "import", "npy", "--edges", folder / "edges.npy",
                 "--edge-times", folder / "times.npy",
                 "--num-nodes", str(edges.max() + 1), "--out", stores[0])
        millrace(flags, "split", stores[0], "--name", "train",
                 "--type", "node__to__node", "--all")
        millrace(flags, "partition", stores[0], "--parts", "3",
                 "--method", "random", "--out", stores[1])
        for strategy in ("uniform", "last"):
            one, three = (check_epoch(flags, store, past, len(edges), strategy)
                          for store in stores)
            assert one == three, "digests differ"


if __name__ == "__main__":
    main()
