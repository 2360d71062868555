# SPDX-License-Identifier: Apache-2.0
"""Ports that a test can choose before a program listens on them."""
import pathlib
import random
import socket

RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
ENOUGH = 1000  # ports, so that one of them is free


def free_port():
    """A port of 127.0.0.1 that nothing listens on and that the kernel does not
    assign to clients: it stays free until the program that is to listen on it
    starts, and while that is being restarted. If the kernel assigns nearly all
    ports to clients, one of these."""
    first_of_clients, last_of_clients = map(int, RANGE.read_text().split())
    ports = range(10000, first_of_clients)
    if len(ports) < ENOUGH:
        ports = range(last_of_clients + 1, 1 << 16)
    if len(ports) < ENOUGH:
        ports = [0]  # the kernel chooses
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.SystemRandom().choice(ports)))
            except OSError:
                continue
            return probe.getsockname()[1]
