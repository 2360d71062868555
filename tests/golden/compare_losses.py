#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with the programs of two builds, side by side, and compares losses
and metrics to the last digit.

Both builds make the stores and run their own servers. Every line of
--metrics-json except its times, every line of --consumed-log and every byte of
--predict must be equal. Exit status: 0 if all are equal, 1 otherwise.
"""
import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import stores
from trainings import TRAINING_RUNS


class Build:
    """The programs of one build, with stores and servers of its own."""

    def __init__(self, bin_folder, data, folder, stack):
        self.bin, self.data, self.folder = bin_folder, data, folder
        self.stack, self.servers = stack, {}
        folder.mkdir()

    def source(self, training):
        store = self.folder / training.store
        if not store.exists():
            name = training.store.removesuffix("-2")
            stores.make(self.bin, self.data, self.folder, name)
        if not training.fleet:
            return ["--store", store]
        if store not in self.servers:
            self.servers[store] = self.stack.enter_context(
                stores.fleet(self.bin, self.folder, store))
        return ["--servers", self.servers[store]]

    def run_folder(self, number):
        return self.folder / f"run-{number}"

    def train(self, number, training, more=""):
        """Runs the training; returns its error output if it failed."""
        source = self.source(training)
        folder = self.run_folder(number)
        folder.mkdir(exist_ok=True)
        options = f"{training.options} {more}".split()
        if "--feature-dtype" not in options:
            options += ["--consumed-log", "consumed.json"]
        done = subprocess.run(
            [self.bin / "millrace-train", *source, "--threads", "1",
             "--workers", str(training.workers), "--metrics-json",
             "metrics.json", "--log-every", "1", *options], cwd=folder,
            text=True, capture_output=True, check=False)
        return done.stderr if done.returncode else ""


def without_times(line):
    """Returns a line's object without the times."""
    return {key: value for key, value in json.loads(line).items()
            if not key.endswith("seconds")}


def results(folder):
    """Everything that must be equal, by file: objects of lines, or bytes."""
    metrics = (folder / "metrics.json").read_text().splitlines()
    found = {"metrics.json": [without_times(line) for line in metrics]}
    if (folder / "consumed.json").exists():
        # Workers write their lines in any order.
        found["consumed.json"] = sorted(
            (folder / "consumed.json").read_text().splitlines())
    for path in sorted(folder.glob("*.npy")):
        found[path.name] = [path.read_bytes()]
    return found


def first_difference(first, second):
    """The first difference between the results of two builds, or None."""
    if set(first) != set(second):
        return f"files {sorted(first)} and {sorted(second)}"
    for name, rows in first.items():
        others = second[name]
        if len(rows) != len(others):
            return f"{name}: {len(rows)} and {len(others)} lines"
        for number, (row, other) in enumerate(zip(rows, others), 1):
            if row != other:
                shown = "" if isinstance(row, bytes) else f" {row} and {other}"
                return f"{name}, line {number} differs:{shown}"
    return ""


def losses_of(found):
    return [line["loss"] for line in found["metrics.json"]
            if line["loss"] is not None]


def swap_checkpoints(folders):
    first, second = (folder / "checkpoint" for folder in folders)
    aside = folders[0] / "aside"
    shutil.move(first, aside)
    shutil.move(second, first)
    shutil.move(aside, second)


class Comparison:
    def __init__(self, builds):
        self.builds = builds

    def train_both(self, number, training, more=""):
        """Trains with both builds side by side; returns the errors."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [error.strip() for error in pool.map(
                lambda build: build.train(number, training, more),
                self.builds) if error]

    def compare(self, number, training):
        """Returns what differs, and what the losses were."""
        folders = [build.run_folder(number) for build in self.builds]
        errors = self.train_both(number, training)
        if training.more and not errors:
            if training.swapped:
                swap_checkpoints(folders)
            errors = self.train_both(number, training, training.more)
        if errors:
            return "failed: " + "\n".join(errors), []
        found = [results(folder) for folder in folders]
        losses = losses_of(found[0])
        if not losses:
            return "no loss was written", []
        return first_difference(*found), losses


def report(training, difference, losses, seconds):
    if difference:
        print(f"DIFFERENT  {training.name}: {difference}", flush=True)
        return
    print(f"equal      {training.name}: {len(losses)} losses, "
          f"{losses[0]:.6g} to {losses[-1]:.6g}, {seconds:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("first", type=pathlib.Path,
                        help="folder of one build's programs")
    parser.add_argument("second", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, help="the folder of "
                        "Cora and MUTAG; default: tests/data",
                        default=pathlib.Path(__file__).parents[1] / "data")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="only the training runs whose names match")
    flags = parser.parse_args()
    chosen = [training for training in TRAINING_RUNS
              if re.search(flags.only, training.name)]
    different = 0
    with tempfile.TemporaryDirectory(prefix="millrace-losses-") as folder, \
            contextlib.ExitStack() as stack:
        comparison = Comparison([
            Build(path.resolve(), flags.data.resolve(),
                  pathlib.Path(folder) / name, stack)
            for name, path in (("a", flags.first), ("b", flags.second))])
        for number, training in enumerate(chosen):
            start = time.monotonic()
            difference, losses = comparison.compare(number, training)
            different += bool(difference)
            report(training, difference, losses, time.monotonic() - start)
    print(f"{len(chosen)} training runs, {different} different")
    return int(different > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
