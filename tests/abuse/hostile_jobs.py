# SPDX-License-Identifier: Apache-2.0
"""Calls that are valid HTTP/2 and ask for too much, or for nonsense. Each has a
deadline, and must end with one of EXPECTED: an answer, or an error that tells
the caller what is wrong."""
import contextlib
import struct

from http2 import DATA, END_STREAM, Connection, frame
from sampler_requests import DESCRIBE, SAMPLE, job, sample

METHODS = ["Sample", "Expand", "Gather", "HasEdges", "Resolve", "Describe"]
EDGE, BINARY, TRIPLET, SELF, REVERSE = 1, 1, 2, 1, 2
WALK, PPR, INDUCED, LABOR, TEMPORAL_LAST = 2, 3, 4, 1, 2

STATUSES = {0: "OK", 1: "CANCELLED", 3: "INVALID_ARGUMENT",
            4: "DEADLINE_EXCEEDED", 5: "NOT_FOUND", 8: "RESOURCE_EXHAUSTED",
            9: "FAILED_PRECONDITION", 11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED",
            14: "UNAVAILABLE"}
ERRORS = {2: "UNKNOWN", 13: "INTERNAL", 15: "DATA_LOSS"}
EXPECTED = STATUSES.keys()
ALONE = (0, 4, 8, 9, 14)  # possible results of a job that asks for much


def jobs(partition):
    """Tuples of a name, a SampleRequest and its possible statuses."""
    return [(name, message + sample(b"", partition=partition), expected)
            for name, message, expected in _jobs()]


def _jobs():
    many = 2**20
    same_ids = bytes(4 * many)
    train = {"split": "train", "batch_size": 64}
    explicit = {"batch_size": many}
    edge = {"seed_kind": EDGE, "batch_size": 1024}
    pairs = {"explicit_ids": bytes(4096), "explicit_dst_ids": bytes(4096)}
    refused = (3, 9)
    return [
        ("255 hops of all", sample(job(**train, fanouts=[-1] * 255)), ALONE),
        ("255 hops of 2^20", sample(job(
            **train, fanouts=[many] * 255, replace=True)), ALONE),
        ("256 hops", sample(job(**train, fanouts=[1] * 256)), refused),
        ("2^20 with replacement", sample(job(
            **train, fanouts=[many], replace=True)), ALONE),
        ("a fanout of 2^20 + 1", sample(job(**train, fanouts=[many + 1])),
         refused),
        ("a fanout of -2", sample(job(**train, fanouts=[-2])), refused),
        ("2^20 walks", sample(job(
            **train, method=WALK, walks=many, walk_length=1)), ALONE),
        ("2^20 walks of 255 steps", sample(job(
            **train, method=WALK, walks=many, walk_length=255)),
         (*ALONE, *refused)),
        ("2^32 - 1 walks", sample(job(
            **train, method=WALK, walks=2**32 - 1, walk_length=2**32 - 1)),
         refused),
        ("4096 walks of PPR", sample(job(
            **train, method=PPR, fanouts=[256], walks=4096, walk_length=255,
            restart=0.01)), (*ALONE, *refused)),
        ("PPR that never restarts", sample(job(
            **train, method=PPR, fanouts=[10], walks=10, walk_length=10,
            restart=-1.0)), refused),
        ("PPR that restarts by NaN", sample(job(
            **train, method=PPR, fanouts=[10], walks=10, walk_length=10,
            restart=float("nan"))), refused),
        ("disjoint trees of all", sample(job(
            split="train", batch_size=4096, disjoint=True,
            fanouts=[-1, -1, -1])), ALONE),
        ("induced", sample(job(
            split="train", batch_size=4096, method=INDUCED,
            fanouts=[-1, -1])), ALONE),
        ("LABOR of all", sample(job(
            **train, method=LABOR, fanouts=[-1] * 20)), ALONE),
        ("2^20 equal seeds", sample(job(**explicit, fanouts=[1]),
                                    explicit_ids=same_ids), ALONE),
        ("2^20 disjoint seeds", sample(
            job(**explicit, fanouts=[100, 100], disjoint=True),
            explicit_ids=same_ids), ALONE),
        ("2^20 + 1 seeds", sample(
            job(batch_size=many + 1, fanouts=[1]),
            explicit_ids=same_ids + bytes(4)), refused),
        ("seeds out of range", sample(
            job(batch_size=4, fanouts=[1]), explicit_ids=b"\xff" * 16),
         refused),
        ("half a seed", sample(job(batch_size=4, fanouts=[1]),
                               explicit_ids=bytes(3)), refused),
        ("times of -2^63", sample(
            job(batch_size=2, fanouts=[5, 5], temporal=TEMPORAL_LAST),
            explicit_ids=bytes(8), explicit_times=(bytes(7) + b"\x80") * 2),
         (0, *refused)),
        ("2^20 negatives for each seed", sample(
            job(**edge, fanouts=[2], negatives=TRIPLET,
                negative_amount=float(many)), **pairs), (*refused, 11)),
        ("negatives by NaN", sample(
            job(**edge, fanouts=[2], negatives=BINARY,
                negative_amount=float("nan")), **pairs), refused),
        ("1e308 negatives", sample(
            job(**edge, fanouts=[2], negatives=BINARY, negative_amount=1e308),
            **pairs), refused),
        ("2^20 excluded edges", sample(
            job(seed_kind=EDGE, batch_size=many, fanouts=[2], exclude=REVERSE),
            explicit_ids=same_ids, explicit_dst_ids=same_ids),
         (*ALONE, *refused)),
        ("no split of that name", sample(
            job(split="../../etc/passwd", batch_size=4, fanouts=[1])), (5,)),
        ("the last batch of all", sample(
            job(**train, fanouts=[1]), batch=2**32 - 1), (*refused, 11)),
        ("nothing", b"", refused),
    ]


