# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends a server that is being abused: whatever does not end by itself
is ended after --drain-timeout, and the exit status is 0."""
import argparse
import contextlib
import pathlib
import random
import sys
import threading

from fleet import LIMIT, Fleet
from floods import FLOODS
from holders import (CONNECTIONS, open_unread_streams, open_unsent_requests,
                     open_watchers)
from http2 import Connection

SOURCE = "127.0.0.2"
FLOODERS = 2
# Work in progress when the signal arrives: name, function that starts it,
# count.
HELD = [("unread streams", open_unread_streams, 4),
        ("unsent requests", open_unsent_requests, 40),
        ("reflection and watches", open_watchers, 4),
        ("idle connections", Connection, CONNECTIONS)]


def flood(target, own, begun, stop):
    """Floods repeatedly; each thread that calls this releases `begun` once."""
    chance = random.Random(1)
    rest = list(own)
    while not stop.is_set():
        attack = rest.pop() if rest else chance.choice(FLOODS)
        with contextlib.suppress(OSError):
            attack(target, SOURCE, chance)
        if not rest:
            begun.set()


def check(name, fleet):
    status, seconds = fleet.stop(fleet.all)
    print(f"{name}: ended with {status} after {seconds:.1f} s", flush=True)
    if status != 0:
        sys.exit(f"with {name} the server ended with {status}")
    fleet.all.start(fleet.list)
    fleet.run_program("status", "--servers", fleet.all.listed, "--wait",
                      f"{LIMIT:.0f}s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options = parser.parse_args()
    with Fleet(options.bin.resolve(), drain_timeout="1s") as fleet:
        target = fleet.targets()[0]
        for name, open_one, count in HELD:
            with contextlib.ExitStack() as stack:
                for _ in range(count):
                    stack.enter_context(open_one(target, SOURCE)).greet()
                check(name, fleet)
        begun = [threading.Event() for _ in range(FLOODERS)]
        stop = threading.Event()
        flooders = [threading.Thread(
            target=flood, args=(target, FLOODS[i::FLOODERS], begun[i], stop))
            for i in range(FLOODERS)]
        for flooder in flooders:
            flooder.start()
        try:
            for event in begun:
                event.wait()
            check("floods", fleet)
        finally:
            stop.set()
            for flooder in flooders:
                flooder.join()


if __name__ == "__main__":
    main()
