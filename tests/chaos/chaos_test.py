# SPDX-License-Identifier: Apache-2.0
"""Trains while servers are killed, stopped and cut off, and compares the
result.

3 partitions with 2 replicas each, every server behind a proxy that fails like a
network (fault_proxy.py), and 2 trainers. Every batch that the trainers consume
(by digest) and every loss must equal those of an undisturbed run. If root may
create network namespaces, one server lives in its own, whose link goes down
and, if tc's netem is available, loses and delays packets.

  chaos_test.py --bin build/release/bin [--server-bin build/asan/bin]
      [--epochs N] [--pause S] [--seed N]

For a long run use --epochs 300 --pause 3. A server built with sanitizers exits
with an error of its own if they find something, which fails the test."""
import argparse
import collections
import contextlib
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from fault_proxy import FaultProxy, Network
from harness import (SEEDS, Server, compare, free_port, make_store, run,
                     running, train, train_with)

PARTS, REPLICAS = 3, 2
# A fast run may be over before much has failed; then there are more of them, for
# so many seconds at most.
FEWEST_FAULTS, LONGEST = 5, 300
NAMESPACE = f"millrace-chaos-{os.getpid()}"
NETWORK = f"10.213.{os.getpid() % 250}"
HOST, GUEST = f"{NETWORK}.1", f"{NETWORK}.2"
LINKS = f"mrc{os.getpid()}a", f"mrc{os.getpid()}b"
NO_ROUTE = "unreachable", f"{NETWORK}.0/24", "metric", "4000000000"
skipped = []


class Namespace:
    """A separate host on this machine, if root may create one."""

    def __init__(self):
        self.there = self.netem = False
        try:
            run("ip", "netns", "add", NAMESPACE)
            self.there = True
            run("ip", "link", "add", LINKS[0], "type", "veth", "peer",
                "name", LINKS[1], "netns", NAMESPACE)
            run("ip", "addr", "add", f"{HOST}/24", "dev", LINKS[0])
            run("ip", "link", "set", LINKS[0], "up")
            # This route is used while the link is down: otherwise the default
            # route would be taken, and something there might answer.
            run("ip", "route", "add", *NO_ROUTE)
            self.inside("ip", "addr", "add", f"{GUEST}/24", "dev", LINKS[1])
            self.inside("ip", "link", "set", LINKS[1], "up")
            self.inside("ip", "link", "set", "lo", "up")
            with socket.create_server((HOST, 0)) as server:
                self.inside(sys.executable, "-c", "import socket; socket."
                            f"create_connection({server.getsockname()}, 5)")
        except (OSError, subprocess.CalledProcessError) as error:
            skipped.append(f"network namespaces: {reason(error)}")
            self.remove()
            return
        try:
            run("tc", "qdisc", "add", "dev", LINKS[0], "root", "netem",
                "delay", "5ms", "2ms", "loss", "0.5%")
            self.netem = True
        except (OSError, subprocess.CalledProcessError) as error:
            skipped.append(f"tc netem: {reason(error)}")

    def inside(self, *words):
        return run("ip", "netns", "exec", NAMESPACE, *words)

    def link(self, state):
        run("ip", "link", "set", LINKS[0], state)

    def remove(self):
        if self.there:
            for words in (["netns", "del", NAMESPACE],
                          ["route", "del", *NO_ROUTE]):
                subprocess.run(["ip", *words], check=False,
                               capture_output=True)
        self.there = False


def reason(error):
    text = getattr(error, "stderr", None) or str(error)
    return text.strip().splitlines()[-1]


class ProxiedServer(Server):
    """A server behind a proxy, possibly on a host of its own."""

    def __init__(self, binary, store, part, network, host, namespace, log):
        inside = namespace is not None
        super().__init__(
            binary, store, part, log, GUEST if inside else "127.0.0.1",
            ("ip", "netns", "exec", NAMESPACE) if inside else ())
        listen = (host, free_port())
        self.proxy = network.proxy(listen, (self.address, self.port))
        self.listed = f"{listen[0]}:{listen[1]}"


