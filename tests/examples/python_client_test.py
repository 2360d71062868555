# SPDX-License-Identifier: Apache-2.0
"""The batches of docs/examples/python, made by a fleet of three partitions,
equal those that `millrace sample` makes from the dataset."""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENT = ROOT / "docs/examples/python"
try:
    import google.protobuf as _
    import grpc
    import numpy as np
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} lacks what the client needs: {missing}")
    sys.exit(SKIPPED)
sys.path.insert(0, str(CLIENT))
import millrace_client


def equal(actual, expected, what):
    """Compares an array with JSON, whose floats are exact; null means NaN."""
    expected = np.array(expected, actual.dtype).reshape(actual.shape)
    np.testing.assert_array_equal(actual, expected, what)


class Fleet:
    """`millrace up` with three servers, plus an address without a server."""

    def __init__(self, bin_dir, dataset):
        self.dataset = dataset
        store = dataset.with_suffix(".store")
        subprocess.run([bin_dir / "millrace", "partition", dataset, "--parts",
                        "3", "--method", "hash", "--directions", "both",
                        "--out", store], check=True,
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [bin_dir / "millrace", "up", store, "--servers", "3"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True)
        self.list = self.process.stdout.readline().strip()
        if not self.list:
            raise RuntimeError("millrace up prints no LIST")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=30)


def random_graph(folder, rng):
    """Arguments of `import npy` for papers, authors, weights, edge features."""
    def save(name, array):
        np.save(folder / name, array)
        return str(folder / name) + ".npy"

    writes = np.stack([rng.integers(0, 90, 900), rng.integers(0, 200, 900)])
    cites = rng.integers(0, 200, (2, 1500))
    return [
        "--edges", "author__writes__paper=" + save("writes", writes),
        "--edges", "paper__cites__paper=" + save("cites", cites),
        "--edge-weights", "author__writes__paper=" +
        save("weights", rng.random(900, np.float32)),
        "--edge-weights", "paper__cites__paper=" +
        save("more", rng.random(1500, np.float32)),
        "--edge-features", "author__writes__paper=" +
        save("edge_x", rng.random((900, 3), np.float32)),
        "--features", "paper=" + save("x", rng.random((200, 5), np.float32)),
        "--labels", "paper=" + save("y", rng.integers(0, 4, 200)),
        "--train", "paper=" + save("train", rng.permutation(200)[:50])]


def timed_graph(folder, rng):
    """Arguments of `import npy` for a relation with times at edges and nodes."""
    edges = rng.integers(0, 150, (2, 2000))
    node_times = rng.integers(20, 24, 150)
    later = rng.integers(0, 3, 2000) * 15
    arrays = {"edges": edges,
              "edge-times": node_times[edges].max(0) + later,
              "node-times": node_times,
              "features": rng.random((150, 4), np.float32),
              "labels": rng.integers(0, 3, 150),
              "train": np.arange(0, 150, 3)}
    arguments = []
    for name, array in arrays.items():
        np.save(folder / name, array)
        arguments += [f"--{name}", str(folder / name) + ".npy"]
    return arguments


class PythonClientTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-python-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.folder = pathlib.Path(cls.directory.name)
        rng = np.random.default_rng(1)
        cls.fleets, cls.clients = {}, {}
        for name, words in (
                ("cora", ["ogb", ROOT / "tests/data/cora", "--split",
                          "public"]),
                ("papers", ["npy", *random_graph(cls.folder, rng)]),
                ("timed", ["npy", *timed_graph(cls.folder, rng)])):
            subprocess.run([cls.bin / "millrace", "import", *words, "--out",
                            cls.folder / name], check=True,
                           stderr=subprocess.DEVNULL)
            fleet = Fleet(cls.bin, cls.folder / name)
            cls.addClassCleanup(fleet.stop)
            cls.fleets[name] = fleet
            cls.clients[name] = millrace_client.Client(
                ["127.0.0.1:1", *fleet.list.split(",")])

    def sample(self, name, batch, options):
        """The output of `millrace sample` for the same batch."""
        done = subprocess.run(
            [self.bin / "millrace", "sample", "--store",
             self.fleets[name].dataset, "--epoch", str(batch["epoch"]),
             "--batch", str(batch["batch"]), "--with-features", "--json",
             *options], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def compare(self, batch, expected):
        for name, node in batch["nodes"].items():
            equal(node["original_id"], expected["nodes"][name], name)
            if "tree" in node:
                equal(node["tree"], expected["trees"][name], name)
            for kind, key in ("node_feature", "x"), ("node_label", "y"):
                self.assertEqual(kind in node and node[kind].size > 0,
                                 bool(expected[key].get(name)), (name, kind))
                if kind in node:
                    equal(node[kind], expected[key].get(name, []), name)
        for relation, edge in batch["edges"].items():
            other = expected["edges"]["__".join(relation)]
            for kind, key in (("edge_hop", "hop"), ("src", "src"),
                              ("dst", "dst"), ("edge_id", "edge_id"),
                              ("edge_feature", "x"), ("visits", "visits")):
                self.assertEqual(kind in edge, key in other, (relation, kind))
                if kind in edge:
                    equal(edge[kind], other[key], (relation, kind))

    def compare_epoch(self, name, job, options, epoch=1, **columns):
        """Compares all batches of an epoch; returns them."""
        job = {"split": "train", "batch_size": 16, "seed": 3, "shuffle": True,
               **job}
        batches = list(self.clients[name].batches(job, epoch, **columns))
        options = ["--batch-size", "16", "--seed", "3", *options]
        self.assertGreater(len(batches), 3)
        for batch in batches:
            expected = self.sample(name, batch, options)
            equal(batch["seeds"]["seed"], expected["seeds"]["ids"], "seeds")
            equal(batch["seeds"]["seed_to_local"], expected["seed_to_local"],
                  "seed_to_local")
            self.compare(batch, expected)
        count = self.clients[name].batch_count(
            self.clients[name].pb.SampleRequest(job=job).job)
        self.assertEqual(len(batches), count)
        return batches

    def test_homogeneous_epoch(self):
        self.compare_epoch("cora", {"fanouts": [5, 3]}, ["--fanouts", "5,3"])

    def test_weighted_relations_with_edge_features(self):
        fanouts = {"author__writes__paper": [4, 3],
                   "paper__cites__paper": [3, -1]}
        job = {"relation_fanouts": [{"relation": name, "fanouts": numbers}
                                    for name, numbers in fanouts.items()],
               "seed_type": "paper", "weighted": True}
        options = ["--type", "paper", "--weighted", "--edge-features",
                   "--labels", "all"]
        for name, (first, second) in fanouts.items():
            options += ["--fanouts", f"{name}={first},{second}"]
        self.compare_epoch("papers", job, options, edge_features=True,
                           labels="LABEL_ROWS_ALL")

    def test_edge_features_of_out_lists(self):
        self.compare_epoch(
            "papers", {"fanouts": [3, 2], "seed_type": "paper",
                       "direction": "DIRECTION_OUT"},
            ["--type", "paper", "--fanouts", "3,2", "--direction", "out",
             "--edge-features"], edge_features=True)

    def test_temporal_epoch(self):
        self.compare_epoch("timed", {"fanouts": [4, 2],
                                     "temporal": "TEMPORAL_LAST"},
                           ["--fanouts", "4,2", "--temporal", "last"])

    def test_explicit_seeds_have_the_times_of_their_nodes(self):
        job = {"fanouts": [4, 2], "temporal": "TEMPORAL_UNIFORM",
               "batch_size": 8, "seed": 3}
        for seeds in ({"seed": [7, 149, 0, 7]},
                      {"seed": [5, 6], "seed_time": [50, 3]}):
            options = ["--fanouts", "4,2", "--temporal", "uniform", "--seed",
                       "3", "--seed-ids", ",".join(map(str, seeds["seed"]))]
            if "seed_time" in seeds:
                options += ["--seed-times",
                            ",".join(map(str, seeds["seed_time"]))]
            (batch,) = self.clients["timed"].batches(job, seeds=seeds)
            self.compare(batch, self.sample("timed", batch, options))

    def test_walks_induced_edges_and_visits(self):
        steps = {"walks": 3, "walk_length": 4}
        words = ["--walks", "3", "--walk-length", "4"]
        batches = self.compare_epoch(
            "timed", {"method": "METHOD_WALK", **steps},
            ["--method", "walk", *words])
        for batch in batches:
            expected = self.sample("timed", batch, [
                "--batch-size", "16", "--seed", "3", "--method", "walk",
                *words])
            equal(batch["seeds"]["walks"], expected["walks"], "walks")
        self.compare_epoch("cora", {"method": "METHOD_INDUCED",
                                    "fanouts": [3]},
                           ["--method", "induced", "--fanouts", "3"])
        self.compare_epoch("timed", {"method": "METHOD_PPR", "fanouts": [3],
                                     "restart": 0.2, **steps},
                           ["--method", "ppr", "--fanouts", "3", "--restart",
                            "0.2", *words])

    def test_edge_seeds_and_negatives(self):
        seeds = {"seed": [3, 4, 5], "seed_dst": [10, 11, 12]}
        relation = "author__writes__paper"
        for mode, word in (("BINARY", "binary"), ("TRIPLET", "triplet")):
            job = {"seed_kind": "SEED_KIND_EDGE", "seed_type": relation,
                   "negatives": "NEGATIVES_" + mode, "negative_amount": 2,
                   "exclude": "EXCLUDE_SELF", "fanouts": [3], "seed": 3,
                   "batch_size": 8}
            (batch,) = self.clients["papers"].batches(job, seeds=seeds)
            expected = self.sample("papers", batch, [
                "--seeds", "edge", "--type", relation, "--negatives",
                word + ":2", "--exclude-seed-edges", "self", "--fanouts", "3",
                "--seed", "3", "--seed-ids", "3,4,5", "--seed-dst-ids",
                "10,11,12"])
            self.compare(batch, expected)
            pairs = batch["seeds"]
            if mode == "BINARY":
                src = np.append(pairs["seed_to_local"],
                                pairs["negative_src_local"])
                dst = np.append(pairs["dst_local"], pairs["negative_local"])
                equal(src, expected["seed_to_local"][0], mode)
                equal(dst, expected["seed_to_local"][1], mode)
            else:
                equal(pairs["negative_dst"], expected["seeds"]["neg"], mode)
                equal(pairs["negative_local"], expected["seed_to_local"][2],
                      mode)

    def test_refuses_missing_columns(self):
        client = self.clients["cora"]
        with self.assertRaisesRegex(ValueError, "below 2708"):
            next(client.batches({"fanouts": [2], "batch_size": 4},
                                seeds={"seed": [2708]}))
        with self.assertRaisesRegex(grpc.RpcError, "no weights"):
            next(client.batches({"fanouts": [2], "batch_size": 4, "split":
                                 "train", "weighted": True}))

    def test_program_of_the_readme(self):
        readme = (CLIENT / "README.md").read_text()
        program = self.folder / "count.py"
        program.write_text(re.search(r"```python\n(.*?)```", readme,
                                     re.DOTALL).group(1))
        done = subprocess.run(
            [sys.executable, "-B", program, self.fleets["cora"].list],
            env={**os.environ, "PYTHONPATH": str(CLIENT)}, check=True,
            stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout, "3 batches, 140 seeds\n")

    def test_pyg(self):
        try:
            import torch
            import torch_geometric
        except ImportError as error:
            self.skipTest(f"no PyTorch Geometric: {error}")
        del torch_geometric
        for name, job, key in (
                ("cora", {"seed_type": "node"}, None),
                ("papers", {"seed_type": "paper"},
                 ("author", "writes", "paper")),
                ("papers", {"seed_type": "paper",
                            "direction": "DIRECTION_OUT"},
                 ("paper", "rev_cites", "paper"))):
            job = {"fanouts": [3, 2], "batch_size": 16, "split": "train",
                   **job}
            batch = next(self.clients[name].batches(job))
            data = millrace_client.to_pyg(batch)
            data.validate(raise_on_error=True)
            seeds = data if key is None else data["paper"]
            edges = data if key is None else data[key]
            self.assertEqual(seeds.batch_size, 16)
            self.assertEqual(seeds.x.shape[0], seeds.num_nodes)
            self.assertEqual(len(seeds.y), 16)
            self.assertEqual(seeds.n_id[:16].tolist(),
                             seeds.input_id.tolist())
            self.assertEqual(sum(seeds.num_sampled_nodes), seeds.num_nodes)
            self.assertEqual(sum(edges.num_sampled_edges),
                             edges.edge_index.shape[1])
            self.assertEqual(edges.e_id.dtype, torch.int64)
            # Messages flow to the nodes that were expanded.
            expanded = sum(seeds.num_sampled_nodes[:-1])
            self.assertLess(int(edges.edge_index[1].max()), expanded)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    PythonClientTest.bin = options.bin
    unittest.main(argv=[sys.argv[0], *rest])
