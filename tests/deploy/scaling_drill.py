#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A drill of docs/operations.md: the load doubles, replicas are added by the
rule of the autoscaler, throughput follows, and no batch changes.

The fleet starts with one server for each of two partitions. Each server may run
for a small part of the time: it is stopped and continued 100 times a second, so
that a few servers have room on one machine. (Its gauge still goes by the clock,
as a server's does on a host that is too small. It must be stopped for less time
than a batch takes: otherwise it would work off what has arrived meanwhile at
once, and seem idle while it is stopped.) Clients take batches at a fixed rate,
`millrace bench --rate`. Every 15 s the rule of Kubernetes'
HorizontalPodAutoscaler is applied to each partition, as deploy/kubernetes does:

    replicas = ceil(replicas * ratio / 0.7)

with its tolerance of a tenth, where `ratio` is the larger mean of
millrace_sampling_busy_ratio and millrace_leaf_busy_ratio. Meanwhile
`millrace digest` reads other batches of the same servers, which must be those of
the store.

Usage: scaling_drill.py [--bin DIR] [--fanouts 10,5]
"""
import argparse
import concurrent.futures
import contextlib
import json
import math
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))
import deploy  # noqa: E402  (its folder comes first)

NODES, EDGES, FEATURES, BATCH = 20_000, 200_000, 64, 256
DIGESTS = 4  # batches of each epoch that are compared
PARTITIONS = 2
GAUGES = "millrace_sampling_busy_ratio", "millrace_leaf_busy_ratio"
TARGET, TOLERANCE, MOST_REPLICAS = 0.7, 0.1, 4
PERIOD = 15  # seconds between two looks at the gauge
RUN, STOP = 0.0005, 0.0095  # seconds that a server runs and is stopped, in turn


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Server:
    """A replica of one partition, which runs for a part of the time."""

    def __init__(self, drill, partition):
        self.drill, self.partition = drill, partition
        number = len(drill.servers)
        port_file = drill.folder / f"port-{number}"
        log = drill.folder / f"log-{number}"
        self.process = subprocess.Popen(
            [str(drill.bin / "millrace-server"), "--store", str(drill.store),
             "--partition", str(partition), "--listen", "127.0.0.1:0",
             "--peers", f"@{drill.list}", "--metrics", "127.0.0.1:0",
             "--threads", "1", "--port-file", str(port_file)],
            stderr=log.open("w"))
        deploy.await_true("a server listens", port_file.exists, 60)
        self.address = f"127.0.0.1:{port_file.read_text().strip()}"
        self.metrics = re.search(r"http://[\w.:]+", log.read_text()).group()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.limit)
        self.thread.start()

    def limit(self):
        while not self.ended.wait(RUN):
            self.process.send_signal(signal.SIGSTOP)
            time.sleep(STOP)
            self.process.send_signal(signal.SIGCONT)

    def read(self):
        """The server's metrics, by name with labels."""
        with urllib.request.urlopen(self.metrics + "/metrics",
                                    timeout=10) as page:
            lines = page.read().decode().splitlines()
        return {key: float(value) for key, value in
                (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def end(self):
        self.ended.set()
        self.thread.join()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Drill:
    def __init__(self, options, folder, stack):
        self.bin, self.folder, self.stack = options.bin, folder, stack
        self.fanouts = options.fanouts
        self.store, self.list = folder / "store", folder / "servers"
        self.list.write_text("")
        self.servers = []
        random = np.random.default_rng(3)
        arrays = {"edges": random.integers(0, NODES, (2, EDGES)),
                  "features": random.normal(size=(NODES, FEATURES)).astype("f4"),
                  "train": np.arange(NODES)}
        words = []
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
            words += [f"--{name}", folder / f"{name}.npy"]
        self.millrace("import", "npy", *words, "--out", folder / "dataset")
        self.millrace("partition", folder / "dataset", "--parts", PARTITIONS,
                      "--method", "hash", "--out", self.store)

    def millrace(self, *words):
        return deploy.run_quietly(self.bin / "millrace", *words)

    def add_replica(self, partition):
        server = Server(self, partition)
        self.stack.callback(server.end)
        self.servers.append(server)
        with open(self.list, "a") as file:
            file.write(server.address + "\n")

    def job(self):
        return ["--servers", f"@{self.list}", "--fanouts", self.fanouts,
                "--batch-size", BATCH, "--prefetch-batches", 16]

    def start(self, *words, **streams):
        process = subprocess.Popen([str(word) for word in words], text=True,
                                   **streams)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def add_load(self, rate):
        self.start(self.bin / "millrace", "bench", *self.job(), "--batches",
                   1_000_000, "--rate", f"{rate:.2f}",
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def capacity(self):
        """Batches a second when clients take them as fast as they come."""
        line = self.millrace("bench", *self.job(), "--batches", 400, "--json")
        measured = json.loads(line)
        return measured["batches"] / measured["seconds"]

    def batches(self):
        name = 'millrace_calls_total{code="OK",method="Sample"}'
        other = 'millrace_calls_total{method="Sample",code="OK"}'
        return sum(metrics.get(name, metrics.get(other, 0))
                   for metrics in (server.read() for server in self.servers))

    def rate(self, seconds):
        start, before = time.monotonic(), self.batches()
        time.sleep(seconds)
        return (self.batches() - before) / (time.monotonic() - start)

    def replicas(self, partition):
        return [server for server in self.servers
                if server.partition == partition]

    def apply_rule(self):
        """Looks at the gauges once, and adds replicas."""
        seen = []
        for partition in range(PARTITIONS):
            replicas = self.replicas(partition)
            scraped = [server.read() for server in replicas]
            gauges = [float(np.mean([one[gauge] for one in scraped]))
                      for gauge in GAUGES]
            seen.append("/".join(f"{gauge:.2f}" for gauge in gauges))
            ratio = max(gauges)
            wanted = len(replicas)
            if abs(ratio / TARGET - 1) > TOLERANCE:
                wanted = math.ceil(len(replicas) * ratio / TARGET)
            for _ in range(min(wanted, MOST_REPLICAS) - len(replicas)):
                self.add_replica(partition)
        counts = [len(self.replicas(p)) for p in range(PARTITIONS)]
        say(f"busy (sampling/leaf) {', '.join(seen)}; replicas {counts}; "
            f"{self.rate(PERIOD):.1f} batches/s")

    def digest(self, epoch, *source):
        return self.millrace("digest", *source, "--fanouts", self.fanouts,
                             "--batch-size", BATCH, "--epoch", epoch,
                             "--batches", DIGESTS)

    def watch_digests(self, stop, seen):
        """Reads the first batches of one epoch after another."""
        while not stop.wait(1):
            seen.append(self.digest(len(seen), "--servers", f"@{self.list}"))

    def check_digests(self, seen):
        assert seen, "no digest was compared"
        for epoch, digest in enumerate(seen):
            assert digest == self.digest(epoch, "--store", self.store), (
                f"the batches of epoch {epoch} have changed")
        say(f"{DIGESTS * len(seen)} batches read meanwhile: all as stored")


def carry_out(drill):
    for partition in range(PARTITIONS):
        drill.add_replica(partition)
    capacity = drill.capacity()
    say(f"{PARTITIONS} servers, one for each partition: at most "
        f"{capacity:.1f} batches/s")
    time.sleep(60)  # until the gauge has forgotten that

    demand = 0.45 * capacity
    say(f"a load of {demand:.1f} batches/s")
    drill.add_load(demand)
    for _ in range(5):
        drill.apply_rule()
    assert len(drill.servers) == PARTITIONS, "scaled without need"
    calm = drill.rate(PERIOD)

    say(f"the load doubles, to {2 * demand:.1f} batches/s")
    drill.add_load(demand)
    stop, seen = threading.Event(), []
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(drill.watch_digests, stop, seen)
        try:
            for _ in range(10):
                drill.apply_rule()
            after = drill.rate(PERIOD)
        finally:
            stop.set()
        watcher.result()  # raises what a digest has raised
    say(f"before {calm:.1f}, afterwards {after:.1f} batches/s, with "
        f"{len(drill.servers)} servers")
    assert len(drill.servers) > PARTITIONS, "no replica was added"
    assert calm > 0.9 * demand, "the first load was not served"
    assert after > 1.9 * demand, "throughput did not follow the load"
    drill.check_digests(seen)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=deploy.find_programs())
    parser.add_argument("--fanouts", default="10,5")
    options = parser.parse_args()
    deploy.use_pretended_cuda(options.bin)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-drill-")))
        carry_out(Drill(options, folder, stack))


if __name__ == "__main__":
    main()
