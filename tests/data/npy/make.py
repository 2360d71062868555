#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the .npy files of this folder with NumPy; run it here."""

import numpy as np

GRID = np.arange(6, dtype=np.float64).reshape(2, 3) / 2

for major in (1, 2, 3):
    with open(f"v{major}.npy", "wb") as file:
        np.lib.format.write_array(file, GRID, version=(major, 0))
for name in ("uint8", "int8", "int32", "uint32", "int64", "uint64", "float16",
             "float32", "float64"):
    np.save(name, np.array([1, 254 if name.startswith("u") else -2, 3],
                           dtype=name))
np.save("empty", np.zeros((0, 4), np.int64))
np.save("scalar", np.array(2.5))
np.save("big_endian", np.array([1, 2], dtype=">i4"))
np.save("fortran", np.asfortranarray(GRID))
np.save("bool", np.array([True, False]))
np.save("object", np.array([None, "x"], dtype=object))
np.save("structured", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]))
np.save("complex", np.zeros(2, np.complex64))
