# SPDX-License-Identifier: Apache-2.0
"""Loads a fleet for a long time and looks for growth.

2 partitions, 2 servers; one long-lived client, others that connect, sample and
exit, and some that are killed in the middle of a batch. After a tenth of the
time, the memory and descriptors of the servers and of the lasting client must
stay flat, every batch must be the same to the end, and no program may log a
warning or an error. To run it by hand:

  soak.py --bin build/release/bin [--minutes 30]"""
import argparse
import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

MEMORY = 48 << 20  # bytes by which malloc and gRPC may still grow
DESCRIPTORS = 16   # connections come and go
# Lines of our programs, of gRPC and of sanitizers, and the messages with which
# our programs fail.
ERROR = re.compile(r"\S+ (warning|error|critical) |[EF]\d{4} |.*(ERROR|WARNING): "
                   r"|millrace(-server)?[ \w]*: ")
# The list of servers is written only when they have reported their ports.
EXPECTED = re.compile(r"\S+ warning fleet the list of servers \S+ names no server;")


def errors_in(log):
    """The lines that no program may log, however clients come, go and die."""
    return [line for line in log.splitlines()
            if ERROR.match(line) and not EXPECTED.match(line)]


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, text=True,
                          capture_output=True).stdout


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} is gone")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Watched:
    def __init__(self, name, process):
        self.name, self.process = name, process
        self.base = None

    def look(self, warm):
        if self.process.poll() is not None:
            sys.exit(f"the {self.name} ended with {self.process.returncode}")
        now = resident(self.process.pid), descriptors(self.process.pid)
        if not warm:
            self.base = now if self.base is None else tuple(
                map(max, self.base, now))
            return now
        if now[0] > self.base[0] + MEMORY:
            sys.exit(f"the {self.name} grew from {self.base[0]} to {now[0]} "
                     "resident bytes")
        if now[1] > self.base[1] + DESCRIPTORS:
            sys.exit(f"the {self.name} grew from {self.base[1]} to {now[1]} "
                     "descriptors")
        return now


def make_store(binary, folder):
    random_ = np.random.default_rng(3)
    arrays = {"edges": random_.integers(0, 50_000, (2, 500_000)),
              "features": random_.normal(size=(50_000, 64)).astype("f4"),
              "labels": random_.integers(0, 8, 50_000),
              "train": np.arange(20_000)}
    words = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        words += [f"--{name}", folder / f"{name}.npy"]
    run(binary / "millrace", "import", "npy", *words, "--out", folder / "data")
    run(binary / "millrace", "partition", folder / "data", "--parts", 2,
        "--method", "random", "--out", folder / "store")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"soak with seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-soak-")))
        make_store(options.bin, folder)
        log = stack.enter_context(open(folder / "log", "w"))

        def start(*words):
            process = subprocess.Popen([str(word) for word in words],
                                       stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        peers = folder / "list"
        peers.write_text("")
        watched = []
        for part in range(2):
            port_file = folder / f"port{part}"
            watched.append(Watched(f"server of partition {part}", start(
                options.bin / "millrace-server", "--store", folder / "store",
                "--partition", part, "--listen", "127.0.0.1:0", "--peers",
                f"@{peers}", "--port-file", port_file, "--threads", 2)))
            while not (port_file.exists() and port_file.read_text().strip()):
                time.sleep(0.05)
        peers.write_text("".join(
            f"127.0.0.1:{(folder / f'port{part}').read_text().strip()}\n"
            for part in range(2)))
        job = ["--servers", f"@{peers}", "--fanouts", "10,5", "--batch-size",
               512, "--threads", 1]
        watched.append(Watched("client", start(
            options.bin / "millrace", "bench", *job, "--batches", 10**9)))
        digest = [options.bin / "millrace", "digest", *job]
        want = run(*digest)
        begin, clients, killed = time.monotonic(), 0, 0
        end = begin + 60 * options.minutes
        shown = 0
        while (now := time.monotonic()) < end:
            warm = now - begin > 6 * options.minutes
            looks = [one.look(warm) for one in watched]
            if now - shown > 60:
                shown = now
                print(f"{(now - begin) / 60:5.1f} min", *(
                    f"{one.name}: {1e-6 * memory:.0f} MB, {count} fds;"
                    for one, (memory, count) in zip(watched, looks)),
                      flush=True)
            if random.random() < 0.5:
                if (got := run(*digest)) != want:
                    sys.exit(f"an epoch's digests changed:\n{want}{got}")
                clients += 1
            else:
                process = start(*digest)
                time.sleep(random.uniform(0.05, 1))
                process.kill()
                process.wait()
                killed += 1
        if errors := errors_in((folder / "log").read_text()):
            sys.exit("\n".join(errors[:20]))
        print(f"{options.minutes} minutes, {clients} clients finished, "
              f"{killed} were killed: nothing grew, no error")


if __name__ == "__main__":
    main()
