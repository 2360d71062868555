# SPDX-License-Identifier: Apache-2.0
"""Connections and calls that are held open and not used. Each function holds
them for HOLD seconds and returns their number."""
import contextlib
import socket

from http2 import INITIAL_WINDOW_SIZE, Connection
from sampler_requests import (ALL_COLUMNS, EXPAND, SAMPLE, expand, job,
                              sample)

HOLD = 2.0
CONNECTIONS = 300
CALLS = 256  # the maximum for a connection
EXPANDED = 5000  # nodes; every partition has at least as many
NODES = 30_000   # nodes of the store that make_store() makes
SERVED = (0, 8, 14)  # answered, or temporarily out of resources

# A ServerReflectionRequest that lists the services.
LIST_SERVICES = b"\x3a\x00"
REFLECTION = ("/grpc.reflection.v1alpha.ServerReflection/"
              "ServerReflectionInfo")
WATCH = "/grpc.health.v1.Health/Watch"


def idle_tcp(target, source, _):
    """Connections that send nothing."""
    host, port = target.address.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection(
            (host, int(port)), source_address=(source, 0)))
            for _ in range(CONNECTIONS)]
        # This connection talks to the server, so that it does not merely sleep.
        with Connection(target, source) as connection:
            connection.greet()
            connection.pump_for(HOLD)
        return len(sockets)


def idle_http2(target, source, _):
    """Connections that only send the preface."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(Connection(target, source))
                       for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.greet()
        connections[0].pump_for(HOLD)
        return len(connections)


def open_unread_streams(target, source):
    """A connection whose batches are not read."""
    connection = Connection(target, source, {INITIAL_WINDOW_SIZE: 0})
    request = sample(job(split="train", fanouts=[10, 5], batch_size=256),
                     columns=ALL_COLUMNS, partition=target.partition)
    for _ in range(CALLS):
        connection.start(SAMPLE, request)
    return connection


def expand_many(target):
    """A request with an answer of 200 kB."""
    first = target.partition * (NODES - EXPANDED)
    return expand(range(first, first + EXPANDED), target.partition)


def open_unread_expands(target, source):
    """A connection that asks for neighbours, like a server of another
    partition, and reads no answer."""
    connection = Connection(target, source, {INITIAL_WINDOW_SIZE: 0})
    request = expand_many(target)
    for _ in range(CALLS):
        connection.start(EXPAND, request)
    return connection


def open_unsent_requests(target, source):
    """A connection of calls whose requests never arrive."""
    connection = Connection(target, source)
    connection.greet()
    for _ in range(CALLS):
        connection.open(SAMPLE)
    return connection


def open_watchers(target, source):
    """A connection of calls that never end by themselves."""
    connection = Connection(target, source)
    for i in range(CALLS):
        if i % 2:
            connection.start(WATCH, b"")
        else:
            connection.greet()
            stream = connection.open(REFLECTION)
            connection.send_part(stream, LIST_SERVICES)
    return connection


def _hold(open_connection, target, source, connections):
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(open_connection(target, source))
                for _ in range(connections)]
        for connection in held:
            connection.pump_for(HOLD / connections)
    return CALLS * connections


def unread_streams(target, source, _):
    return _hold(open_unread_streams, target, source, 5)


def unread_expands(target, source, _):
    with Connection(target, source) as connection:
        answer = connection.call(EXPAND, expand_many(target))
    if answer.status not in SERVED:
        raise AssertionError(f"status {answer.status} {answer.message}")
    return _hold(open_unread_expands, target, source, 5)


def unsent_requests(target, source, _):
    return _hold(open_unsent_requests, target, source, 20)


def watchers(target, source, _):
    return _hold(open_watchers, target, source, 2)


HOLDERS = [idle_tcp, idle_http2, unread_streams, unread_expands,
           unsent_requests, watchers]
