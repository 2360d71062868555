# SPDX-License-Identifier: Apache-2.0
"""Accuracy of models on real graphs: the mean, over a few seeds or folds, of
the test metric at the best validation.

Needs the graphs in MILLRACE_DATA (nodes: acm, tolokers; graphs: imdb-binary,
mutag; links: fb15k-237); skipped (77) without them. The bounds are well below
what other libraries reach, so that the tests do not fail by chance."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass


@dataclass
class Case:
    """Options of import and of training; {run} is the number of the run."""
    graph: str
    imported: list
    trained: list
    least: float  # mean over the runs
    runs: int = 3


NODES = [
    Case("acm", ["ogb"],
         ["--type", "paper", "--model", "sage", "--fanouts", "25,10",
          "--batch-size", "32", "--hidden", "64", "--epochs", "10",
          "--lr", "0.005"], 0.815),
    Case("acm", ["ogb"],
         ["--type", "paper", "--model", "rgcn", "--fanouts", "25,10",
          "--batch-size", "32", "--hidden", "64", "--epochs", "10",
          "--lr", "0.005"], 0.85),
    Case("tolokers",
         ["ogb", "--undirected", "--coalesce", "--normalize-features",
          "standard"],
         ["--task", "binary", "--metric", "rocauc", "--fanouts", "15,10",
          "--batch-size", "512", "--dropout", "0.2", "--epochs", "20",
          "--lr", "0.003"], 0.79),
]

GIN = ["--task", "graph", "--model", "gin", "--layers", "5", "--hidden", "64",
       "--norm", "batch", "--batch-size", "32", "--lr", "0.003",
       "--threads", "1"]
GRAPHS = [
    Case("imdb-binary",
         ["tu", "--node-features", "degree", "--split-fractions",
          "0.8,0.1,0.1", "--split-seed", "{run}"],
         [*GIN, "--epochs", "30"], 0.72, runs=4),
    Case("mutag", ["tu", "--folds", "10", "--split-seed", "0"],
         [*GIN, "--epochs", "100", "--split", "train{run}",
          "--valid-split", "valid{run}", "--test-split", "test{run}"],
         0.75, runs=4),
]

LINKS = [
    Case("fb15k-237", ["triples"],
         ["--task", "link", "--model", "embedding", "--hidden", "200",
          "--decoder", "distmult", "--negatives", "shared:1024",
          "--loss", "softmax", "--metric", "mrr", "--batch-size", "1024",
          "--lr", "0.005", "--epochs", "4"], 0.27, runs=1),
]


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def best_test(flags, store, options, seed):
    with tempfile.NamedTemporaryFile() as metrics:
        run(flags.bin / "millrace-train", "--store", store, *options,
            "--seed", str(seed), "--model-seed", str(seed),
            "--metrics-json", metrics.name)
        last = pathlib.Path(metrics.name).read_text().splitlines()[-1]
    return json.loads(last)["test"]


def results_of(flags, case, data, directory):
    for number in range(case.runs):
        importer, *options = [word.format(run=number)
                              for word in case.imported]
        store = directory / "-".join([case.graph, *options])
        if not store.exists():
            run(flags.bin / "millrace", "import", importer, data / case.graph,
                *options, "--out", store)
        trained = [word.format(run=number) for word in case.trained]
        yield best_test(flags, store, trained, number + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--of", choices=("nodes", "graphs", "links"),
                        default="nodes", help="what is learned")
    flags = parser.parse_args()
    cases = {"nodes": NODES, "graphs": GRAPHS, "links": LINKS}[flags.of]
    data = pathlib.Path(os.environ.get("MILLRACE_DATA", ""))
    first = cases[0].graph
    if "MILLRACE_DATA" not in os.environ or not (data / first).is_dir():
        print(f"skipped: MILLRACE_DATA names no folder with {first}")
        sys.exit(77)
    failed = False
    with tempfile.TemporaryDirectory(prefix="millrace-accuracy-") as name:
        for case in cases:
            results = list(results_of(flags, case, data, pathlib.Path(name)))
            mean = statistics.mean(results)
            failed |= mean < case.least
            shown = " ".join(f"{result:.3f}" for result in results)
            print(f"{case.graph} {' '.join(case.trained)}: {mean:.3f} +- "
                  f"{statistics.pstdev(results):.3f} of {shown}, "
                  f"at least {case.least}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
