# SPDX-License-Identifier: Apache-2.0
"""A minimal HTTP/2 client, to do what gRPC's own clients never do, plus gRPC
calls on top of it for clients that need a particular source address."""
import contextlib
import dataclasses
import select
import socket
import struct
import time
import urllib.parse

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = (
    0, 1, 3, 4, 6, 7, 8)
ACK = END_STREAM = 1
END_HEADERS = 4
HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 3, 4
CANCEL = 8  # an error code of RST_STREAM
MAX_WINDOW = 2**31 - 1
MAX_FRAME = 16 << 10  # every server accepts this
PATIENCE = 120.0  # seconds; longer than any answer takes on a busy machine


def frame(kind, flags, stream, payload=b""):
    return (struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) +
            struct.pack(">I", stream) + payload)


def settings(values):
    return b"".join(struct.pack(">HI", *pair) for pair in values.items())


def prefixed(message):
    """A message with gRPC's length prefix."""
    return b"\0" + struct.pack(">I", len(message)) + message


def _length(number):
    """An HPACK number after a 7-bit prefix whose first bit is 0."""
    if number < 127:
        return bytes((number,))
    number, out = number - 127, bytearray((127,))
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def header_block(headers):
    return b"".join(b"\0" + _length(len(name)) + name + _length(len(value)) +
                    value for name, value in headers)


def call_headers(path, timeout=None, more=()):
    deadline = [(b"grpc-timeout", timeout.encode())] if timeout else []
    return header_block([
        (b":method", b"POST"), (b":scheme", b"http"),
        (b":path", path.encode()), (b":authority", b"server"),
        (b"te", b"trailers"), (b"content-type", b"application/grpc"),
        *deadline, *more])


def _headers_of(block):
    """The literal headers of a block from a sender without a dynamic table."""
    at = 0

    def number(bits):
        nonlocal at
        value = block[at] & ((1 << bits) - 1)
        at += 1
        if value < (1 << bits) - 1:
            return value
        shift = 0
        while True:
            byte = block[at]
            at += 1
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text():
        nonlocal at
        packed = block[at] & 128
        size = number(7)
        at += size
        return b"" if packed else block[at - size:at]  # packed: Huffman coding

    found = {}
    while at < len(block):
        first = block[at]
        if first & 128:  # an entry of the static table
            number(7)
        elif first & 0xe0 == 0x20:  # the size of the dynamic table
            number(5)
        else:
            indexed = number(6 if first & 64 else 4)
            name = b"" if indexed else text()
            found[name] = text()
    return found


class Call:
    """A call and its result."""

    def __init__(self):
        self.ended = False
        self.status = None  # a gRPC status; None: the stream broke off
        self.message = ""
        self.data = bytearray()

    def messages(self):
        at = 0
        while at < len(self.data):
            size = struct.unpack_from(">I", self.data, at + 1)[0]
            yield bytes(self.data[at + 5:at + 5 + size])
            at += 5 + size


@dataclasses.dataclass(frozen=True)
class Target:
    """A server."""
    address: str    # HOST:PORT
    partition: int  # one that it serves


