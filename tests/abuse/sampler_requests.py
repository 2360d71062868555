# SPDX-License-Identifier: Apache-2.0
"""Requests of proto/sampler.proto and proto/job.proto, encoded by hand, because
these tests should need only Python and numpy."""
import hashlib
import struct

SAMPLE = "/millrace.v1.Sampler/Sample"
EXPAND = "/millrace.v1.Sampler/Expand"
DESCRIBE = "/millrace.v1.Sampler/Describe"

JOB_FIELDS = {
    "seed": 1, "seed_kind": 2, "seed_type": 3, "split": 4, "fanouts": 5,
    "batch_size": 7, "shuffle": 8, "replace": 11, "disjoint": 12, "method": 14,
    "temporal": 16, "walks": 17, "walk_length": 18, "restart": 19,
    "negatives": 21, "negative_amount": 22, "exclude": 23}
EXPAND_FIELDS = {"frontiers": 8, "partition": 9}
FRONTIER_FIELDS = {"fanout": 2, "ids": 3}
ALL_NEIGHBORS = 1  # -1 as a zigzag-encoded sint32
REQUEST_FIELDS = {
    "job": 1, "epoch": 2, "batch": 3, "explicit_ids": 4, "columns": 5,
    "partition": 7, "explicit_times": 9, "explicit_dst_ids": 10}
ALL_COLUMNS = b"\x08\x01\x18\x01"  # features and original ids


def _varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def _field(number, value):
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (list, tuple)):  # sint32, packed
        value = b"".join(_varint(v << 1 ^ v >> 63) for v in value)
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(int(value))


def _message(numbers, fields):
    return b"".join(_field(numbers[name], value)
                    for name, value in fields.items())


def job(**fields):
    return _message(JOB_FIELDS, fields)


def sample(job_bytes, **fields):
    return _message(REQUEST_FIELDS, {"job": job_bytes, **fields})


def expand(ids, partition):
    """Asks for all neighbours of nodes of a partition."""
    frontier = _message(FRONTIER_FIELDS, {
        "fanout": ALL_NEIGHBORS, "ids": struct.pack(f"<{len(ids)}I", *ids)})
    return _message(EXPAND_FIELDS, {"frontiers": frontier,
                                    "partition": partition})


def _payload(message):
    """Field 15 of a Frame."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        size = varint()  # all fields of a Frame are length-delimited
        if tag >> 3 == 15:
            return message[at:at + size]
        at += size
    return b""


def batch_digest(call):
    """The digest of a Sample call's data, independent of how it is cut into
    frames."""
    digest = hashlib.sha256()
    for message in call.messages():
        digest.update(_payload(message))
    return digest.hexdigest()
