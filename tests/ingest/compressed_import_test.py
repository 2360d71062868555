# SPDX-License-Identifier: Apache-2.0
"""Imports compressed files that expand to far more than their size, and CSV
with bytes that occur in no number: the results must be right, or the errors
clear, and memory use small."""
import argparse
import gzip
import json
import pathlib
import sys
import tempfile
import unittest
import zipfile

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from limited_run import run_limited  # noqa: E402  (its folder comes first)

MB = 1 << 20
ADDRESS_SPACE = 1536 * MB
LITTLE = 768 * MB  # memory, part of which AddressSanitizer takes
NODES = 50


def reddit_files():
    """The arrays in the two files of `import reddit`, by file."""
    ends = np.arange(10, dtype=np.int32)
    return {"reddit_data": {"feature": np.zeros((NODES, 2)),
                            "label": np.zeros(NODES, np.int32),
                            "node_ids": np.arange(NODES),
                            "node_types": np.ones(NODES, np.int64)},
            "reddit_graph": {"row": ends, "col": ends, "data": np.ones(10),
                             "shape": np.array([NODES, NODES]),
                             "format": np.array(b"coo")}}


class Zeros:
    """An array that is written without being created; `size` bytes of data,
    which need not match dtype and shape."""

    def __init__(self, dtype, shape, size):
        self.dtype, self.shape, self.size = dtype, shape, size

    def write(self, file):
        np.lib.format.write_array_header_1_0(
            file, {"descr": self.dtype, "fortran_order": False,
                   "shape": self.shape})
        block = bytes(16 * MB)
        for left in range(self.size, 0, -len(block)):
            file.write(block[:left])


