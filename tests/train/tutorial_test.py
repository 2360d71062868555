# SPDX-License-Identifier: Apache-2.0
"""DGL's tutorial on graph classification, reproduced number by number: its
model with its initial weights (--init), its splits and its order of graphs
(--order).

The first loss equals that of the model reimplemented in NumPy. On IMDB-BINARY
(--imdb, in MILLRACE_DATA; skipped (77) without it) it is also DGL's, 112.7843,
and so are the sums of the losses of all five epochs."""
import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

EPOCHS = 5
# The loss of the first batch, and the sums of epochs, with one process.
DGL_FIRST = 112.784348
DGL_SUMS = [2520.8, 224.7, 66.6, 56.3, 70.3]

# From torch.manual_seed(0): Linear(1, 2), then Linear(2, 2).
WEIGHTS = [(np.array([[-0.0074868202], [0.5364435911]]),
            np.array([-0.8230451345, -0.7359390259])),
           (np.array([[-0.2723452449, 0.1896158904],
                      [-0.0140100336, 0.5606575012]]),
            np.array([-0.0627515167, 0.1871093363]))]


def read(folder, part):
    (path,) = folder.glob(f"*_{part}.txt*")
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    return np.loadtxt(opened, delimiter=",", dtype=np.int64, ndmin=2)


def first_loss(folder, graphs):
    """The mean cross-entropy of `graphs` before any step."""
    edges = read(folder, "A") - 1
    graph_of = read(folder, "graph_indicator")[:, 0] - 1
    _, labels = np.unique(read(folder, "graph_labels")[:, 0],
                          return_inverse=True)
    x = np.ones((len(graph_of), 1))
    for layer, (weight, bias) in enumerate(WEIGHTS):
        total = x.copy()
        np.add.at(total, edges[:, 1], x[edges[:, 0]])
        x = total @ weight.T + bias
        if layer == 0:
            x = np.maximum(x, 0)
    logits = np.zeros((len(labels), 2))
    np.add.at(logits, graph_of, x)
    logits = logits[graphs]
    shifted = logits - logits.max(1, keepdims=True)
    right = shifted[np.arange(len(graphs)), labels[graphs]]
    return float((np.log(np.exp(shifted).sum(1)) - right).mean())


def train(flags, data, directory):
    """The losses of all steps, and their sums by epoch."""
    examples = pathlib.Path(__file__).parents[2] / "docs" / "examples"
    example = examples / "001_graph_classification"
    store, log = directory / "store", directory / "metrics.jsonl"

    def run(program, *arguments):
        subprocess.run([program, *map(str, arguments)], check=True)

    run(flags.bin / "millrace", "import", "tu", data, "--node-features",
        "ones", "--out", store)
    run(sys.executable, example / "tutorial_order.py", data, directory, EPOCHS)
    for split in ("train", "valid", "test"):
        run(flags.bin / "millrace", "split", store, "--type", "graph",
            "--name", split, "--ids", directory / f"{split}.npy")
    run(flags.bin / "millrace-train", "--store", store, "--task", "graph",
        "--model", "gin", "--layers", 2, "--hidden", 2, "--gin-mlp", 1,
        "--graph-head", "none", "--batch-size", 32, "--lr", 0.01,
        "--epochs", EPOCHS, "--init", example / "initial_weights.pt",
        "--order", directory / "order.npy", "--threads", 1,
        "--log-every", 1, "--metrics-json", log)
    steps = [[] for _ in range(EPOCHS)]
    for line in log.read_text().splitlines():
        record = json.loads(line)
        if record["step"] and not record["seconds"]:
            steps[record["epoch"]].append(record["loss"])
    return [loss for epoch in steps for loss in epoch], list(map(sum, steps))


def near(got, want, tolerance):
    print(f"{got:.6f}, expected {want:.6f} +- {tolerance}")
    return abs(got - want) <= tolerance


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--imdb", action="store_true")
    flags = parser.parse_args()
    data = flags.data / "mutag"
    if flags.imdb:
        data = pathlib.Path(os.environ.get("MILLRACE_DATA", "")) / "imdb-binary"
        if "MILLRACE_DATA" not in os.environ or not data.is_dir():
            print("skipped: MILLRACE_DATA names no folder with imdb-binary")
            sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="millrace-tutorial-") as name:
        directory = pathlib.Path(name)
        losses, sums = train(flags, data, directory)
        first = np.load(directory / "order.npy")[0][:32]
        want = first_loss(data, first)
        ok = near(losses[0], want, 1e-5 * want)
        if flags.imdb:
            ok &= near(losses[0], DGL_FIRST, 1e-4)
            for got, stated in zip(sums, DGL_SUMS):
                ok &= near(got, stated, 0.01 * stated)
    sys.exit(not ok)


if __name__ == "__main__":
    main()
