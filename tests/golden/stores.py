# SPDX-License-Identifier: Apache-2.0
"""The graphs of golden digests and compared losses, and their fleets.

Each is made as a dataset, NAME, and divided into a store of two partitions,
NAME-2. Random numbers are integer arithmetic, so they are the same with every
NumPy.
"""
import contextlib
import os
import signal
import subprocess

import numpy as np

_MASK = 2**64 - 1


def run(bin_folder, folder, *words):
    """Runs `millrace WORDS` in the folder; returns what it printed."""
    command = [bin_folder / "millrace", *map(str, words)]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True,
                          check=False)
    if done.returncode:
        raise SystemExit(f"millrace {' '.join(command[1:])}: exit status "
                         f"{done.returncode}\n{done.stderr}")
    return done.stdout


def random_words(stream, count):
    """The first 64-bit words of splitmix64, started at a hash of `stream`."""
    x = np.arange(1, count + 1, dtype=np.uint64)
    x = x * np.uint64(0x9E3779B97F4A7C15)
    x += np.uint64(stream * 0xD1342543DE82EF95 & _MASK)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def integers(stream, count, limit):
    """Integers in [0, limit)."""
    return (random_words(stream, count) % np.uint64(limit)).astype(np.int64)


def floats(stream, *shape):
    """Floats in [0, 1), all of them exact."""
    words = random_words(stream, int(np.prod(shape)))
    return ((words >> np.uint64(40)) / 2**24).astype(np.float32).reshape(shape)


def features(stream, labels, width):
    """Rows from which a model can learn the labels."""
    rows = floats(stream, len(labels), width) - np.float32(0.5)
    rows[np.arange(len(labels)), labels] += 1
    return rows


def weights(stream, count):
    """Weights from 2^-12 to 2^12, some of them equal and some 0."""
    scale = np.ldexp(np.float32(1), integers(stream, count, 25) - 12)
    values = (scale * (floats(stream + 1, count) + 1)).astype(np.float32)
    kind = integers(stream + 2, count, 10)
    values[kind < 3] = 1
    values[kind == 3] = 0
    return values


def _import(bin_folder, folder, name, arrays, *more):
    """Imports arrays from .npy files; keys are OPTION or OPTION=TYPE."""
    words = []
    for key, array in arrays.items():
        option, _, node_type = key.partition("=")
        file = f"{name}-{len(words)}.npy"
        np.save(folder / file, array)
        words += [option, f"{node_type}={file}" if node_type else file]
    run(bin_folder, folder, "import", "npy", *words, *more, "--out", name)


def _make_columns(bin_folder, _, folder):
    """One relation with every column. More than 1024 edges lead to node 6, and
    there are self loops, repeated edges and isolated nodes."""
    nodes, size = 400, 6000
    edges = np.stack([integers(1, size, 380), integers(2, size, 360)])
    edges[1, 4000:] = 6
    edges[:, 100:140] = edges[:, 60:100]
    edges[1, 140:160] = edges[0, 140:160]
    labels = integers(3, nodes, 4)
    times = integers(4, nodes, 50)
    order = np.argsort(random_words(5, nodes), kind="stable")
    _import(bin_folder, folder, "columns", {
        "--edges": edges, "--features": features(6, labels, 8),
        "--labels": labels, "--node-times": times,
        "--edge-weights": weights(7, size),
        "--edge-times": times[edges].max(0) + integers(10, size, 20),
        "--edge-types": integers(11, size, 3),
        "--edge-features": floats(12, size, 3), "--train": order[:240],
        "--valid": order[240:320], "--test": order[320:]},
        "--edge-split-fractions", "0.2,0.05,0.05", "--edge-split-by", "time")
    _add_given_pairs(bin_folder, folder, edges)


def _add_given_pairs(bin_folder, folder, edges):
    """Splits of pairs: with all columns, with labels that say which are edges,
    and with negatives; and files of seeds with times."""
    pairs = edges[:, integers(13, 90, 4000)]
    pairs[0, ::3] = integers(14, 30, 380)
    columns = {"pairs": pairs.T, "times": integers(15, 90, 70),
               "labels": integers(17, 90, 2), "edge-types": integers(16, 90, 3),
               "negatives": integers(18, 180, 400).reshape(90, 2)}
    words = []
    for option, array in columns.items():
        np.save(folder / f"given-{option}.npy", array)
        words += [f"--{option}", f"given-{option}.npy"]
    split = ("split", "columns", "--type", "node__to__node", "--name")
    run(bin_folder, folder, *split, "given", *words)
    run(bin_folder, folder, *split, "labelled", *words[:6])
    run(bin_folder, folder, *split, "ranked", *words[:4], *words[8:])
    np.save(folder / "timed_nodes.npy",
            np.stack([integers(19, 60, 400), integers(20, 60, 70)], 1))
    np.save(folder / "timed_pairs.npy",
            np.concatenate([pairs, columns["times"][None]]).T)