def _ask(target, source, name, path, message, timeout, expected):
    with Connection(target, source) as connection:
        call = connection.call(path, message, timeout)
    if call.status in expected:
        return None
    status = {**STATUSES, **ERRORS}.get(call.status, call.status)
    return f"{name}: {status} {call.message}"


def _raise_all(problems):
    problems = [problem for problem in problems if problem]
    if problems:
        raise AssertionError("; ".join(problems))


def hostile_jobs(target, source, random):
    """Requests each job once, with a deadline of one second."""
    asked = jobs(target.partition)
    random.shuffle(asked)
    _raise_all(_ask(target, source, name, SAMPLE, message, "1S",
                    # The servers may be full, and 1 s may be too short: such a
                    # call ends as CANCELLED.
                    {*expected, 1, 4, 8, 14}) for name, message, expected in asked)
    return len(asked)


def short_deadlines(target, source, random):
    """Deadlines of a millisecond or less, for several calls in turn."""
    asked = [random.choice(jobs(target.partition)) for _ in range(20)]
    _raise_all(_ask(target, source, name, SAMPLE, message,
                    random.choice(("1m", "1u", "1n", "0n")), EXPECTED)
               for name, message, _ in asked)
    return len(asked)


def many_at_once(target, source, random):
    """Several jobs at a time on one connection, cancelled before they are done.
    """
    calls = 60
    asked = [message for _, message, _ in jobs(target.partition)
             if len(message) < 10_000]
    with Connection(target, source) as connection:
        streams = [connection.start(SAMPLE, random.choice(asked), "10S")
                   for _ in range(calls)]
        connection.pump_for(1)
        for stream in streams:
            connection.reset(stream)
        connection.await_read()
    return calls


def flood_of_jobs(target, source, random):
    """One client starts 600 jobs at once and waits for all of them."""
    connections, calls = 3, 200  # nearly the maximum for a connection
    asked = [(message, expected) for _, message, expected
             in jobs(target.partition) if len(message) < 10_000]
    problems = []
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(connections):
            one = stack.enter_context(Connection(target, source))
            for message, expected in random.choices(asked, k=calls):
                started.append((one, one.start(SAMPLE, message, "5S"),
                                expected))
        for one, stream, expected in started:
            call = one.finish(stream)
            # The servers may be full, and 5 s may be too short: such a call
            # ends as CANCELLED.
            if call.status not in {*expected, 1, 4, 8, 14}:
                problems.append(f"{call.status} {call.message}")
    _raise_all(problems)
    return connections * calls


def garbage_requests(target, source, random):
    """Invalid messages and unknown methods."""
    calls = 100
    with Connection(target, source) as connection:
        problems = []
        for _ in range(calls):
            method = random.choice(METHODS + ["Sampel", ""])
            message = random.randbytes(random.choice((0, 1, 10, 1000)))
            call = connection.call(f"/millrace.v1.Sampler/{method}", message,
                                   "5S")
            if call.status not in EXPECTED:
                problems.append(f"{method} of garbage: {call.status} "
                                f"{call.message}")
    _raise_all(problems)
    return calls


def long_prefixes(target, source, random):
    """Messages that claim to be longer than allowed."""
    calls = 20
    for _ in range(calls):
        with contextlib.suppress(OSError), Connection(target, source) as one:
            one.greet()
            stream = one.open(random.choice((SAMPLE, DESCRIBE)), "5S")
            prefix = struct.pack(">BI", random.choice((0, 1, 255)),
                                 random.randrange(2**32))
            one.send(frame(DATA, END_STREAM, stream, prefix + b"not so long"))
            one.finish(stream)
    return calls


HOSTILE = [hostile_jobs, short_deadlines, many_at_once, flood_of_jobs,
           garbage_requests, long_prefixes]
