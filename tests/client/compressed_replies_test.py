# SPDX-License-Identifier: Apache-2.0
"""A server answers with a few hundred KB that inflate to hundreds of MB:
clients refuse compressed replies and say so, instead of inflating them."""
import argparse
import pathlib
import resource
import socket
import struct
import subprocess
import sys
import threading
import unittest
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "abuse"))
from http2 import (ACK, DATA, END_HEADERS, END_STREAM, HEADERS,  # noqa: E402
                   MAX_FRAME, PING, PREFACE, SETTINGS, WINDOW_UPDATE, frame,
                   header_block)

LIMIT = 60.0  # seconds, for anything
INFLATED = 300 << 20
# How much more memory a client may take than for an invalid reply. It does not
# inflate a reply at all, so this only allows for noise.
MAX_GROWTH = 64 << 20

def compressed_zeros(size):
    packer = zlib.compressobj(wbits=31)  # gzip
    pieces = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join(pieces) + packer.flush()


class Connection:
    """One client's connection: answers each of its calls with `message`."""

    def __init__(self, client, message, encoding):
        self.client = client
        self.message = message
        self.encoding = encoding
        self.window = 65535  # of the connection; that of a stream is larger

    def run(self):
        try:
            self.read(len(PREFACE))
            self.client.sendall(frame(SETTINGS, 0, 0))
            while True:
                self.read_frame()
        except OSError:
            pass  # the client is done
        finally:
            self.client.close()

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = self.client.recv(size - len(data))
            if not piece:
                raise OSError("closed")
            data += piece
        return data

    def read_frame(self):
        head = self.read(9)
        kind, flags = head[3], head[4]
        stream = struct.unpack(">I", head[5:])[0]
        payload = self.read(int.from_bytes(head[:3], "big"))
        if kind == SETTINGS and not flags & ACK:
            self.client.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.client.sendall(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream == 0:
            self.window += struct.unpack(">I", payload)[0]
        elif kind == HEADERS:
            self.answer(stream)

    def answer(self, stream):
        self.client.sendall(frame(
            HEADERS, END_HEADERS, stream, header_block((
                (b":status", b"200"), (b"content-type", b"application/grpc"),
                (b"grpc-encoding", self.encoding)))))
        compressed = self.encoding != b"identity"
        body = struct.pack(">BI", compressed, len(self.message)) + self.message
        for at in range(0, len(body), MAX_FRAME):
            piece = body[at:at + MAX_FRAME]
            while self.window < len(piece):
                self.read_frame()
            self.window -= len(piece)
            self.client.sendall(frame(DATA, 0, stream, piece))
        self.client.sendall(frame(
            HEADERS, END_HEADERS | END_STREAM, stream,
            header_block(((b"grpc-status", b"0"),))))


class CompressedRepliesTest(unittest.TestCase):
    bin = None

    def serve(self, message, encoding):
        """Answers every call like this from now on; returns the address."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def accept():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                connection = Connection(client, message, encoding)
                threading.Thread(target=connection.run, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def run_client(self, *arguments):
        """The output of a client, which must fail."""
        done = subprocess.run(
            [f"{self.bin}/millrace", *arguments], text=True, timeout=LIMIT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stdout

    @staticmethod
    def peak_memory():
        """The peak of the largest client so far."""
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    def test_clients_refuse_compressed_replies(self):
        plain = self.serve(b"no message", b"identity")
        commands = (
            ("status", "--servers"),
            ("digest", "--fanouts", "2", "--batch-size", "4",
             "--partition-wait", "1s", "--servers"),
        )
        for command in commands:
            self.run_client(*command, plain)
        before = self.peak_memory()
        bomb = self.serve(compressed_zeros(INFLATED), b"gzip")
        for command in commands:
            with self.subTest(command[0]):
                output = self.run_client(*command, bomb)
                self.assertIn(bomb, output)
                self.assertIn("Compression algorithm 'gzip' is disabled",
                              output)
                self.assertLess(self.peak_memory() - before, MAX_GROWTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    options, rest = parser.parse_known_args()
    CompressedRepliesTest.bin = options.bin
    unittest.main(argv=[__file__, *rest])
