# SPDX-License-Identifier: Apache-2.0
"""A checkpoint opens in Python with torch.load(f), and its model restated in
plain PyTorch gives the logits of --predict. Skipped (77) without PyTorch."""
import argparse
import gzip
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


def batch_norm(model, x):
    m = {name[len("norms.0.module."):]: tensor
         for name, tensor in model.items() if name.startswith("norms.0.")}
    return torch.nn.functional.batch_norm(
        x, m["running_mean"], m["running_var"], m["weight"], m["bias"])


def load_graph(data):
    raw = data / "cora" / "raw"
    edges = np.loadtxt(gzip.open(raw / "edge.csv.gz"), delimiter=",",
                       dtype=np.int64)
    x = np.loadtxt(gzip.open(raw / "node-feat.csv.gz"), delimiter=",",
                   dtype=np.float32)
    adjacency = torch.zeros(len(x), len(x))
    adjacency[edges[:, 1], edges[:, 0]] = 1  # --undirected --coalesce
    adjacency[edges[:, 0], edges[:, 1]] = 1
    return torch.from_numpy(x), adjacency


def check(flags, directory, model_name, restate, matrix, x):
    store, run = directory / "cora", directory / model_name
    logits = directory / f"{model_name}.npy"
    subprocess.run(
        [flags.bin / "millrace-train", "--store", store, "--workers", "2",
         "--model", model_name, "--fanouts", "10,10", "--batch-size", "32",
         "--hidden", "16", "--norm", "batch", "--dropout", "0.5", "--epochs",
         "2", "--checkpoint", run, "--predict", logits], check=True)
    saved = torch.load(run / "last.pt")
    assert saved["counters"]["epoch"] == 2, saved["counters"]
    # What newer versions do by default: nothing but plain data.
    safe = torch.load(run / "last.pt", weights_only=True)
    assert safe["identity"]["--model"] == model_name, safe["identity"]
    got = restate(saved["model"], x, matrix, batch_norm)
    want = torch.from_numpy(np.load(logits))
    difference = (got - want).abs().max().item()
    largest = want.abs().max().item()
    print(f"{model_name}: max |difference| {difference:.2e}, "
          f"max |logit| {largest:.2f}")
    assert difference <= 1e-5 * max(1, largest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    flags = parser.parse_args()
    x, adjacency = load_graph(flags.data)
    degree = adjacency.sum(1)
    mean = adjacency / degree.clamp(min=1)[:, None]
    looped = adjacency + torch.eye(len(x))
    root = (degree + 1) ** -0.5
    full = root[:, None] * looped * root[None, :]
    with tempfile.TemporaryDirectory(prefix="millrace-torch-") as name:
        directory = pathlib.Path(name)
        subprocess.run(
            [flags.bin / "millrace", "import", "ogb", flags.data / "cora",
             "--out", directory / "cora", "--undirected", "--coalesce"],
            check=True)
        check(flags, directory, "sage", sage, mean, x)
        check(flags, directory, "gcn", gcn, full, x)


if __name__ == "__main__":
    main()
