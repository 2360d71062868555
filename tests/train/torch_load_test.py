# SPDX-License-Identifier: Apache-2.0
"""A checkpoint opens in Python with torch.load(f), and its model, reimplemented
in plain PyTorch over the whole graph, gives the logits of --predict: exact and
by batches of all neighbours, on 1 and on 3 partitions.

Uses Cora from tests/data; with --arxiv the graph in MILLRACE_DATA/arxiv with
random features. Skipped (77) without PyTorch or that graph."""
import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    import torch
except ImportError as error:
    print(f"skipped: this Python has no PyTorch ({error}); "
          "Debian's is the package python3-torch")
    sys.exit(77)


def sage(model, x, mean, norm):
    for i in range(2):
        conv = f"convs.{i}."
        x = (mean @ x @ model[conv + "lin_l.weight"].T
             + model[conv + "lin_l.bias"] + x @ model[conv + "lin_r.weight"].T)
        if i == 0:
            x = norm(model, x).relu()
    return x


def gcn(model, x, full, norm):
    x = full @ x @ model["convs.0.lin.weight"].T + model["convs.0.bias"]
    x = norm(model, x).relu()
    return full @ x @ model["convs.1.lin.weight"].T + model["convs.1.bias"]


def gin(model, x, adjacency, norm):
    for i in range(2):
        nn = f"convs.{i}.nn."
        x = adjacency @ x + (1 + model[f"convs.{i}.eps"]) * x
        x = x @ model[nn + "lins.0.weight"].T + model[nn + "lins.0.bias"]
        x = norm(model, x, nn + "norms.0.").relu()
        x = x @ model[nn + "lins.1.weight"].T + model[nn + "lins.1.bias"]
        if i == 0:
            x = norm(model, x).relu()
    return x


def attend(score, values, adjacency):
    dst, src = adjacency.indices()
    weight = score.exp()
    total = torch.zeros(len(values), weight.shape[1]).index_add_(0, dst, weight)
    weight = weight / total[dst]
    return torch.zeros_like(values).index_add_(
        0, dst, weight[..., None] * values[src])


def gat(model, x, adjacency, norm):
    """The edges of `adjacency` include one self loop per node."""
    dst, src = adjacency.indices()
    for i in range(2):
        conv = f"convs.{i}."
        heads = model[conv + "att_src"].shape[1]
        h = (x @ model[conv + "lin.weight"].T).view(len(x), heads, -1)
        score = ((h * model[conv + "att_src"]).sum(-1)[src]
                 + (h * model[conv + "att_dst"]).sum(-1)[dst])
        x = attend(torch.nn.functional.leaky_relu(score, 0.2), h, adjacency)
        x = (x.flatten(1) if i == 0 else x.mean(1)) + model[conv + "bias"]
        if i == 0:
            x = norm(model, x).relu()
    return x


def gatv2(model, x, adjacency, norm):
    """Like gat(), for GATv2."""
    dst, src = adjacency.indices()
    for i in range(2):
        conv = f"convs.{i}."
        heads = model[conv + "att"].shape[1]
        left, right = (
            (x @ model[f"{conv}{lin}.weight"].T + model[f"{conv}{lin}.bias"])
            .view(len(x), heads, -1) for lin in ("lin_l", "lin_r"))
        both = torch.nn.functional.leaky_relu(left[src] + right[dst], 0.2)
        x = attend((both * model[conv + "att"]).sum(-1), left, adjacency)
        x = (x.flatten(1) if i == 0 else x.mean(1)) + model[conv + "bias"]
        if i == 0:
            x = norm(model, x).relu()
    return x


def batch_norm(model, x, prefix="norms.0."):
    m = {name[len(prefix + "module."):]: tensor
         for name, tensor in model.items() if name.startswith(prefix)}
    return torch.nn.functional.batch_norm(
        x, m["running_mean"], m["running_var"], m["weight"], m["bias"])


def read_csv(path, dtype):
    return np.loadtxt(gzip.open(path), delimiter=",", dtype=dtype, ndmin=2)


def sparse(rows, columns, values, n):
    return torch.sparse_coo_tensor(
        np.stack([rows, columns]), torch.from_numpy(values), (n, n)).coalesce()