def _make_shop(bin_folder, _, folder):
    """Three types, one of them without features, and four relations with their
    reverses; items have several labels each, some of them missing."""
    counts = {"user": 240, "item": 160, "tag": 30}
    sizes = {"user__buys__item": 1500, "user__knows__user": 700,
             "item__has__tag": 400, "user__sees__item": 600}
    times = {"user": integers(30, 240, 40), "item": integers(31, 160, 40)}
    labels = integers(32, 240, 3)
    item_labels = integers(33, 480, 2).reshape(160, 3).astype(np.float32)
    item_labels[integers(34, 40, 160), integers(35, 40, 3)] = np.nan
    arrays = {}
    for i, (name, size) in enumerate(sizes.items()):
        src, _, dst = name.split("__")
        stream = 40 + 10 * i
        edges = np.stack([integers(stream, size, counts[src]),
                          integers(stream + 1, size, counts[dst])])
        arrays[f"--edges={name}"] = edges
        arrays[f"--edge-weights={name}"] = weights(stream + 2, size)
        if name in ("user__buys__item", "user__sees__item"):
            arrays[f"--edge-times={name}"] = integers(
                stream + 5, size, 20) + np.maximum(times[src][edges[0]],
                                                   times[dst][edges[1]])
        if name == "user__buys__item":
            arrays[f"--edge-features={name}"] = floats(stream + 6, size, 2)
    for node_type in ("user", "item"):
        count = counts[node_type]
        order = np.argsort(random_words(36, count), kind="stable")
        arrays |= {f"--node-times={node_type}": times[node_type],
                   f"--train={node_type}": order[:count // 2],
                   f"--valid={node_type}": order[count // 2:-count // 4],
                   f"--test={node_type}": order[-count // 4:]}
    arrays |= {"--labels=user": labels, "--labels=item": item_labels,
               "--features=user": features(37, labels, 5),
               "--features=item": floats(38, 160, 4),
               "--train=user__buys__item": np.arange(0, 1500, 5)}
    _import(bin_folder, folder, "shop", arrays, "--num-nodes", "tag=30",
            "--add-reverse")


def _make_cora(bin_folder, data, folder):
    run(bin_folder, folder, "import", "ogb", data / "cora", "--undirected",
        "--coalesce", "--split", "public", "--normalize-features", "row",
        "--out", "cora")


def _make_links(bin_folder, data, folder):
    """Cora without the edges that the model must predict."""
    run(bin_folder, folder, "import", "ogb", data / "cora", "--undirected",
        "--coalesce", "--edge-split-fractions", "0.85,0.05,0.1",
        "--normalize-features", "row", "--out", "links")


def _make_mutag(bin_folder, data, folder):
    run(bin_folder, folder, "import", "tu", data / "mutag",
        "--split-fractions", "0.7,0.15,0.15", "--out", "mutag")


_MAKERS = {"cora": _make_cora, "links": _make_links, "mutag": _make_mutag,
           "columns": _make_columns, "shop": _make_shop}


def make(bin_folder, data, folder, name):
    """Writes the dataset and the store of that name into the folder."""
    _MAKERS[name](bin_folder, data, folder)
    run(bin_folder, folder, "partition", name, "--parts", 2, "--method", "hash",
        "--directions", "both", "--neighbor-original-ids", "--out",
        f"{name}-2")


@contextlib.contextmanager
def fleet(bin_folder, folder, store, variables=None):
    """LIST of servers of the store, one for each of its partitions, which find
    these variables in their environment."""
    with subprocess.Popen([bin_folder / "millrace", "up", store], cwd=folder,
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL,
                          env=os.environ | (variables or {})) as process:
        try:
            servers = process.stdout.readline().strip()
            if not servers:
                raise SystemExit(f"millrace up {store}: no server listens")
            yield servers
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