class Chaos(threading.Thread):
    """Disturbs a random server after every pause, until stopped."""

    def __init__(self, servers, peers, namespace, pause, seed):
        super().__init__(daemon=True)
        self.servers, self.peers, self.pause = servers, peers, pause
        self.namespace = namespace
        self.random = random.Random(seed)
        self.done = threading.Event()
        self.counts = collections.Counter()
        self.error = None
        self.healing = []  # (when, what)

    def run(self):
        try:
            while not self.done.wait(self.pause * self.random.uniform(0.5, 1.5)):
                self.heal(time.monotonic())
                self.act()
        except Exception as error:  # reported by the test
            self.error = error

    def stop(self):
        self.done.set()
        self.join(30)
        self.heal(float("inf"))

    def later(self, what):
        wait = self.pause * self.random.uniform(0.5, 2)
        self.healing.append((time.monotonic() + wait, what))

    def heal(self, now):
        due = [what for when, what in self.healing if when <= now]
        self.healing = [entry for entry in self.healing if entry[0] > now]
        for what in due:
            what()

    def act(self):
        kinds = ["kill", "kill", "stop", *FaultProxy.KINDS]
        if self.namespace.there:
            kinds.append("link down")
        kind = self.random.choice(kinds)
        server = self.random.choice(self.servers)
        if getattr(server, "hurt", False):
            return  # one fault at a time
        self.counts[kind] += 1
        server.hurt = True
        if kind == "kill":
            server.kill()
            self.later(lambda: (server.start(self.peers), self.well(server)))
        elif kind == "stop":
            server.signal(signal.SIGSTOP)
            self.later(lambda: (server.signal(signal.SIGCONT),
                                self.well(server)))
        elif kind == "link down":
            server.hurt = False
            self.namespace.link("down")
            self.later(lambda: self.namespace.link("up"))
        else:
            server.proxy.set_fault(kind)
            self.later(lambda: (server.proxy.set_fault("pass"),
                                self.well(server)))

    @staticmethod
    def well(server):
        server.hurt = False


def report(name, trained, epochs):
    batches, _, seconds = trained
    print(f"{name:8} {seconds:7.1f} s  {len(batches) / seconds:7.1f} batches/s  "
          f"{epochs * SEEDS / seconds:9.0f} seeds/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--server-bin", type=pathlib.Path,
                        help="where millrace-server is, if not in --bin")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--pause", type=float, default=0.7,
                        help="mean seconds between two faults")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    binary = options.bin.resolve()
    server_binary = (options.server_bin or options.bin).resolve()
    print(f"chaos with seed {options.seed}")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-chaos-")))
        store = make_store(binary, folder, PARTS)
        namespace = Namespace()
        stack.callback(namespace.remove)
        host = HOST if namespace.there else "127.0.0.1"
        network = Network()
        log = stack.enter_context(open(folder / "servers.log", "w"))
        servers = []
        for index in range(PARTS * REPLICAS):
            guest = namespace if namespace.there and index == 0 else None
            servers.append(ProxiedServer(server_binary, store, index % PARTS,
                                         network, host, guest, log))
        peers = folder / "list"
        stack.enter_context(running(servers, peers))
        baseline = train(binary, folder, "baseline", options.epochs)
        report("baseline", baseline, options.epochs)
        faults = collections.Counter()
        deadline = time.monotonic() + LONGEST
        for part in itertools.count():
            name = f"chaos {part}"
            chaos = Chaos(servers, peers, namespace, options.pause,
                          options.seed + part)
            other = train_with(chaos, servers, binary, folder, name,
                               options.epochs)
            compare(baseline[0], other[0], "batches")
            compare(baseline[1], other[1], "losses")
            report(name, other, options.epochs)
            faults += chaos.counts
            if (faults.total() >= FEWEST_FAULTS
                    or time.monotonic() > deadline):
                break
        print("faults:", ", ".join(f"{count} {kind}" for kind, count in
                                   sorted(faults.items())) or "none")
        print(f"{len(baseline[0])} batches and {len(baseline[1])} losses are "
              "equal")
        for what in skipped:
            print("skipped:", what)
        print(f"{len(skipped)} parts skipped")
        if faults.total() < FEWEST_FAULTS:
            sys.exit("the runs ended before there was chaos; use more --epochs")


if __name__ == "__main__":
    main()