def write_npz(path, arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1,
                         allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                if isinstance(array, Zeros):
                    array.write(file)
                else:
                    np.lib.format.write_array(file, array)


class CompressedImportTest(unittest.TestCase):
    bin = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="millrace-compressed-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.out = self.folder / "dataset"

    def run_import(self, *words):
        ended = run_limited(
            [self.bin / "millrace", "import", *words, "--out", self.out],
            address_space=ADDRESS_SPACE)
        self.assertLess(ended.peak, LITTLE, ended.errors)
        self.assertNotIn("bug in Millrace", ended.errors)
        return ended

    def refused(self, file, *words):
        """The error output, which must name the file."""
        ended = self.run_import(*words)
        self.assertEqual(ended.status, 1, ended.errors)
        self.assertIn(file, ended.errors)
        self.assertFalse(self.out.exists())
        return ended.errors

    def write_ogb(self, **files):
        """Writes a folder with edges 0-1 and 1-2, or with these bytes;
        compressed."""
        raw = self.folder / "ogb" / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        for name, data in {"edge": b"0,1\n1,2\n", "num_node_list": b"4\n",
                           "num_edge_list": b"2\n", **files}.items():
            path = raw / f"{name.replace('_', '-')}.csv.gz"
            # Compresses the data like gzip(1), unless it is compressed
            # already.
            path.write_bytes(data if data[:2] == b"\x1f\x8b"
                             else gzip.compress(data))
        return raw.parent

    def import_reddit(self, file, name, array):
        """Imports files in which one array is replaced."""
        folder = self.folder / "reddit"
        folder.mkdir(exist_ok=True)
        files = reddit_files()
        files[file][name] = array
        for each, arrays in files.items():
            write_npz(folder / f"{each}.npz", arrays)
        self.assertLess((folder / f"{file}.npz").stat().st_size, 32 * MB)
        return folder

    def test_bytes_that_occur_in_no_number(self):
        for edges, line in ((b"0,1\n1\x00,2\n", 2), (b"0,1\n\x001,2\n", 2),
                            (b"0,1\n1,2\x00\n", 2), (bytes(1000), 1),
                            (b"\xef\xbb\xbf0,1\n1,2\n", 1),
                            (b"\xff\xfe0\x00,\x001\x00\n\x00", 1)):
            with self.subTest(edges=edges[:20]):
                errors = self.refused("edge.csv.gz", "ogb",
                                      self.write_ogb(edge=edges))
                self.assertIn(f"edge.csv.gz: line {line}: ", errors)
                self.assertNotRegex(errors, "[\0\ufeff]")
        for count in (b"\xef\xbb\xbf4\n", b"4\0\n", b"\x004\n", b"\x1b[2J4\n"):
            with self.subTest(count=count):
                errors = self.refused("num-node-list.csv.gz", "ogb",
                                      self.write_ogb(num_node_list=count))
                self.assertNotRegex(errors, "[\0\x1b\ufeff]")

    def test_counts_that_lie(self):
        for count in (b"1\n", b"3\n", b"99999999999\n",
                      b"9223372036854775807\n"):
            with self.subTest(count=count):
                self.refused("num-edge-list.csv.gz", "ogb",
                             self.write_ogb(num_edge_list=count))

    def test_more_edges_than_declared(self):
        """Surplus edges are refused before the data that follows is read."""
        errors = self.refused("edge.csv.gz", "ogb", self.write_ogb(
            edge=b"0,1\n" * MB + b"no edge\n"))
        self.assertIn("more edges than the 2 that ", errors)
        self.assertIn("num-edge-list.csv.gz", errors)

    def test_many_edges_in_a_small_file(self):
        part = 1 << 20  # repeated to make the file
        packed = gzip.compress(b"0,1\n" * part)
        folder = self.write_ogb(edge=packed * 32)  # 128 MB
        self.assertLess((folder / "raw" / "edge.csv.gz").stat().st_size, MB)
        errors = self.refused("edge.csv.gz", "ogb", folder)
        self.assertIn("more edges than the 2 that ", errors)
        folder = self.write_ogb(edge=packed * 4,
                                num_edge_list=b"%d\n" % (4 * part))
        ended = self.run_import("ogb", folder, "--memory", "16M")
        self.assertEqual(ended.status, 0, ended.errors)
        manifest = json.loads((self.out / "store.json").read_text())
        self.assertEqual(manifest["relations"][0]["edges"], 4 * part)

    def test_one_long_line_in_a_small_file(self):
        errors = self.refused("edge.csv.gz", "ogb", self.write_ogb(
            edge=gzip.compress(b"1" * MB) * 1024))
        self.assertIn("line 1 is longer than 33554432 bytes", errors)

    def test_plain_reddit_files(self):
        folder = self.import_reddit("reddit_graph", "data", np.ones(10))
        ended = self.run_import("reddit", folder)
        self.assertEqual(ended.status, 0, ended.errors)

    def test_npz_of_2_gib_of_zeros(self):
        size = 2048 * MB
        self.refused("reddit_graph.npz", "reddit", self.import_reddit(
            "reddit_graph", "row", Zeros("<i4", (size // 4,), size)))

    def test_npz_with_one_array_of_zeros(self):
        size = 768 * MB
        for file, name, dtype, shape in (
                ("reddit_data", "feature", "<f8", (NODES, 2)),
                ("reddit_data", "feature", "<f8", (1, size // 8)),
                ("reddit_data", "label", "<i4", (size // 4,)),
                ("reddit_data", "node_types", "<i8", (size // 8,)),
                ("reddit_graph", "row", "<i4", (10,)),
                ("reddit_graph", "shape", "<i8", (size // 8,)),
                ("reddit_graph", "shape", "<i8", (2,)),
                ("reddit_graph", "shape", "<i8", (2, size // 16)),
                ("reddit_graph", "format", f"|S{size}", ())):
            with self.subTest(file=file, name=name, shape=shape):
                errors = self.refused(
                    f"{file}.npz", "reddit", self.import_reddit(
                        file, name, Zeros(dtype, shape, size)))
                self.assertLess(len(errors), 10_000)

    def test_matrices_of_another_shape(self):
        for shape in ([], [NODES], [NODES] * 3, [NODES] * 100_000, [-1, -1],
                      [-NODES, NODES], [0, 0], [2**62, 2**62],
                      [2**63, NODES], [NODES + 0.5, NODES]):
            with self.subTest(shape=shape[:4]):
                folder = self.import_reddit("reddit_graph", "shape",
                                            np.array(shape))
                errors = self.refused("reddit_graph.npz", "reddit", folder)
                self.assertIn("shape", errors)
                self.assertLess(len(errors), 1000)

    def test_lists_that_do_not_fit_the_shape(self):
        size = 768 * MB
        good = np.minimum(np.arange(NODES + 1), 10)
        for number, indptr in enumerate((
                Zeros("<i8", (size // 8,), size), good[:-1],
                np.append(good, 10), good[::-1], good - 1, good * 2,
                np.full(NODES + 1, 2**62), np.zeros((NODES + 1, 1), int))):
            with self.subTest(number=number):
                folder = self.import_reddit("reddit_graph", "indptr", indptr)
                files = {**reddit_files()["reddit_graph"], "indptr": indptr,
                         "indices": np.arange(10), "format": np.array(b"csr")}
                write_npz(folder / "reddit_graph.npz", files)
                errors = self.refused("reddit_graph.npz", "reddit", folder)
                self.assertIn("indptr", errors)
                self.assertLess(len(errors), 1000)

    def test_more_than_deflate_can_hold(self):
        """The directory claims that an entry of a few bytes expands to 4 GB."""
        folder = self.import_reddit("reddit_data", "node_ids", np.arange(5))
        path = folder / "reddit_data.npz"
        data = bytearray(path.read_bytes())
        at = 0
        while (at := data.find(b"PK\1\2", at)) >= 0:
            data[at + 24:at + 28] = (0xfffffff0).to_bytes(4, "little")
            at += 4
        path.write_bytes(data)
        errors = self.refused("reddit_data.npz", "reddit", folder)
        self.assertIn("compressed bytes, which cannot become 4294967280",
                      errors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    CompressedImportTest.bin = args.bin
    unittest.main(argv=[sys.argv[0], *rest])