class Connection(contextlib.AbstractContextManager):
    """A connection to a server from a given address of this host. Data from the
    server is read only in pump() and in the methods that wait with it. OSError:
    the connection is closed, or nothing happened for PATIENCE. With an SSL
    context, it is made with TLS, without checking the server's name."""

    def __init__(self, target, source, own_settings=None, patience=PATIENCE,
                 tls=None):
        host, port = target.address.rsplit(":", 1)
        self.patience = patience
        self.socket = socket.create_connection(
            (host, int(port)), timeout=patience, source_address=(source, 0))
        if tls:
            self.socket = tls.wrap_socket(self.socket)
        self.calls = {}
        self.next_stream = 1
        self.unread = bytearray()
        self.window = 65535          # connection's window for sending
        self.stream_window = 65535   # window of a new stream
        self.windows = {}            # windows of open streams, by number
        self.taken = 0               # bytes received since the last update
        self.greeted = False         # the server's settings have arrived
        self.pings = 0               # unanswered pings from await_read()
        # Without a dynamic table, so that all headers are literal.
        own_settings = {HEADER_TABLE_SIZE: 0, INITIAL_WINDOW_SIZE: MAX_WINDOW,
                        **(own_settings or {})}
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings(own_settings)) +
                  frame(WINDOW_UPDATE, 0, 0,
                        struct.pack(">I", MAX_WINDOW - 65535)))

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def open(self, path, timeout=None, more=()):
        """Starts a call by sending only its headers. Returns its stream."""
        stream = self.next_stream
        self.next_stream += 2
        self.calls[stream] = Call()
        self.windows[stream] = self.stream_window
        self.send(frame(HEADERS, END_HEADERS, stream,
                        call_headers(path, timeout, more)))
        return stream

    def send_part(self, stream, message):
        """Sends one of several messages, or part of one; it must fit the
        windows."""
        self.window -= len(message) + 5
        self.send(frame(DATA, 0, stream, prefixed(message)))

    def send_request(self, stream, message):
        """Sends the whole request; waits for windows, and stops if the call
        ends."""
        data = prefixed(message)
        while not self.calls[stream].ended:
            room = min(self.window, self.windows[stream], MAX_FRAME)
            if room <= 0:
                self.pump()
                continue
            piece, data = data[:room], data[room:]
            self.window -= len(piece)
            self.windows[stream] -= len(piece)
            self.send(frame(DATA, 0 if data else END_STREAM, stream, piece))
            if not data:
                return

    def reset(self, stream):
        self.send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
        self.calls.pop(stream, None)
        self.windows.pop(stream, None)

    def start(self, path, message, timeout=None):
        """Starts a call with its request. Returns its stream."""
        self.greet()
        stream = self.open(path, timeout)
        self.send_request(stream, message)
        return stream

    def finish(self, stream):
        """Waits for the end of a call."""
        while not self.calls[stream].ended:
            self.pump()
        self.windows.pop(stream)
        return self.calls.pop(stream)

    def call(self, path, message, timeout=None):
        return self.finish(self.start(path, message, timeout))

    def greet(self):
        while not self.greeted:
            self.pump()

    def await_read(self):
        """Waits until the server has read everything sent so far."""
        self.pings += 1
        self.send(frame(PING, 0, 0, b"all read"))
        while self.pings:
            self.pump()

    def pump_for(self, seconds):
        """Reads for `seconds`, as long as the server keeps the connection."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.socket], [], [], left)[0]:
                self.pump()

    def pump(self):
        """Waits for data from the server and reads some of it."""
        came = self.socket.recv(1 << 18)
        if not came:
            raise ConnectionError("the server closed the connection")
        self.unread += came
        at = 0
        while len(self.unread) - at >= 9:
            size = int.from_bytes(self.unread[at:at + 3], "big")
            if len(self.unread) - at < 9 + size:
                break
            kind, flags = self.unread[at + 3], self.unread[at + 4]
            stream = struct.unpack_from(">I", self.unread, at + 5)[0]
            self._take(kind, flags, stream,
                       bytes(self.unread[at + 9:at + 9 + size]))
            at += 9 + size
        del self.unread[:at]
        if self.taken > 1 << 20:
            self.send(frame(WINDOW_UPDATE, 0, 0,
                            struct.pack(">I", self.taken)))
            self.taken = 0

    def _take(self, kind, flags, stream, payload):
        call = self.calls.get(stream)
        if kind == SETTINGS and not flags & ACK:
            self._take_settings(payload)
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == PING and payload == b"all read":
            self.pings -= 1
        elif kind == WINDOW_UPDATE:
            amount = struct.unpack(">I", payload)[0]
            if stream == 0:
                self.window += amount
            elif stream in self.windows:
                self.windows[stream] += amount
        elif kind == GOAWAY:
            raise ConnectionError("the server goes away")
        elif kind == DATA:
            self.taken += len(payload)
            if call:
                call.data += payload
        elif kind == HEADERS and call:
            headers = _headers_of(payload)
            if b"grpc-status" in headers:
                call.status = int(headers[b"grpc-status"])
                call.message = urllib.parse.unquote(
                    headers.get(b"grpc-message", b""))
        if call and (kind == RST_STREAM or
                     kind in (DATA, HEADERS) and flags & END_STREAM):
            call.ended = True

    def _take_settings(self, payload):
        self.greeted = True
        for at in range(0, len(payload), 6):
            name, value = struct.unpack_from(">HI", payload, at)
            if name == INITIAL_WINDOW_SIZE:
                for open_stream in self.windows:
                    self.windows[open_stream] += value - self.stream_window
                self.stream_window = value
        self.send(frame(SETTINGS, ACK, 0))
