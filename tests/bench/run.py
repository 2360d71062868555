#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Millrace on one machine and prints tables.

  tests/bench/run.py GRAPH [--work DIR] [--bin DIR] [--bench DIR] [--batches N]
                     [--repeat N]

GRAPH is a folder with edge_index.npy, node_feat.npy, node_label.npy and
train_idx.npy. Builds the release programs that it runs, unless --bin (millrace
and millrace-server) and --bench (baseline) name the folders where they are.
The dataset and its partitions are made in --work once. Every figure is a
median over --repeat runs; CPU seconds count all processes. The limits (a plain
loop, a raw stream) are measured in the same run.
"""
import argparse
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = f"{ROOT}/build/release"
PROGRAMS = {"bin": ("millrace", "millrace-server"), "bench": ("baseline",)}


def fail(what, to_do):
    raise SystemExit(f"run.py: {what}\nrun.py: {to_do}")


def build(targets):
    """Builds targets of the release preset, as deploy/quickstart.sh does."""
    if shutil.which("cmake") is None:
        fail(f"cmake is not in PATH, and it must build {' '.join(targets)}",
             "run deploy/setup.sh, or name the folders of built programs with "
             "--bin and --bench")
    print(f"building {' '.join(targets)} (log: build/logs/)", file=sys.stderr)
    script = ('. "$1/deploy/lib.sh" && '
              'build_preset release -DMILLRACE_TESTS=ON -DMILLRACE_BENCH=ON')
    done = subprocess.run(["bash", "-c", script, "run.py", ROOT], check=False,
                          env={**os.environ, "BUILD_TARGETS": " ".join(targets)})
    if done.returncode != 0:
        fail(f"{' '.join(targets)} could not be built",
             f"see the end of the log above, or all of it in {ROOT}/build/logs")


def find_programs(args):
    """Sets the folders of the programs; builds those that no option names."""
    targets = []
    for option, names in PROGRAMS.items():
        folder = getattr(args, option)
        if folder is None:
            setattr(args, option, f"{BUILD}/{option}")
            targets += names
            continue
        for name in names:
            if not os.access(f"{folder}/{name}", os.X_OK):
                fail(f"there is no program {folder}/{name}",
                     f"give --{option} a folder that has it, or leave the "
                     "option out to have it built")
    if targets:
        build(targets)


def run(command):
    """Runs a command; returns what it prints."""
    done = subprocess.run([str(c) for c in command], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"{command[0]} {command[1]} failed")
    return done.stdout


def timed(command):
    """Runs a command; returns its wall seconds and peak RSS in GB."""
    start = time.time()
    process = subprocess.Popen([str(c) for c in command])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} {command[1]} failed")
    return time.time() - start, usage.ru_maxrss / 1e6


class Fleet:
    """Servers of the partitions of one store, one process each."""

    def __init__(self, binary, store, parts):
        self.folder = tempfile.mkdtemp(prefix="millrace-bench-")
        self.files = [f"{self.folder}/port-{p}" for p in range(parts)]
        peers = f"{self.folder}/peers"
        open(peers, "w").close()
        start = time.time()
        self.processes = [subprocess.Popen(
            [binary, "--store", store, "--partition", str(p), "--listen",
             "127.0.0.1:0", "--port-file", file, "--peers", f"@{peers}"],
            stderr=open(f"{self.folder}/log-{p}", "w"))
            for p, file in enumerate(self.files)]
        addresses = [self.address(p, file)
                     for p, file in enumerate(self.files)]
        self.ready_seconds = time.time() - start
        with open(peers, "w") as out:
            out.write("\n".join(addresses) + "\n")
        self.list = ",".join(addresses)

    def address(self, part, file):
        deadline = time.time() + 30
        while not (os.path.exists(file) and open(file).read().strip()):
            if time.time() > deadline or self.processes[part].poll() is not None:
                sys.stderr.write(open(f"{self.folder}/log-{part}").read())
                raise SystemExit(f"server of partition {part} did not start")
            time.sleep(0.002)
        return "127.0.0.1:" + open(file).read().strip().split(":")[-1]

    def cpu_seconds(self):
        total = 0
        for process in self.processes:
            fields = open(f"/proc/{process.pid}/stat").read().rsplit(")")[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICK

    def peak_rss_gb(self):
        def peak(pid):
            for line in open(f"/proc/{pid}/status"):
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) / 1e6
            return 0.0
        return max(peak(process.pid) for process in self.processes)

    def close(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder)


def bench(args, source, job, fleet=None):
    """Medians of `millrace bench`: per batch, over all processes."""
    rows = []
    for _ in range(args.repeat):
        before = fleet.cpu_seconds() if fleet else 0.0
        out = json.loads(run([f"{args.bin}/millrace", "bench", *source, *job,
                              "--batches", args.batches, "--json"]))
        cpu = out["cpu_seconds"]
        if fleet:
            cpu += fleet.cpu_seconds() - before
        n = out["batches"]
        rows.append((n / out["seconds"], out["edges"] / out["seconds"],
                     out["bytes"] / out["seconds"] / 1e9, cpu / n,
                     out["peak_rss_bytes"] / 1e9))
    return [statistics.median(column) for column in zip(*rows)]


def prepare(args):
    """Dataset and stores of GRAPH; returns what partitioning cost."""
    os.makedirs(args.work, exist_ok=True)
    dataset = f"{args.work}/dataset"
    millrace = f"{args.bin}/millrace"
    costs = []
    if not os.path.exists(dataset):
        g = args.graph
        costs.append(("import npy", *timed(
            [millrace, "import", "npy", "--edges", f"{g}/edge_index.npy",
             "--features", f"{g}/node_feat.npy", "--labels",
             f"{g}/node_label.npy", "--train", f"{g}/train_idx.npy", "--out",
             dataset])))
    for parts in (1, 2):
        store = f"{args.work}/metis-{parts}"
        if not os.path.exists(store):
            costs.append((f"partition --parts {parts} --method metis", *timed(
                [millrace, "partition", dataset, "--parts", str(parts),
                 "--method", "metis", "--out", store])))
    return dataset, costs


def table(title, header, rows):
    print(f"\n{title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def loader_rows(args, dataset, fanouts):
    seeds = ["--fanouts", fanouts, "--batch-size", "1024"]
    base = [json.loads(run([f"{args.bench}/baseline", dataset, fanouts, 1024,
                            args.batches])) for _ in range(args.repeat)]
    median = {key: statistics.median(b[key] for b in base) for key in base[0]}
    loop, stream = median["loop_cpu_seconds"], median["stream_cpu_seconds"]
    rows = [["plain loop, 1 thread", f"{1 / loop:.1f}",
             f"{median['edges'] / loop:.3g}",
             f"{median['bytes'] / loop / 1e9:.2f}", f"{loop:.4f}", "", ""],
            ["raw TCP stream of the same bytes",
             f"{1 / median['stream_seconds']:.1f}", "",
             f"{median['bytes'] / median['stream_seconds'] / 1e9:.2f}",
             f"{stream:.4f}", "", ""]]

    def add(name, figures, limit=None, limit_name=""):
        rate, edges, gigabytes, cpu, rss = figures
        ratio = f"{cpu / limit:.2f} x {limit_name}" if limit else ""
        rows.append([name, f"{rate:.1f}", f"{edges:.3g}", f"{gigabytes:.2f}",
                     f"{cpu:.4f}", ratio, f"{rss:.2f}"])

    local = ["--store", dataset]
    add("in process, topology only",
        bench(args, local, seeds + ["--no-features"]), median["sample_cpu_seconds"],
        "sampling loop")
    add("in process", bench(args, local, seeds), loop, "loop")
    ready = []
    served = {}
    for parts in (1, 2):
        fleet = Fleet(f"{args.bin}/millrace-server", f"{args.work}/metis-{parts}",
                      parts)
        ready.append(fleet.ready_seconds)
        source = ["--servers", fleet.list]
        try:
            served[parts] = bench(args, source, seeds, fleet)
            add(f"{parts} server(s) of {parts} partition(s), 1 client",
                served[parts], loop + stream, "(loop + stream)")
            if parts == 1:
                half = bench(args, source, seeds + ["--feature-dtype",
                                                    "float16"], fleet)
                add("1 server, features as float16", half)
        finally:
            fleet.close()
    for name, of, to in (("2 servers / 1 server", served[2], served[1]),
                         ("1 server, float16 / float32", half, served[1])):
        rows.append([name, f"{of[0] / to[0]:.2f} x", "", "",
                     f"{of[3] / to[3]:.2f} x", "", ""])
    return rows, ready


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} x {model}, {gigabytes:.0f} GB, {platform.system()} {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--work", default=f"{ROOT}/build/bench")
    parser.add_argument("--bin")
    parser.add_argument("--bench")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    find_programs(args)
    print(f"machine: {machine()}")
    print(f"medians of {args.repeat} runs of {args.batches} batches of 1024 seeds")
    dataset, costs = prepare(args)
    if costs:
        table("Preparing", ["what", "wall s", "peak RSS GB"],
              [[name, f"{wall:.1f}", f"{rss:.2f}"] for name, wall, rss in costs])
    bench(args, ["--store", dataset], ["--fanouts", "15,10,5"])  # warms the page cache
    for fanouts in ("15,10,5", "25,10"):
        rows, ready = loader_rows(args, dataset, fanouts)
        table(f"Fanouts {fanouts}",
              ["what", "batches/s", "edges/s", "GB/s", "CPU s per batch",
               "limit", "client peak RSS GB"], rows)
        print(f"\nservers ready after {max(ready):.2f} s")


if __name__ == "__main__":
    main()
