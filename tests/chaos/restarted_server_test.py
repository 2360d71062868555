# SPDX-License-Identifier: Apache-2.0
"""Kills one of two servers of a store without replicas while two trainers
train, restarts it at its address some seconds later, and compares: every batch
that the trainers consume (by digest) and every loss must equal those of an
undisturbed run.

  restarted_server_test.py --bin build/release/bin [--down SECONDS]"""
import argparse
import contextlib
import pathlib
import sys
import tempfile

from harness import Faults, compare, running_store, train, train_with

PARTS, EPOCHS = 2, 3
KILL_AFTER = 20  # lines of the first epoch, which has 79


class Outage(Faults):
    """Kills a server once the run has consumed some batches."""

    def __init__(self, server, peers, log, seconds):
        super().__init__(log)
        self.server, self.peers, self.seconds = server, peers, seconds
        # Numbers of batches when the outage began and ended.
        self.before = self.during = None

    def act(self):
        self.await_batches(KILL_AFTER)
        self.server.kill()
        self.before = self.batches()
        self.pause(self.seconds)
        self.during = self.batches()
        self.server.start(self.peers)


def check_outage(outage, log):
    """Checks that the outage was within an epoch and that trainers waited."""
    if any(outage.during):
        sys.exit("the epoch of the outage ended before the server was back")
    if f"partition {outage.server.part}" not in log:
        sys.exit("no trainer says which partition it waits for")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--down", type=float, default=10,
                        help="seconds from the kill to the restart")
    options = parser.parse_args()
    binary = options.bin.resolve()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-restarted-")))
        servers, peers = stack.enter_context(
            running_store(binary, folder, PARTS))
        baseline = train(binary, folder, "baseline", EPOCHS)
        outage = Outage(servers[1], peers, folder / "outage.consumed",
                        options.down)
        other = train_with(outage, servers, binary, folder, "outage", EPOCHS)
        check_outage(outage, (folder / "outage.log").read_text())
        compare(baseline[0], other[0], "batches")
        compare(baseline[1], other[1], "losses")
        print(f"baseline {baseline[2]:.1f} s; with a server down for "
              f"{options.down} s {other[2]:.1f} s: "
              f"{len(outage.before)} batches before, "
              f"{len(outage.during)} at its end")
        print(f"{len(baseline[0])} batches and {len(baseline[1])} losses are "
              "equal")


if __name__ == "__main__":
    main()
