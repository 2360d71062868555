# SPDX-License-Identifier: Apache-2.0
"""Trains from two servers, one of which is behind a slow network, and follows
a batch by its request id through the logs: the trainer's says which server it
waited for, its home's that the time went to the other owner, and that owner
answered calls with this id. Also checks that each line of each log is one JSON
object with what every event has.

  traced_batches_test.py --bin build/release/bin"""
import argparse
import collections
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from fault_proxy import Network
from harness import Server, free_port, make_store, running

LEAST = {"time", "level", "component", "message"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LOGGING = ["--log-format", "json", "--trace-slow", "40ms"]
DELAY = 50  # ms, of each chunk in each direction


def check(condition, *words):
    if not condition:
        sys.exit(" ".join(str(word) for word in words))


def events(path):
    """The events of a log; each line must be one."""
    found = []
    for line in path.read_text().splitlines():
        event = json.loads(line)
        check(LEAST <= event.keys(), path.name, "lacks a field:", line)
        check(TIME.fullmatch(event["time"]), path.name, "has no time:", line)
        found.append(event)
    return found


def of(log, message):
    return [event for event in log if event["message"] == message]


def train(binary, folder, peers):
    log = folder / "trainer.log"
    command = [binary / "millrace-train", "--servers", f"@{peers}", "--epochs",
               1, "--workers", 2, "--fanouts", "5,5", "--batch-size", 256, "--hidden", 16,
               "--threads", 1, "--eval-every", 0, *LOGGING]
    with open(log, "w") as output:
        subprocess.run([str(word) for word in command], stderr=output,
                       stdout=subprocess.DEVNULL, check=True, timeout=120)
    return events(log)


def check_lives(trainer, logs):
    """Checks what programs say at their starts and ends."""
    (setup,) = of(trainer, "starting")
    check(setup["version"] and setup["source"].startswith("servers @") and
          setup["tls"] == "off" and setup["trace_slow"] == "40ms" and
          setup["partition_wait"] == "5m" and setup["threads"] == 1, setup)
    (start,) = of(trainer, "training")
    check(trainer.index(setup) < trainer.index(start), setup, start)
    check(start["model"] == "sage" and start["world_size"] == 2 and
          start["rank"] == 0 and start["device"] == "cpu", start)
    # The launcher adds the rank to what its workers log.
    for rank in range(2):
        check(any(event.get("rank") == rank and event["component"] == "loader"
                  for event in trainer), "rank", rank, "logs nothing")
    (end,) = of(trainer, "ended")
    check(end["why"] == "done" and end["epoch"] == 1, end)
    for part, log in enumerate(logs):
        check(log[0]["message"] == "starting", log[0])
        check(log[0]["partitions"] == str(part) and log[0]["tls"] == "off",
              log[0])
        (serving,) = of(log, "serving")
        check(serving["partitions"] == str(part) and serving["parts"] == 2,
              serving)
        for name in ("store_uuid", "fingerprint"):
            check(serving[name] == start[name], name, serving, start)
        check(serving["threads"] == 2 and serving["max_inflight_bytes"] > 0,
              serving)
        check(log[-1]["message"] == "ended" and log[-1]["why"] == "SIGTERM",
              log[-1])


def check_trace(trainer, home, owner, slow_address):
    """Follows batches whose home is near and whose other owner is not."""
    asked = collections.Counter(event["request_id"] for event in owner
                                if event.get("method") == "Expand" and
                                event["message"] == "call answered")
    at_home = {event["request_id"]: event for event in of(home, "slow batch")}
    followed = 0
    for batch in of(trainer, "slow batch"):
        name = batch["request_id"]
        # Others have another home, were left out, or tell of a failed attempt.
        if name not in at_home or batch["attempts"] > 1:
            continue
        there = at_home[name]
        # Training samples two hops, evaluation one at a time.
        hops = [hop for hop in ("hop0", "hop1") if f"{hop}_ms" in there]
        followed += len(hops) == 2
        check(batch["home"] == 0, batch)
        check((batch["epoch"], batch["batch"]) ==
              (there["epoch"], there["batch"]), batch, there)
        check(f"-{batch['epoch']}-{batch['batch']}-" in name, batch)
        check(batch["total_ms"] >= batch["slowest_ms"] >= 2 * DELAY, batch)
        check(asked[name] >= len(hops), "the owner was not asked for all hops "
              "of", name, asked[name])
        for hop in hops:
            check(there[f"{hop}_slowest_partition"] == 1 and
                  there[f"{hop}_slowest_server"] == slow_address, there)
            # There and back again. On a busy machine the request may be on its
            # way before the thread that sent it begins to wait.
            check(there[f"{hop}_ms"] >= 2 * DELAY, there)
            check(there[f"{hop}_ms"] >= there[f"{hop}_wait_ms"] >= DELAY, there)
        check(there["total_ms"] + 1 >= there["queue_ms"] + there["sample_ms"] +
              there["gather_ms"] + there["leaf_queue_ms"] +
              there["finish_ms"], there)
        check(there["sample_ms"] + 1 >= sum(there[f"{hop}_ms"]
                                            for hop in hops), there)
    check(followed > 0, "no request id is in all logs")
    return followed


def check_rate(log):
    """At most 10 traces of each kind a second, so at most 20 in a second of
    the clock."""
    seconds = collections.Counter(
        (event["time"][:19], event["message"]) for event in log
        if event["message"].startswith("slow "))
    check(max(seconds.values(), default=0) <= 20, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    binary = parser.parse_args().bin.resolve()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-traced-")))
        store = make_store(binary, folder, 2)
        servers = []
        for part in range(2):
            log = stack.enter_context(open(folder / f"server-{part}.log", "w"))
            servers.append(Server(binary, store, part, log))
            servers[-1].command += [*LOGGING, "--log-level", "debug"]
        near, far = servers
        proxy = ("127.0.0.1", free_port())
        far.listed = f"{proxy[0]}:{proxy[1]}"
        network = Network()
        network.proxy(proxy, (far.address, far.port)).set_fault("delay")
        peers = folder / "list"
        with running(servers, peers):
            trainer = train(binary, folder, peers)
            for server in servers:
                server.signal(signal.SIGTERM)
                server.process.wait(timeout=60)
                server.process = None
        logs = [events(folder / f"server-{part}.log") for part in range(2)]
        check_lives(trainer, logs)
        followed = check_trace(trainer, *logs, far.listed)
        for log in (trainer, *logs):
            check_rate(log)
        print(f"{followed} batches were followed through all logs")


if __name__ == "__main__":
    main()
