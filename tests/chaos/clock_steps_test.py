# SPDX-License-Identifier: Apache-2.0
"""Sets the clock that trainers and servers see (tests/support/set_clock.c)
forward and back by a day and by ten minutes: while they work, and again while
one of two servers of a store without replicas is down. Every batch that the
trainers consume (by digest) and every loss must equal those of an undisturbed
run, and no program may give up or hang.

  clock_steps_test.py --bin build/release/bin
      --set-clock build/release/tests/libmillrace_set_clock_preload.so"""
import argparse
import contextlib
import os
import pathlib
import struct
import tempfile

from harness import Faults, compare, running_store, train, train_with

PARTS, EPOCHS = 2, 2
DAY, TEN_MINUTES = 86_400, 600  # the latter is more than --partition-wait
DOWN = 4  # seconds


class Clock:
    """The time of day of all programs started afterwards."""

    def __init__(self, library, file):
        self.file, self.ahead = file, 0
        self.set(0)
        os.environ["LD_PRELOAD"] = str(library)
        os.environ["SET_CLOCK_FILE"] = str(file)

    def set(self, ahead):
        """Sets the time of day to `ahead` seconds ahead of the real time."""
        self.ahead = ahead
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("q", ahead * 1_000_000_000))

    def step(self, seconds):
        self.set(self.ahead + seconds)


class Steps(Faults):
    """Sets the clock twice."""

    def __init__(self, clock, seconds, server, peers, log):
        super().__init__(log)
        self.clock, self.seconds = clock, seconds
        self.server, self.peers = server, peers

    def act(self):
        self.await_batches(20)
        self.clock.step(self.seconds)
        self.await_batches(40)
        self.server.kill()
        self.pause(DOWN / 2)
        self.clock.step(self.seconds)
        self.pause(DOWN / 2)
        self.server.start(self.peers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--set-clock", type=pathlib.Path, required=True,
                        help="library for LD_PRELOAD")
    parser.add_argument("--seconds", type=int, nargs="*",
                        default=[DAY, -DAY, TEN_MINUTES, -TEN_MINUTES])
    options = parser.parse_args()
    binary = options.bin.resolve()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-set-clock-")))
        clock = Clock(options.set_clock.resolve(), folder / "ahead")
        servers, peers = stack.enter_context(
            running_store(binary, folder, PARTS))
        baseline = train(binary, folder, "baseline", EPOCHS)
        print(f"baseline: {baseline[2]:.1f} s", flush=True)
        for seconds in options.seconds:
            name = f"{seconds:+}"
            steps = Steps(clock, seconds, servers[1], peers,
                          folder / f"{name}.consumed")
            other = train_with(steps, servers, binary, folder, name, EPOCHS)
            compare(baseline[0], other[0], "batches")
            compare(baseline[1], other[1], "losses")
            print(f"clock stepped by {name} s, twice: {other[2]:.1f} s",
                  flush=True)
        print(f"{len(baseline[0])} batches and {len(baseline[1])} losses are "
              "equal")


if __name__ == "__main__":
    main()
