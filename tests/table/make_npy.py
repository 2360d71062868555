#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .npy inputs of npy_rows_test.cc: make_npy.py FOLDER [tall].

numbers-DTYPE.npy is [1, 0, 3] in that dtype, matrix-*.npy is
[[0, 1, 2], [10, 11, 12]] in several orders, edges-*.npy is the edge list
0 -> 5, 1 -> 6, 2 -> 7.
"""

import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(sys.argv[1])
INTEGERS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]
FLOATS = ["f2", "f4", "f8"]


def save(name, array):
    np.save(ROOT / f"{name}.npy", array)


for order in "<>":
    for code in INTEGERS + FLOATS:
        name = ("le_" if order == "<" else "be_") + code
        save(f"numbers-{name}", np.array([1, 0, 3], order + code))
        matrix = np.array([[0, 1, 2], [10, 11, 12]], order + code)
        save(f"matrix-c_{name}", matrix)
        save(f"matrix-f_{name}", np.asfortranarray(matrix))
save("numbers-bool", np.array([True, False, True]))
save("negative-i1", np.array([-1, 5], np.int8))
save("negative-i2", np.array([-2, 5], ">i2"))
save("large-u8", np.array([1, 2 ** 63], np.uint64))

edges = np.array([[0, 1, 2], [5, 6, 7]])
save("edges-columns", edges)
save("edges-rows", np.ascontiguousarray(edges.T))
save("edges-t", edges.T)  # Fortran order: PyG's edge_index.t()
save("edges-fortran", np.asfortranarray(edges))
save("edges-int16", edges.T.astype(">i2"))
save("edges-two", np.array([[0, 1], [5, 6]]))
save("edges-bool", edges > 0)
save("edges-float", edges.astype(np.float32))

save("mask", np.array([False, True, True, False]))
save("mask-matrix", np.zeros((2, 2), bool))
save("multi", np.asfortranarray([[True, False], [False, False], [True, True]]))
save("pairs", np.asfortranarray(np.array([[3, 4], [5, 6]], np.uint16)))
save("complex", np.array([1j]))
save("text", np.array(["a"]))
save("structure", np.array([(1, 2)], [("a", "<i4"), ("b", "<i4")]))
save("cube", np.zeros((2, 2, 2)))
if "tall" in sys.argv:  # 64 MiB; each row is spread over all of them
    save("tall", np.asfortranarray(
        np.arange(16 << 20, dtype=np.float32).reshape(1 << 20, 16)))

(ROOT / "text.csv").write_text("0,1\n2,3\n")
(ROOT / "names.csv").write_text("src\tdst\n0\t1\n")
(ROOT / "floats.txt").write_text("0.5 1e3\n2 3\n")
np.savez(ROOT / "arrays.npz", a=np.arange(3))
(ROOT / "table.parquet").write_bytes(b"PAR1....")
(ROOT / "tensor.pt").write_bytes(b"PK\3\4....")
(ROOT / "noise.bin").write_bytes(bytes(range(256)))
