# SPDX-License-Identifier: Apache-2.0
"""The splits and the order of DGL's tutorial for a collection of graphs.

Writes into OUT: train.npy, valid.npy and test.npy, the numbers of the graphs
of dgl.data.split_dataset(frac_list=[0.8, 0.1, 0.1], shuffle=True,
random_state=0), and order.npy, [epochs, n]: the graphs of the train split as
GraphDataLoader(shuffle=True, use_ddp=True) of one process takes them, that is
by torch.randperm of a generator with the epoch as its seed. NumPy has the same
generator, so PyTorch is not needed.

Usage: tutorial_order.py DATA OUT EPOCHS
"""
import gzip
import pathlib
import sys

import numpy as np


def count_graphs(folder):
    (path,) = folder.glob("*_graph_labels.txt*")
    opened = gzip.open(path) if path.suffix == ".gz" else open(path, "rb")
    with opened as lines:
        return sum(1 for line in lines if line.strip())


def randperm(n, seed):
    """torch.randperm(n, generator=torch.Generator().manual_seed(seed))."""
    words = np.frombuffer(np.random.RandomState(seed).bytes(4 * n), "<u4")
    order = np.arange(n)
    for i in range(n - 1):
        j = i + int(words[i]) % (n - i)
        order[i], order[j] = order[j], order[i]
    return order


def main():
    data, out, epochs = sys.argv[1:]
    out = pathlib.Path(out)
    graphs = count_graphs(pathlib.Path(data))
    shuffled = np.random.RandomState(0).permutation(graphs)
    ends = [int(graphs * 0.8), int(graphs * 0.8) + int(graphs * 0.1)]
    train, valid, test = np.split(shuffled.astype(np.int64), ends)
    order = [train[randperm(len(train), epoch)]
             for epoch in range(int(epochs))]
    for name, ids in [("train", train), ("valid", valid), ("test", test),
                      ("order", np.stack(order))]:
        np.save(out / f"{name}.npy", ids)


if __name__ == "__main__":
    main()
