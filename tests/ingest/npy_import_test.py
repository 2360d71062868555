# SPDX-License-Identifier: Apache-2.0
"""`millrace import npy` end to end: every kind of array in every dtype and
order gives the same dataset, and hostile files give a clear error."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

INTEGERS = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", ">i8", "<u8"]
FLOATS = ["<f2", "<f8", ">f4"]
NODES, EDGES, SEEDS = 20, 60, 10
LITTLE = 512 << 20  # bytes of memory


def tables():
    """An array for each option, with values that every dtype can represent."""
    random = np.random.default_rng(3)

    def small(*shape):
        return random.integers(0, NODES, shape)
    return {"edges": small(2, EDGES), "features": small(NODES, 3),
            "labels": small(NODES), "node-times": np.zeros(NODES, int),
            "edge-weights": small(EDGES), "edge-times": small(EDGES),
            "edge-types": small(EDGES), "edge-features": small(EDGES, 2),
            "train": random.permutation(NODES)[:SEEDS],
            "valid": random.permutation(NODES)[:SEEDS]}


class NpyImportTest(unittest.TestCase):
    bin = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="millrace-npy-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.imports = 0

    def save(self, arrays):
        """Options that name a file for each array, or an existing path."""
        options = []
        for option, array in arrays.items():
            path = array
            if isinstance(array, np.ndarray):
                path = self.folder / f"{option.replace('=', '-')}.npy"
                np.save(path, array)
            name, _, kind = option.partition("=")
            options += [f"--{name}", f"{kind}={path}" if kind else str(path)]
        return options

    def run_import(self, options, out=None):
        """Returns the status, the errors, and the fingerprint if there is one."""
        self.imports += 1
        out = out or self.folder / f"dataset-{self.imports}"
        errors = self.folder / "errors.txt"
        with open(errors, "w", encoding="utf-8") as file:
            child = subprocess.Popen(
                [self.bin / "millrace", "import", "npy", *options, "--out",
                 str(out)], stdout=subprocess.DEVNULL, stderr=file)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertLess(usage.ru_maxrss << 10, LITTLE)
        text = errors.read_text(encoding="utf-8", errors="replace")
        self.assertNotIn("bug in Millrace", text)
        if child.returncode != 0:
            return child.returncode, text, None
        manifest = json.loads((out / "store.json").read_text())
        return 0, text, manifest["fingerprint"]

    def import_arrays(self, arrays):
        status, errors, fingerprint = self.run_import(self.save(arrays))
        self.assertEqual(status, 0, errors)
        return fingerprint

    def refused(self, arrays, *more):
        status, errors, _ = self.run_import([*self.save(arrays), *more])
        self.assertEqual(status, 1, errors)
        self.assertFalse(list(self.folder.glob("dataset-*")), errors)
        return errors

    def test_dtypes_and_orders_do_not_matter(self):
        arrays = tables()
        plain = self.import_arrays(arrays)
        for option, array in arrays.items():
            dtypes = list(INTEGERS)
            if option in ("features", "edge-weights", "edge-features"):
                dtypes += FLOATS
            for dtype in dtypes:
                for order in "CF" if array.ndim == 2 else "C":
                    with self.subTest(option=option, dtype=dtype, order=order):
                        changed = np.asarray(array, dtype=dtype, order=order)
                        self.assertEqual(plain, self.import_arrays(
                            {**arrays, option: changed}))
        for order in "CF":
            edges = np.asarray(arrays["edges"].T, order=order)
            self.assertEqual(plain,
                             self.import_arrays({**arrays, "edges": edges}))

    def test_bools_are_zero_and_one(self):
        arrays = tables()
        for option in ("features", "labels", "node-times", "edge-weights",
                       "edge-times", "edge-types", "edge-features"):
            with self.subTest(option=option):
                bits = arrays[option] % 2 == 1
                if option == "node-times":
                    bits[:] = False
                self.assertEqual(
                    self.import_arrays({**arrays, option: bits}),
                    self.import_arrays({**arrays, option: bits.astype(int)}))
        mask = np.zeros(NODES, bool)
        mask[arrays["train"]] = True
        self.assertEqual(self.import_arrays(arrays),
                         self.import_arrays({**arrays, "train": mask}))

    def test_splits_of_edges_in_every_dtype_and_order(self):
        arrays = tables()
        del arrays["train"], arrays["valid"]
        pairs = np.random.default_rng(5).integers(0, NODES, (SEEDS, 2))
        ids = np.arange(0, EDGES, 7)
        for split in (pairs, ids):
            option = "train=node__to__node"
            plain = self.import_arrays({**arrays, option: split})
            for dtype in INTEGERS:
                for order in "CF":
                    with self.subTest(dtype=dtype, order=order):
                        changed = np.asarray(split, dtype=dtype, order=order)
                        self.assertEqual(plain, self.import_arrays(
                            {**arrays, option: changed}))

    def test_impossible_ids(self):
        for id_, dtype in ((2**63 - 1, "<i8"), (2**62 + 1, "<i8"),
                           (2**63, "<u8"), (2**64 - 1, "<u8"), (-1, "<i8"),
                           (2**33, "<i8")):
            edges = tables()["edges"].astype(dtype)
            edges[1, 4] = np.array(id_, dtype)
            with self.subTest(id=id_):
                errors = self.refused({"edges": edges})
                self.assertRegex(errors, "edges.npy: (edge|row) 4: |"
                                         "fewer than one per 1000 nodes")

    def test_forbidden_names(self):
        edges = tables()["edges"]
        for name in ("../../x", "/etc", "..", "a\nb", "x" * 300, "stra\u00dfe",
                     ".", "a b"):
            with self.subTest(name=name):
                np.save(self.folder / "edges.npy", edges)
                self.refused({}, "--edges",
                             f"a__{name}__b={self.folder / 'edges.npy'}")

    def test_lying_headers(self):
        def write(shape, descr="'<i8'", order="False"):
            header = (f"{{'descr': {descr}, 'fortran_order': {order}, "
                      f"'shape': {shape}, }}")
            header += " " * (-(len(header) + 11) % 64) + "\n"
            path = self.folder / "edges.npy"
            path.write_bytes(b"\x93NUMPY\x01\x00" +
                             len(header).to_bytes(2, "little") +
                             header.encode() + bytes(160))
            return {"edges": path}
        for case in (("(2, 1000000000000)",), ("(2, -1)",),
                     ("(9223372036854775807, 2)",),
                     ("(4294967296, 4294967296)",),
                     ("(" + "1," * 3000 + ")",), ("(2, 10)", "'|O'"),
                     ("(2, 10)", "[('a', '<i8')]"), ("(2, 10)", "'<i16'"),
                     ("(2, 11)",), ("(2, 9)",), ("(2, 11)", "'<i8'", "True")):
            with self.subTest(case=case[0][:40]):
                self.assertIn("edges.npy", self.refused(write(*case)))
        self.assertEqual(self.run_import(self.save(write("(2, 10)")))[0], 0)

    def test_invalid_numbers(self):
        arrays = tables()
        for value in (np.nan, np.inf, -np.inf, -1):
            weights = arrays["edge-weights"].astype("<f8")
            weights[7] = value
            self.assertIn("edge-weights.npy", self.refused(
                {**arrays, "edge-weights": weights}))
        for option in ("features", "edge-features"):
            values = arrays[option].astype("<f8")
            values[4, 1] = np.nan
            self.assertIn(f"{option}.npy",
                          self.refused({**arrays, option: values}))

    def test_unwritable_targets(self):
        options = self.save({"edges": tables()["edges"]})
        places = {}
        for name, target in (("dangling", "/nowhere/at/all"),
                             ("near", self.folder / "not-there"),
                             ("directory", self.folder / "other"),
                             ("file", self.folder / "edges.npy")):
            places[name] = self.folder / name
            places[name].symlink_to(target)
        (self.folder / "other").mkdir()
        (self.folder / "errors.txt").touch()
        before = sorted(self.folder.rglob("*"))
        edges = (self.folder / "edges.npy").read_bytes()
        for out in (*places.values(), self.folder, self.folder / "edges.npy",
                    self.folder / "edges.npy" / "x", "/proc/x", "/sys/x",
                    "/proc/self/fd/x"):
            with self.subTest(out=str(out)):
                status, errors, _ = self.run_import(options, out)
                self.assertEqual(status, 1, errors)
                self.assertIn(str(pathlib.Path(out).parent), errors)
                self.assertEqual(sorted(self.folder.rglob("*")), before)
        self.assertTrue(all(place.is_symlink() for place in places.values()))
        self.assertEqual((self.folder / "edges.npy").read_bytes(), edges)

    def test_empty_graphs(self):
        none = np.zeros((2, 0), np.int64)
        status, errors, _ = self.run_import(
            [*self.save({"edges": none}), "--num-nodes", "5"])
        self.assertEqual(status, 0, errors)
        loops = np.array([[0, 1, 1], [0, 1, 1]])
        self.assertEqual(self.run_import(self.save({"edges": loops}))[0], 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    NpyImportTest.bin = args.bin
    unittest.main(argv=[sys.argv[0], *rest])
