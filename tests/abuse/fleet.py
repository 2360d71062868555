# SPDX-License-Identifier: Apache-2.0
"""The servers under attack, and their memory."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from http2 import Target

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
from harness import Server, make_store  # noqa: E402  (its folder comes first)

PARTS = 2
INFLIGHT = 64 << 20      # --max-inflight-bytes
LEAF = 192 << 20  # minimum for leaf calls; see docs/protocol.md, section 6
REQUESTS = (INFLIGHT + LEAF) // 2
# How much memory servers may take above their base. Calls being ended for
# others no longer count, so for a moment there may be twice as many.
BOUND = 2 * (INFLIGHT + LEAF) + REQUESTS
LIMIT = 120.0            # seconds, for anything that attackers do not influence


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} is gone")


class Watch(threading.Thread):
    """Records the peak memory of each server."""

    def __init__(self, servers):
        super().__init__(daemon=True)
        self.pids = {server.process.pid: server.part for server in servers}
        self.base = {pid: resident(pid) for pid in self.pids}
        self.peak = dict(self.base)
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.02):
            for pid in self.pids:
                with contextlib.suppress(OSError, RuntimeError):
                    self.peak[pid] = max(self.peak[pid], resident(pid))

    def end(self):
        self.ended.set()
        self.join()

    def growth(self):
        """For every server (its partitions, its peak memory above its base).
        """
        return [(part, self.peak[pid] - self.base[pid])
                for pid, part in self.pids.items()]


class Fleet(contextlib.ExitStack):
    """One server for all partitions, which serves only clients, and one server
    per partition. The latter are also each other's clients, from 127.0.0.1, so
    work done for an attacker counts towards another server's share."""

    def __init__(self, binary, drain_timeout="30s"):
        super().__init__()
        self.binary = binary
        self.folder = pathlib.Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-abuse-")))
        self.drain_timeout = drain_timeout
        os.environ["MILLRACE_MAX_INFLIGHT_BYTES"] = str(INFLIGHT)
        os.environ["MILLRACE_DRAIN_TIMEOUT"] = drain_timeout
        store = make_store(binary, self.folder, PARTS)
        self.log = self.enter_context(open(self.folder / "log", "w"))
        self.servers = [Server(binary, store, part, self.log)
                        for part in ("all", *range(PARTS))]
        self.all = self.servers[0]
        self.list = self.folder / "list"
        self.list.write_text("".join(f"{server.listed}\n"
                                     for server in self.servers[1:]))
        for server in self.servers:
            server.start(self.list)
            self.callback(server.end)
        self.run_program("status", "--servers", f"@{self.list}", "--wait",
                         "60s")
        self.run_program("status", "--servers", self.all.listed, "--wait",
                         "60s")

    def targets(self):
        #  The first serves all partitions.
        return [Target(server.listed, max(i - 1, 0))
                for i, server in enumerate(self.servers)]

    def run_program(self, *words):
        return subprocess.run(
            [str(word) for word in (self.binary / "millrace", *words)],
            check=True, text=True, capture_output=True, timeout=10 * LIMIT
        ).stdout

    def digest(self):
        """The digest of an epoch, from the servers of one partition each."""
        return self.run_program(
            "digest", "--servers", f"@{self.list}", "--fanouts", "10,5",
            "--batch-size", 1024, "--threads", 1)

    def check(self):
        for server in self.servers:
            server.check()

    def stop(self, server):
        """Ends a server with SIGTERM; returns its status and how long that
        took."""
        start = time.monotonic()
        server.signal(signal.SIGTERM)
        status = server.process.wait(timeout=LIMIT)
        server.process = None
        return status, time.monotonic() - start