def operators(raw, n):
    """Operators on the graph made by --undirected --coalesce: the mean over
    neighbours, GCN's normalised adjacency with self loops, and the sum of
    neighbours."""
    edges = read_csv(raw / "edge.csv.gz", np.int64)
    codes = np.unique(np.concatenate([edges[:, 1] * n + edges[:, 0],
                                      edges[:, 0] * n + edges[:, 1]]))
    dst, src = codes // n, codes % n
    degree = np.bincount(dst, minlength=n).astype(np.float32)
    mean = sparse(dst, src, 1 / np.maximum(degree, 1)[dst], n)
    root = (degree + 1) ** np.float32(-0.5)
    each = np.arange(n)
    full = sparse(np.concatenate([dst, each]), np.concatenate([src, each]),
                  np.concatenate([root[dst] * root[src], root * root]), n)
    total = sparse(dst, src, np.ones(len(dst), np.float32), n)
    return mean, full, total


def millrace(flags, *arguments):
    subprocess.run([flags.bin / "millrace", *arguments], check=True)


def train(flags, store, model_name, run, *more):
    subprocess.run(
        [flags.bin / "millrace-train", "--store", store, "--model", model_name,
         "--gcn-norm", "full", "--fanouts", "10,10", "--batch-size",
         str(flags.batch_size), "--hidden", "16", "--norm", "batch",
         "--heads", "4",
         "--dropout", "0.5", "--checkpoint", run, *more], check=True)


def compare(name, got, logits):
    want = torch.from_numpy(np.load(logits))
    difference = (got - want).abs().max().item()
    largest = want.abs().max().item()
    print(f"{name}: max |difference| {difference:.2e}, "
          f"max |logit| {largest:.2f}")
    assert difference <= 1e-5 * max(1, largest), name


def check(flags, directory, model_name, restate, matrix, x):
    run, logits = directory / model_name, directory / "logits.npy"
    train(flags, directory / "dataset", model_name, run, "--workers", "2",
          "--epochs", "2")
    saved = torch.load(run / "last.pt")
    assert saved["counters"]["epoch"] == 2, saved["counters"]
    # Newer versions load only plain data by default.
    safe = torch.load(run / "last.pt", weights_only=True)
    assert safe["identity"]["--model"] == model_name, safe["identity"]
    got = restate(saved["model"], x, matrix, batch_norm)
    for store in ("dataset", "parts-3"):
        for inference in (["full"], ["sampled", "--eval-fanouts=-1,-1"]):
            train(flags, directory / store, model_name, run, "--epochs", "0",
                  "--resume", "--inference", *inference, "--predict", logits)
            compare(f"{model_name}, {store}, {inference[0]}", got, logits)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--arxiv", action="store_true")
    flags = parser.parse_args()
    flags.batch_size = 1024 if flags.arxiv else 32
    folder, extra = flags.data / "cora", []
    with tempfile.TemporaryDirectory(prefix="millrace-torch-") as name:
        directory = pathlib.Path(name)
        if flags.arxiv:
            folder = pathlib.Path(os.environ.get("MILLRACE_DATA", "")) / "arxiv"
            if "MILLRACE_DATA" not in os.environ or not folder.is_dir():
                print("skipped: MILLRACE_DATA names no folder with arxiv")
                sys.exit(77)
            nodes = int(read_csv(folder / "raw" / "num-node-list.csv.gz",
                                 np.int64)[0, 0])
            x = np.random.default_rng(1).normal(size=(nodes, 32))
            np.save(directory / "x.npy", x.astype(np.float32))
            extra = ["--split", "time", "--features", directory / "x.npy"]
            x = x.astype(np.float32)
        else:
            x = read_csv(folder / "raw" / "node-feat.csv.gz", np.float32)
        mean, full, total = operators(folder / "raw", len(x))
        x = torch.from_numpy(x)
        millrace(flags, "import", "ogb", folder, "--out",
                 directory / "dataset", "--undirected", "--coalesce", *extra)
        millrace(flags, "partition", directory / "dataset", "--parts", "3",
                 "--out", directory / "parts-3")
        check(flags, directory, "sage", sage, mean, x)
        check(flags, directory, "gcn", gcn, full, x)
        if not flags.arxiv:
            check(flags, directory, "gin", gin, total, x)
            check(flags, directory, "gat", gat, full, x)
            check(flags, directory, "gatv2", gatv2, full, x)


if __name__ == "__main__":
    main()
