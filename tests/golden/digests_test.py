#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of digests.json and compares the results with those recorded
there: over datasets and stores in one process, and over fleets. With
--memory, all of them keep their graphs and features where these options say,
and under the emulator tests/ptxemu each source has a schedule of its own. In one
process, a GPU must then sample where it can.

--record writes the digests of these programs into the file instead. A job
whose digests depend on where its batches are made is an error then, too.

Exit status: 0 if all are equal, 1 otherwise.
"""
import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import stores

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from gpu_jobs import has_kernels  # noqa: E402  (its folder comes first)

FILE = pathlib.Path(__file__).resolve().parent / "digests.json"
SOURCES = ("store", "store-2", "fleet", "fleet-2")
# Of tests/ptxemu.
SCHEDULES = ("random", "lazy", "eager")


class Runner:
    """Runs jobs over the sources of one graph."""

    def __init__(self, flags, folder, sources):
        self.bin, self.folder = flags.bin.resolve(), folder
        self.sources, self.seed = sources, flags.seed
        self.chosen = flags.sources.split(",")
        self.on_gpu = on_gpu(flags.memory.split())

    def wanted(self, job):
        over = job.get("over", SOURCES)
        # A job that is not over these sources is over its first.
        chosen = [source for source in over if source in self.chosen]
        return chosen or over[:1]

    def options_of(self, job, source):
        """The options for a source, which forbid the CPU to sample where a GPU
        must."""
        if not self.on_gpu or not has_kernels(job["command"].split()):
            return self.sources[source]
        if source.startswith("fleet"):
            return self.sources[f"{source} without CPU"]
        return (*self.sources[source], "--device-fallback", "forbid")

    def digest(self, job, source):
        """Returns the job's digests, or None and the error."""
        command, *options = job["command"].split()
        done = subprocess.run(
            [self.bin / "millrace", command, *self.options_of(job, source),
             *options],
            cwd=self.folder, text=True, capture_output=True, check=False,
            env=os.environ | schedule(source, self.seed))
        if done.returncode:
            return None, done.stderr
        if command == "digest":
            return done.stdout.split()[-1], ""
        return hashlib.sha256(done.stdout.encode()).hexdigest(), ""

    def run(self, job):
        """The digests and errors of a job, by source."""
        return {source: self.digest(job, source)
                for source in self.wanted(job)
                if source in self.sources}


def on_gpu(memory):
    """Whether GPUs sample with these options."""
    return not {"cuda", "pinned"}.isdisjoint(memory)


def schedule(source, seed):
    """The variables that say how tests/ptxemu schedules work: in another way for
    each source and seed, and in all ways for three seeds in a row."""
    number = seed + ("store", "fleet-2", "store-2", "fleet").index(source)
    return {"PTXEMU_SCHED": SCHEDULES[number % len(SCHEDULES)],
            "PTXEMU_SEED": str(number),
            # Other tests let threads interleave finely, which takes longer.
            "PTXEMU_GRAIN": "2"}


def server_variables(memory):
    """The variables that give servers these options."""
    names = [option.removeprefix("--").replace("-", "_").upper()
             for option in memory[::2]]
    return {f"MILLRACE_SERVER_{name}": value
            for name, value in zip(names, memory[1::2])}


def differences(job, results):
    """Returns what is wrong with the results of a job, as lines."""
    for source, (digest, error) in results.items():
        if digest != job["digest"]:
            got = f"{digest}, not {job['digest']}" if digest else error.strip()
            yield (f"DIFFERENT: {job['name']}: millrace {job['command']}, over "
                   f"the {source} of {job['store']}: {got}")


def run_graph(flags, folder, name, jobs):
    """Returns pairs of a job of one graph and its results."""
    bin_folder, memory = flags.bin.resolve(), flags.memory.split()
    stores.make(bin_folder, flags.data.resolve(), folder, name)
    sources = {"store": ("--store", name, *memory),
               "store-2": ("--store", f"{name}-2", *memory)}
    with contextlib.ExitStack() as stack:
        for source, store in (("fleet", name), ("fleet-2", f"{name}-2")):
            variables = server_variables(memory) | schedule(source, flags.seed)
            sources[source] = ("--servers", stack.enter_context(
                stores.fleet(bin_folder, folder, store, variables)))
            if on_gpu(memory):
                variables["MILLRACE_SERVER_DEVICE_FALLBACK"] = "forbid"
                sources[f"{source} without CPU"] = (
                    "--servers", stack.enter_context(
                        stores.fleet(bin_folder, folder, store, variables)))
        runner = Runner(flags, folder, sources)
        pool = stack.enter_context(
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()))
        yield from zip(jobs, pool.map(runner.run, jobs))


def write(jobs):
    lines = ",\n".join(json.dumps(job) for job in jobs)
    FILE.write_text(f"[\n{lines}\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True,
                        help="the folder tests/data")
    parser.add_argument("--memory", metavar="OPTIONS", default="",
                        help="where to keep graphs and features, such as "
                             "'--graph-memory cuda'")
    parser.add_argument("--sources", default=",".join(SOURCES),
                        help="what to run jobs over (default: %(default)s)")
    parser.add_argument("--small", action="store_true",
                        help="leave out the jobs marked as large")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the schedules of tests/ptxemu")
    parser.add_argument("--record", action="store_true",
                        help="write the digests instead of comparing them")
    flags = parser.parse_args()
    jobs = json.loads(FILE.read_text())
    if flags.small:
        if flags.record:
            parser.error("--record needs all jobs")
        jobs = [job for job in jobs if not job.get("large")]
    count, lines = 0, []
    with tempfile.TemporaryDirectory(prefix="millrace-golden-") as folder:
        for name in dict.fromkeys(job["store"] for job in jobs):
            for job, results in run_graph(
                    flags, pathlib.Path(folder), name,
                    [job for job in jobs if job["store"] == name]):
                if flags.record:
                    job["digest"] = next(iter(results.values()))[0]
                lines += differences(job, results)
                count += len(results)
    print(*lines, f"{len(jobs)} jobs, {count} digests, {len(lines)} different",
          sep="\n")
    if flags.record and not lines:
        write(jobs)
    return int(bool(lines) or not count)


if __name__ == "__main__":
    sys.exit(main())
