# SPDX-License-Identifier: Apache-2.0
"""Ports that a test can choose before a program listens on them."""
import pathlib
import random
import socket

RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port():
    """A port of 127.0.0.1 that nothing listens on and that the kernel does not
    assign to clients: it stays free until the program that is to listen on it
    starts, and while that is being restarted."""
    first_of_clients = int(RANGE.read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10000, first_of_clients)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
