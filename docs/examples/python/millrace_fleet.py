# SPDX-License-Identifier: Apache-2.0
"""Calls to a fleet of sampler servers: who serves what, retries, streams."""

import importlib
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import grpc
import numpy as np

PROTO = pathlib.Path(__file__).resolve().parents[3] / 'proto'
DTYPES = [None, 'u1', 'i1', '<i4', '<u4', '<i8', '<u8', '<f2', '<f4', '<f8',
          '<u2']
BFLOAT16 = 10
STREAMS = ('Sample', 'Gather')
AGAIN = ('UNAVAILABLE', 'UNKNOWN', 'CANCELLED', 'DEADLINE_EXCEEDED')


def load_protocol(folder):
    """The module sampler_pb2, made from the .proto files in `folder`."""
    for protoc in [sys.executable, '-m', 'grpc_tools.protoc'], ['protoc']:
        with tempfile.TemporaryDirectory() as out:
            try:
                subprocess.run([*protoc, f'-I{folder}', f'--python_out={out}',
                                'job.proto', 'sampler.proto'],
                               check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                continue  # there may be another one
            sys.path.insert(0, out)
            try:
                return importlib.import_module('sampler_pb2')
            finally:
                sys.path.remove(out)
    raise RuntimeError(f'neither grpcio-tools nor protoc compiles {folder}')


class Fleet:
    """The servers of one store. Threads may share it."""

    def __init__(self, servers, proto=PROTO, call_timeout=60, wait=20):
        self.pb = load_protocol(proto)
        self.timeout, self.wait = call_timeout, wait
        # Servers are asked directly, even if http_proxy is set.
        options = [('grpc.max_receive_message_length', 16 << 20),
                   ('grpc.enable_http_proxy', 0)]
        self.channels = {a: grpc.insecure_channel(a, options) for a in servers}
        self.schema, self.members = None, {}
        end = time.monotonic() + wait
        while not self.find_servers() and time.monotonic() < end:
            time.sleep(0.5)
        if self.schema is None:
            raise ConnectionError(f'none of {", ".join(servers)} answers')

    def send(self, address, method, request, timeout):
        """The reply of a server, or a stream read whole: no generated stubs."""
        path, channel = f'/millrace.v1.Sampler/{method}', self.channels[address]
        encode = type(request).SerializeToString
        if method in STREAMS:
            call = channel.unary_stream(path, encode, self.pb.Frame.FromString)
            return self.read_stream(call(request, timeout=timeout))
        reply = getattr(self.pb, method + 'Reply')
        return channel.unary_unary(path, encode, reply.FromString)(
            request, timeout=timeout)

    def read_stream(self, frames):
        """The header of a stream, and its arrays by (kind, number)."""
        stream, data, received = None, bytearray(), 0
        for frame in frames:
            if stream is None:
                stream = frame.header.stream
                data = bytearray(stream.total_bytes)
            at = frame.header.offset
            data[at:at + len(frame.payload)] = frame.payload
            received += len(frame.payload)
        if stream is None or not received == stream.total_bytes == len(data):
            raise ValueError(f'a stream ended after {received} bytes')
        arrays = {}
        for info in stream.arrays:
            array = np.frombuffer(data, DTYPES[info.dtype],
                                  int(np.prod(info.shape)), info.offset)
            if info.dtype == BFLOAT16:
                array = (array.astype('<u4') << 16).view('<f4')
            kind = self.pb.ArrayInfo.Kind.Name(info.kind)
            name = kind.replace('KIND_', '').lower()
            arrays[name, info.index] = array.reshape(info.shape)
        return stream, arrays

    def find_servers(self):
        """Asks who serves what; whether all partitions are served."""
        members, draining = {}, {}
        for address in self.channels:
            try:
                found = self.send(
                    address, 'Describe',
                    self.pb.DescribeRequest(look_for_splits=True), timeout=5)
            except grpc.RpcError:
                continue  # gone, or not there yet
            self.schema = self.schema or found
            if (found.protocol_version != 1 or found.sampling_version != 1 or
                    found.fingerprint != self.schema.fingerprint):
                raise ValueError(f'{address} has another store or version')
            for part in found.partitions:
                into = draining if found.draining else members
                into.setdefault(part, []).append(address)
        self.members = {**draining, **members}
        return bool(self.schema) and len(self.members) == self.schema.parts

    def pause(self, error, attempt):
        """Seconds until the next attempt; None if there is to be none."""
        hint = 0
        for key, value in error.trailing_metadata() or ():
            if key == 'grpc-status-details-bin':
                for detail in self.pb.StatusDetails.FromString(value).details:
                    info = self.pb.ErrorInfo.FromString(detail.value)
                    hint = info.retry_after_ms / 1000
        busy = error.code().name == 'RESOURCE_EXHAUSTED' and hint
        if not busy and error.code().name not in AGAIN:
            return None
        return max(hint, min(1, 0.05 * 1.6**attempt) * random.uniform(0.5, 1))

    def call(self, method, request):
        """The reply of any server of request.partition."""
        request.fingerprint = self.schema.fingerprint
        end, attempt, address = time.monotonic() + self.wait, 0, None
        while True:
            serving = self.members.get(request.partition, [])
            pause, error = 0.5, ConnectionError(
                f'no server has partition {request.partition}')
            if serving:
                others = [a for a in serving if a != address]
                address = random.choice(others or serving)
                try:
                    return self.send(address, method, request, self.timeout)
                except grpc.RpcError as failure:
                    error, pause = failure, self.pause(failure, attempt)
            if pause is None or time.monotonic() + pause > end:
                raise error
            time.sleep(pause)
            attempt += 1
            self.find_servers()
