# SPDX-License-Identifier: Apache-2.0
"""Sends garbage to all ports on which trainers listen for each other: their run
continues, with the batches and losses of an undisturbed one."""
import argparse
import contextlib
import os
import pathlib
import random
import socket
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
from harness import (Faults, Server, compare, make_store,  # noqa: E402
                     train)

EPOCHS = 2
SOURCE = "127.0.0.2"
LISTENS = "0A"  # a state of /proc/net/tcp


def descendants(pid):
    """All direct and indirect child processes of a process."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def ports(pid):
    """The ports on which a process listens."""
    sockets, found = set(), set()
    with contextlib.suppress(OSError):
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(descriptor))
        for family in ("tcp", "tcp6"):
            table = pathlib.Path(f"/proc/{pid}/net/{family}").read_text()
            for words in map(str.split, table.splitlines()):
                if words[3] == LISTENS and f"socket:[{words[9]}]" in sockets:
                    found.add(int(words[1].rpartition(":")[2], 16))
    return found


class Garbage(Faults):
    """Sends garbage to all ports of a run's processes until the run ends."""

    def __init__(self, log, servers):
        super().__init__(log)
        self.servers = {server.process.pid for server in servers}
        self.trainers, self.connections = set(), 0
        self.random = random.Random(1)

    def act(self):
        self.await_batches(5)
        with contextlib.ExitStack() as silent:
            while not self.ended.wait(0.05):
                for pid in descendants(os.getpid()):
                    if pid not in self.servers:
                        self.throw_at(pid, silent)

    def throw_at(self, pid, silent):
        for port in ports(pid):
            # Ports that refuse listen on other addresses.
            with contextlib.suppress(OSError):
                one = silent.enter_context(socket.create_connection(
                    ("127.0.0.1", port), 5, source_address=(SOURCE, 0)))
                self.trainers.add(pid)
                self.connections += 1
                # The others stay silent until everything is done.
                if self.connections % 4:
                    one.sendall(self.random.choice((
                        b"GET / HTTP/1.1\r\n\r\n", bytes(100),
                        self.random.randbytes(self.random.randrange(1, 5000)))))
                    one.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    binary = parser.parse_args().bin.resolve()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-ports-")))
        store = make_store(binary, folder, 1)
        log = stack.enter_context(open(folder / "servers.log", "w"))
        server = Server(binary, store, 0, log)
        peers = folder / "list"
        peers.write_text(f"{server.listed}\n")
        server.start(peers)
        stack.callback(server.end)
        baseline = train(binary, folder, "baseline", EPOCHS)
        garbage = Garbage(folder / "garbage.consumed", [server])
        garbage.start()
        try:
            other = train(binary, folder, "garbage", EPOCHS)
        finally:
            garbage.stop()
        if garbage.error:
            raise garbage.error
        if len(garbage.trainers) < 2:
            sys.exit(f"only {len(garbage.trainers)} trainers had a port")
        compare(baseline[0], other[0], "batches")
        compare(baseline[1], other[1], "losses")
        print(f"garbage on {garbage.connections} connections to "
              f"{len(garbage.trainers)} trainers: {len(baseline[0])} "
              f"batches and {len(baseline[1])} losses are equal")


if __name__ == "__main__":
    main()
