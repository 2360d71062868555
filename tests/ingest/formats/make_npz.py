#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .npz inputs of npz_formats_test.cc: make_npz.py FOLDER.

The graph has N nodes and E edges; edge i goes from i * 7 % N to i * i % N.
numpy.savez_compressed with these keys writes what scipy.sparse.save_npz does.
"""

import pathlib
import sys

import numpy as np

N, E = 50, 70000  # more edges than the reader takes at a time
I = np.arange(E, dtype=np.int64)
SRC, DST = I * 7 % N, I * I % N
NODES = np.arange(N)


def reddit(folder, save, node_types=NODES % 4, **matrix):
    folder.mkdir()
    save(folder / "reddit_data.npz",
         feature=NODES[:, None] / np.array([2.0, 4.0]),
         label=(NODES % 3).astype(np.int32), node_ids=NODES + 1000,
         node_types=node_types)
    save(folder / "reddit_graph.npz", data=np.ones(E), **matrix)


def compressed(heads, tails):
    order = np.argsort(heads, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=N))])
    return {"indices": tails[order].astype(np.int32),
            "indptr": indptr.astype(np.int32)}


def papers(folder, save, edge_index):
    (folder / "raw").mkdir(parents=True)
    split = folder / "split" / "time"
    split.mkdir(parents=True)
    save(folder / "raw" / "data.npz", edge_index=edge_index,
         num_nodes_list=np.array([N]), num_edges_list=np.array([E]),
         node_feat=(NODES[:, None] / np.array([2.0, 4.0])).astype(np.float16),
         node_year=NODES[:, None] + 2000,
         edge_weight=(I[:, None] % 5).astype(np.float32))
    label = np.where(NODES % 2 == 0, np.nan, NODES % 7).astype(np.float32)
    save(folder / "raw" / "node-label.npz", node_label=label[:, None])
    for name, first in (("train", 1), ("valid", 3), ("test", 5)):
        (split / f"{name}.csv").write_text(f"{first}\n{first + 10}\n")


def binary(folder, **arrays):
    """An OGB folder of three edges."""
    (folder / "raw").mkdir(parents=True)
    columns = {"edge_index": np.array([[0, 1, 2], [1, 2, 0]]),
               "num_nodes_list": np.array([3]),
               "num_edges_list": np.array([3]), **arrays}
    np.savez(folder / "raw" / "data.npz", **columns)


def wrong_folders(root, shape, coo):
    """Folders that are refused."""
    csr = {"format": np.array("csr"), "shape": shape, **compressed(SRC, DST)}
    for name, at, value in (("first", 0, 1), ("last", N, E - 1),
                            ("falling", 5, 2 ** 30)):
        indptr = csr["indptr"].copy()
        indptr[at] = value
        reddit(root / name, np.savez, **{**csr, "indptr": indptr})
    reddit(root / "short", np.savez,
           **{**csr, "indptr": csr["indptr"][:-1]})
    reddit(root / "number", np.savez, format=np.array(7), shape=shape)
    reddit(root / "ragged", np.savez, format=np.array("coo"), shape=shape,
           row=coo["row"][:-1], col=coo["col"])
    for name, value in (("fourth", 4), ("negative", -1)):
        node_types = NODES % 4
        node_types[2] = value
        reddit(root / name, np.savez, node_types, format=np.array("coo"),
               shape=shape, **coo)
    binary(root / "two_graphs", num_nodes_list=np.array([3, 4]))
    binary(root / "negative_count", num_edges_list=np.array([-1]))
    binary(root / "fewer_edges", num_edges_list=np.array([2]))


def main():
    root = pathlib.Path(sys.argv[1])
    shape = np.array([N, N])
    coo = {"row": SRC.astype(np.int32), "col": DST.astype(np.int32)}
    reddit(root / "coo", np.savez_compressed, format=np.array(b"coo"),
           shape=shape, **coo)
    reddit(root / "stored", np.savez, format=np.array("coo"), shape=shape,
           **coo)
    reddit(root / "csr", np.savez_compressed, format=np.array(b"csr"),
           shape=shape, **compressed(SRC, DST))
    reddit(root / "csc", np.savez, format=np.array(b"csc"), shape=shape,
           **compressed(DST, SRC))
    reddit(root / "dia", np.savez, format=np.array(b"dia"), shape=shape)
    reddit(root / "shape", np.savez, format=np.array(b"coo"), shape=shape + 1,
           **coo)
    wrong_folders(root, shape, coo)
    binary(root / "plain")
    binary(root / "years", node_year=np.array([1, 2, 3]),
           edge_year=np.array([4, 5, 6]), edge_type=np.array([7, 8, 9]),
           edge_feat=np.array([[1.5], [2.5], [3.5]]))
    binary(root / "times", node_feat=np.array([[1.], [2.], [3.]]),
           node_time=np.array([1, 2, 3]), node_year=np.array([9, 9, 9]),
           edge_time=np.array([4, 5, 6]), edge_year=np.array([99, 99, 99]),
           edge_reltype=np.array([7, 8, 9]), edge_type=np.array([0, 0, 0]),
           edge_weight=np.array([0.5, 1, 2]))
    edge_index = np.stack([SRC, DST])
    papers(root / "papers", np.savez_compressed, edge_index)
    papers(root / "papers_stored", np.savez, np.asfortranarray(edge_index))
    np.savez(root / "odd.npz", cube=np.zeros((2, 2, 2)), empty=np.zeros((0, 3)),
             text=np.array("abc"), large=np.array([1, 2 ** 63], np.uint64),
             half=np.array([1.5, -2], np.float16))
    wide = np.asfortranarray(np.arange(12).reshape(3, 4).astype(">i2"))
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        save(root / f"fortran_{name}.npz", wide=wide, mask=wide > 5,
             square=np.array([[0, 1], [5, 6]]))


main()
