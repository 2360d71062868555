# SPDX-License-Identifier: Apache-2.0
"""Attacks a fleet in all the ways that docs/security.md says it withstands,
while good clients work. Each of their batches must be right and none of their
calls refused, except while batches being made for attackers hold all memory;
servers must stay within their memory, stay alive, and exit on SIGTERM.

  mixed_abuse.py --bin build/release/bin [--seconds 1800] [--attacks NAME...]
      [--owner]

Attackers come from 127.0.0.2, good clients from 127.0.0.1. Every attack runs at
least once, then random ones until time is up. With --owner the attacked server
is one that the good client's own server asks for neighbours."""
import argparse
import collections
import contextlib
import dataclasses
import multiprocessing
import pathlib
import random
import sys
import threading
import time

from fleet import BOUND, Fleet, Watch
from floods import FLOODS
from good_client import GoodClient
from holders import HOLDERS
from hostile_jobs import HOSTILE

SOURCE = "127.0.0.2"
ATTACKERS = 3  # attacks that run at a time
ATTACKS = {attack.__name__: attack
           for attack in (*FLOODS, *HOLDERS, *HOSTILE)}


def attack_on(names, targets, seed, stop, results):
    """One attacker: runs each of the attacks `names` on the first of `targets`,
    which a good client needs, and then random attacks on random targets until
    `stop`."""
    chance = random.Random(seed)
    waiting = list(names)
    chance.shuffle(waiting)
    try:
        while waiting or not stop.is_set():
            name, target = ((waiting.pop(), targets[0]) if waiting else
                            (chance.choice(results.names),
                             chance.choice(targets)))
            units, problem = 0, None
            try:
                units = ATTACKS[name](target, SOURCE, chance)
            except OSError:
                pass  # the server closed the connection, which it may do
            except AssertionError as error:
                problem = f"{name}: {error}"
            results.queue.put((name, units, problem))
    finally:
        results.queue.put(None)


@dataclasses.dataclass
class Good:
    """What good clients observed."""
    seconds: list   # seconds that each batch took, ascending
    refusals: int   # calls refused for lack of memory
    epochs: int     # epochs that `millrace digest` completed

    def at(self, share):
        return f"{1e3 * self.seconds[int(share * (len(self.seconds) - 1))]:.0f}"


class Results:
    def __init__(self, names):
        self.names = names
        self.queue = multiprocessing.Queue()
        self.bursts = collections.Counter()
        self.units = collections.Counter()
        self.problems = []

    def take(self, attackers):
        """Collects results until all attackers have ended."""
        while attackers:
            result = self.queue.get()
            if result is None:
                attackers -= 1
                continue
            name, units, problem = result
            self.bursts[name] += 1
            self.units[name] += units
            if problem:
                self.problems.append(problem)


def check_digests(fleet, want, stop, outcome):
    """The other good client: digests whole epochs with `millrace digest`."""
    try:
        while not stop.is_set():
            if fleet.digest() != want:
                raise AssertionError("an epoch's digests changed")
            outcome["epochs"] += 1
    except Exception as error:  # reported by the test
        outcome["problem"] = f"millrace digest: {error}"


def attack(fleet, options):
    """Returns the results, what the good clients observed, and the problems.
    """
    want = fleet.digest()
    outcome = {"epochs": 0, "problem": None}
    targets = fleet.targets()
    asked = targets[0]
    if options.owner:
        _, asked, owner = targets
        targets = [owner]
    good = GoodClient(asked)
    results = Results(options.attacks)
    stop = multiprocessing.Event()
    attackers = [multiprocessing.Process(
        target=attack_on, daemon=True,
        args=(options.attacks[i::ATTACKERS], targets, options.seed + i, stop,
              results)) for i in range(ATTACKERS)]
    checker = threading.Thread(target=check_digests, daemon=True,
                               args=(fleet, want, stop, outcome))
    for one in (*attackers, checker):
        one.start()
    timer = threading.Timer(options.seconds, stop.set)
    timer.start()
    try:
        results.take(len(attackers))
    finally:
        timer.cancel()
        stop.set()
    checker.join()
    seconds, refusals, problem = good.end()
    return results, Good(sorted(seconds), refusals, outcome["epochs"]), [
        *results.problems, problem, outcome["problem"]]


def print_table(results, good, watch):
    print(f"{'attack':<22}{'bursts':>8}{'units':>12}")
    for name in results.names:
        print(f"{name:<22}{results.bursts[name]:>8}{results.units[name]:>12}")
    if good.seconds:
        print(f"good client: {len(good.seconds)} batches in ms: p50 "
              f"{good.at(0.5)}, p99 {good.at(0.99)}, max {good.at(1)}; came "
              f"back for memory {good.refusals} times")
    print(f"millrace digest: {good.epochs} epochs")
    for part, growth in watch.growth():
        print(f"server of partition {part}: grew by {growth >> 20} MiB at "
              f"most, bound {BOUND >> 20} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS,
                        default=list(ATTACKS))
    parser.add_argument("--owner", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"abuse with seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        fleet = stack.enter_context(Fleet(options.bin.resolve()))
        watch = Watch(fleet.servers)
        results, good, problems = attack(fleet, options)
        watch.end()
        print_table(results, good, watch)
        fleet.check()
        problems += [f"the server of partition {part} grew by {growth} bytes"
                     for part, growth in watch.growth() if growth > BOUND]
        if good.refusals and not {one.__name__ for one in HOSTILE}.intersection(
                options.attacks):
            problems.append(f"the good client was refused {good.refusals} times "
                            "though no batch was being made for others")
        if not good.seconds:
            problems.append("the good client got no batch")
        if not good.epochs:
            problems.append("millrace digest did not end once")
        for server in fleet.servers:
            status, _ = fleet.stop(server)
            if status != 0:
                problems.append(f"the server of partition {server.part} ended "
                                f"with {status}")
        problems = [problem for problem in problems if problem]
        if problems:
            sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
