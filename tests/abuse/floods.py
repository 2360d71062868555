# SPDX-License-Identifier: Apache-2.0
"""Endless or meaningless HTTP/2 frames. Each flood is one burst from one or a
few connections, and returns how many of its units it sent. OSError: the server
closed the connection, which it may do."""
import contextlib
import itertools
import socket
import struct

from http2 import (ACK, CANCEL, DATA, END_HEADERS, HEADERS, MAX_WINDOW, PING,
                   PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, Connection,
                   call_headers, frame, prefixed)
from sampler_requests import DESCRIBE, SAMPLE, job, sample

# More frames than the buffers of a connection hold, so that the server reads
# most of a flood.
BURST = 500_000
PATIENCE = 5.0  # seconds that a flood waits for the server to read


def _send_many(connection, units, size=1000):
    """Returns how many units were sent before the server stopped reading."""
    sent = 0
    with contextlib.suppress(OSError):
        while chunk := b"".join(itertools.islice(units, size)):
            connection.send(chunk)
            sent += size
    return sent


def _connect(target, source, **own_settings):
    return Connection(target, source, patience=PATIENCE, **own_settings)


def ping_flood(target, source, _):
    """Pings whose answers are not read."""
    with _connect(target, source) as connection:
        ping = frame(PING, 0, 0, b"answer!!")
        return _send_many(connection, itertools.repeat(ping, BURST))


def settings_flood(target, source, _):
    """Settings whose acknowledgements are not read."""
    with _connect(target, source) as connection:
        settings = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535))
        return _send_many(connection, itertools.repeat(settings, BURST))


def empty_data(target, source, _):
    """A request made of data frames without data."""
    with _connect(target, source) as connection:
        empty = frame(DATA, 0, connection.open(SAMPLE))
        return _send_many(connection, itertools.repeat(empty, BURST))


def random_frames(target, source, random):
    """Frames of any kind, on any stream, with any payload, except CONTINUATION,
    against which gRPC 1.51 has no defence (docs/security.md)."""
    kinds = [kind for kind in range(16) if kind != 9]
    connections = 50
    for _ in range(connections):
        with contextlib.suppress(OSError), _connect(target, source) as one:
            one.send(b"".join(
                frame(random.choice(kinds), random.randrange(256),
                      random.randrange(8),
                      random.randbytes(random.randrange(64)))
                for _ in range(50)))
            one.pump()
    return connections


def window_overflow(target, source, random):
    """Window updates of more than 2^31 - 1 bytes, and of zero."""
    connections = 50
    for _ in range(connections):
        with contextlib.suppress(OSError), _connect(target, source) as one:
            stream = random.choice((0, one.open(DESCRIBE)))
            size = random.choice((0, 1, MAX_WINDOW))
            one.send(20 * frame(WINDOW_UPDATE, 0, stream,
                                struct.pack(">I", size)))
            one.await_read()
    return connections


def odd_settings(target, source, random):
    """Settings that are out of range, unknown, misplaced or of the wrong
    length."""
    payloads = [struct.pack(">HI", name, value)
                for name in (0, 1, 2, 3, 4, 5, 6, 8, 0xfe03, 0xffff)
                for value in (0, 1, 2, 16383, 2**24, 2**31, 2**32 - 1)]
    payloads += [b"x", bytes(5), bytes(7)]
    connections = 50
    for _ in range(connections):
        with contextlib.suppress(OSError), _connect(target, source) as one:
            payload = b"".join(random.choices(payloads, k=random.randint(1, 9)))
            one.send(frame(SETTINGS, random.choice((0, 0, 0, ACK)),
                           random.choice((0, 0, 0, 1)), payload))
            one.start(DESCRIBE, b"")
            one.await_read()
    return connections


def many_headers(target, source, random):
    """Calls with 200 headers, which is the maximum, and with twice as many."""
    size = random.choice((20, 60))
    more = [(f"header-{i}".encode(), b"v" * size) for i in range(200)]
    calls = 50
    with _connect(target, source) as connection:
        streams = [connection.open(DESCRIBE, more=more) for _ in range(calls)]
        connection.await_read()
        for stream in streams:
            connection.reset(stream)
        connection.await_read()
    return calls


def not_http2(target, source, random):
    """Garbage, HTTP/1.1, a TLS handshake or half a preface, either instead of
    HTTP/2 or after its preface."""
    host, port = target.address.rsplit(":", 1)
    words = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\0\1",
             PREFACE[:10], PREFACE.lower(), b"\0" * 100]
    connections = 50
    for _ in range(connections):
        with contextlib.suppress(OSError), socket.create_connection(
                (host, int(port)), PATIENCE, (source, 0)) as one:
            one.sendall(random.choice((b"", PREFACE)) +
                        random.choice([*words, random.randbytes(200)]))
            one.shutdown(socket.SHUT_WR)
            while one.recv(1 << 16):
                pass
    return connections


def rapid_resets(target, source, _):
    """Calls cancelled at once, some with their request: few enough for gRPC
    1.51, which keeps part of what it holds for each (docs/security.md)."""
    calls = 2000
    reset = struct.pack(">I", CANCEL)
    request = sample(job(split="train", fanouts=[2], batch_size=4),
                     partition=target.partition)
    data = frame(DATA, 0, 0, prefixed(request))
    with _connect(target, source) as connection:
        connection.greet()
        for first in range(1, 2 * calls, 200):
            streams = range(first, first + 200, 2)
            whole = b"".join(
                frame(HEADERS, END_HEADERS, stream, call_headers(SAMPLE)) +
                (data[:5] + struct.pack(">I", stream) + data[9:]
                 if stream % 4 == 1 else b"") +
                frame(RST_STREAM, 0, stream, reset) for stream in streams)
            connection.send(whole)
            connection.await_read()
    return calls


FLOODS = [ping_flood, settings_flood, empty_data, random_frames,
          window_overflow, odd_settings, many_headers, not_http2,
          rapid_resets]
