#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `millrace plan` computes from a graph's figures, compared with the store
that is made, with its batches, and with the memory and CPU time of its servers.

  plan_test.py --bin build/release/bin
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))
from free_port import free_port  # noqa: E402

NODES, DEGREE, FEATURES, PARTS = 60_000, 12, 48, 2
FANOUTS = (10, 5)
BATCH = 512
# The same job everywhere.
JOB = ["--fanouts", ",".join(map(str, FANOUTS)), "--batch-size", BATCH]


class Server:
    def __init__(self, binary, store, part, servers, log):
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [binary / "millrace-server", "--store", store, "--partition",
             str(part), "--listen", self.address, "--peers", f"@{servers}"],
            stdout=log, stderr=log)

    def end(self):
        self.process.kill()
        self.process.wait()

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        return sum(map(int, fields.rsplit(")", 1)[1].split()[11:13])) / (
            os.sysconf("SC_CLK_TCK"))

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10


def near(value, expected, share, what):
    """Fails if the two differ by more than this share of the second."""
    difference = abs(value - expected) / expected
    print(f"{what}: planned {value:.6g}, really {expected:.6g}, "
          f"{100 * difference:.2f} % off")
    assert difference <= share, what


def folder_bytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*")
               if file.is_file())


def check_page(millrace):
    """The example of the page prints what the page says."""
    page = (ROOT / "docs/operations.md").read_text()
    example = re.search(r"^```\n\$ millrace (plan .*?[^\\])\n(.*?)^```", page,
                        re.MULTILINE | re.DOTALL)
    words = example[1].replace("\\\n", " ").split()
    assert millrace(*words) == example[2], millrace(*words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    binary = parser.parse_args().bin.resolve()

    def millrace(*words):
        return subprocess.run([str(word) for word in (binary / "millrace",
                                                      *words)],
                              check=True, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE).stdout

    def plan(*words):
        return json.loads(millrace("plan", *words, *JOB, "--json",
                                   "--batches-per-second", 10, "--plaintext"))

    check_page(millrace)
    with tempfile.TemporaryDirectory(prefix="millrace-plan-") as name, \
            contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        data, store = folder / "data", folder / "store"
        figures = ["--nodes", NODES, "--edges", NODES * DEGREE, "--features",
                   FEATURES, "--parts", PARTS]
        before = plan(*figures)
        millrace("import", "fake", "--nodes", NODES, "--avg-degree", DEGREE,
                 "--features", FEATURES, "--classes", 5, "--seed", 1, "--out",
                 data)
        millrace("partition", data, "--parts", PARTS, "--method", "metis",
                 "--out", store)

        # Disk, without knowing more than the figures.
        parts = [folder_bytes(store / f"part-0000{i}") for i in range(PARTS)]
        splits = folder_bytes(store / "splits")
        near(before["store"]["partition_bytes"], sum(parts) / PARTS, 0.02,
             "bytes of a partition")
        near(before["store"]["bytes"], folder_bytes(store), 0.02,
             "bytes of the store")
        assert max(parts) + splits <= before["server"]["disk_bytes"]
        both = plan(*figures, "--directions", "both", "--stored-dtype",
                    "float16", "--edge-weights")
        millrace("import", "fake", "--nodes", NODES, "--avg-degree", DEGREE,
                 "--features", FEATURES, "--classes", 5, "--seed", 1, "--out",
                 folder / "again")
        millrace("partition", folder / "again", "--parts", PARTS, "--method",
                 "hash", "--directions", "both", "--feature-dtype", "float16",
                 "--out", folder / "both")
        # The fake graph has no weights: 12 bytes for each edge and direction.
        near(both["store"]["bytes"] - 24 * NODES * DEGREE,
             folder_bytes(folder / "both"), 0.02,
             "bytes of a store with both directions and float16")

        # A store says what it has, and its report the same.
        real = plan(store)
        assert real["store"]["bytes"] <= folder_bytes(store)
        near(real["store"]["bytes"], folder_bytes(store), 0.002,
             "bytes of an existing store")
        report = folder / "report.json"
        report.write_text(millrace("inspect", store, "--json"))
        near(plan("--report", report, "--parts", PARTS)["store"]["bytes"],
             folder_bytes(store), 0.02, "bytes by the report of inspect")
        near(plan(data, "--parts", PARTS)["store"]["bytes"],
             folder_bytes(store), 0.02, "bytes from the dataset")

        # Batches: at most what was planned, and as measured.
        servers = folder / "servers"
        servers.touch()
        log = stack.enter_context(open(folder / "log", "w"))
        fleet = []
        for part in range(PARTS):
            fleet.append(Server(binary, store, part, servers, log))
            stack.callback(fleet[-1].end)
        servers.write_text("".join(f"{one.address}\n" for one in fleet))
        millrace("status", "--servers", f"@{servers}", "--wait", "60s")
        time.sleep(1.5)  # until the servers have read the list again

        def bench():
            return json.loads(millrace("bench", "--servers", f"@{servers}",
                                       *JOB, "--batches", 100, "--json"))
        bench()
        used = [one.cpu_seconds() for one in fleet]
        done = bench()
        cpu = sum(one.cpu_seconds() for one in fleet) - sum(used)
        nodes, edges, size = (done[name] / done["batches"]
                              for name in ("nodes", "edges", "bytes"))
        bound, measured = before["batch"], real["batch"]
        most = BATCH * (1 + FANOUTS[0] * (1 + FANOUTS[1]))
        assert bound["nodes"] == min(NODES, most), bound
        assert bound["edges"] == most - BATCH, bound
        assert (bound["basis"], measured["basis"]) == ("bound", "measured")
        for what, value in (("nodes", nodes), ("edges", edges),
                            ("bytes", size)):
            near(measured[what], value, 0.03, f"{what} of a batch, measured")
            assert value <= bound[what] <= 3 * value, (what, value, bound)

        # Memory of a server: no more than planned, which is for the most.
        for one in fleet:
            peak = one.peak_bytes()
            print(f"memory of a server: planned {real['server']['memory_bytes']}"
                  f", really {peak}")
            assert peak <= real["server"]["memory_bytes"]
            assert peak >= 0.3 * real["server"]["mapped_bytes"]

        # CPU: on a busy machine this is a rough figure, in seconds a batch.
        planned = real["server"]["busy_cores"] * real["servers"] / 10
        print(f"CPU of servers for a batch: planned {planned:.4f}, really "
              f"{cpu / done['batches']:.4f}")
        assert planned / 4 < cpu / done["batches"] < planned * 4


if __name__ == "__main__":
    main()
