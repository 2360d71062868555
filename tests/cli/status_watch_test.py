#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""status_watch_test.py BIN_DIR WORK_DIR: `millrace status --watch` while
servers come and go, in a terminal and in a pipe, and how it ends."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

BIN = pathlib.Path(sys.argv[1])
WORK = pathlib.Path(sys.argv[2])
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
LIMIT = 60  # seconds; far longer than anything here takes
OTHER_SCREEN, OWN_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


def run(*command):
    subprocess.run([BIN / command[0], *command[1:]], check=True, timeout=LIMIT,
                   stdout=subprocess.DEVNULL)


class Server:
    """A server of the whole store; `listen` is HOST:PORT."""

    def __init__(self, listen="127.0.0.1:0"):
        port_file = WORK / "port"
        port_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [BIN / "millrace-server", "--store", WORK / "store", "--partition",
             "all", "--listen", listen, "--port-file", port_file,
             "--log-level", "error"])
        end = time.monotonic() + LIMIT
        while not port_file.exists():
            assert time.monotonic() < end and self.process.poll() is None
            time.sleep(0.01)
        self.address = "127.0.0.1:" + port_file.read_text().strip()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(LIMIT) == 0


class Watch:
    """`millrace status --watch 200ms ARGS`, and what it has shown so far."""

    def __init__(self, *args, terminal=False):
        command = [BIN / "millrace", "status", "--watch", "200ms", *args]
        if terminal:
            self.master, slave = pty.openpty()
        else:
            self.master, slave = os.pipe()
        self.process = subprocess.Popen(command, stdout=slave, stderr=slave)
        os.close(slave)
        self.shown = b""

    def read(self, pattern):
        """Waits until what was shown since the last call matches."""
        self.shown = b""
        end = time.monotonic() + LIMIT
        while not re.search(pattern, self.shown):
            assert time.monotonic() < end, (pattern, self.shown[-1000:])
            if select.select([self.master], [], [], 1)[0]:
                self.shown += os.read(self.master, 65536)

    def end(self, number):
        """Sends a signal and returns the exit status and the last output."""
        self.process.send_signal(number)
        status = self.process.wait(LIMIT)
        rest = b""
        try:
            while more := os.read(self.master, 65536):
                rest += more
        except OSError:  # a terminal without programs
            pass
        return status, rest


def row(address, state):
    return re.escape(address).encode() + b" +" + state.encode() + b" "


def test_pipe():
    one, two = Server(), Server()
    servers = f"{one.address},{two.address}"
    watch = Watch("--servers", servers)
    watch.read(rb"\d\d:\d\d:\d\d  2 of 2 servers are ready\nADDRESS .*\n"
               + row(one.address, "ready") + b".*\n"
               + row(two.address, "ready"))
    two.stop()
    watch.read(rb"  1 of 2 servers are ready\nADDRESS .*\n(.*\n)+?"
               + row(two.address, "unreachable"))
    one.stop()
    watch.read(b"  0 of 2 servers are ready; no ready server for partition 0 "
               b"of 1\n")
    one = Server(one.address)
    watch.read(b"  1 of 2 servers are ready\n")
    assert watch.process.poll() is None
    status, rest = watch.end(signal.SIGINT)
    assert status == 130, status
    assert rest.endswith(b"millrace status: interrupted\n"), rest
    assert b"\x1b" not in watch.shown + rest
    one.stop()


def test_terminal():
    server = Server()
    watch = Watch("--server", server.address, terminal=True)
    watch.read(rb"\x1b\[H[-\d]+ [:\d]+  1 of 1 server is ready\x1b\[K\r\n"
               rb"ADDRESS [^\n]*\x1b\[K\r\n" + row(server.address, "ready")
               + rb"[^\n]*\x1b\[K\x1b\[J")
    assert watch.shown.startswith(OTHER_SCREEN), watch.shown
    server.stop()
    watch.read(rb"\x1b\[H[-\d]+ [:\d]+  0 of 1 server is ready")
    assert OWN_SCREEN not in watch.shown
    status, rest = watch.end(signal.SIGTERM)
    assert status == 130, status
    # The screen comes back before the last message.
    assert re.search(re.escape(OWN_SCREEN)
                     + b"millrace status: interrupted\r\n$", rest), rest


def test_log_in_terminal():
    """Nothing is logged onto the screen; the log is back when it closes."""
    server = Server()
    watch = Watch("--server", server.address, "--log-format", "json",
                  terminal=True)
    watch.read(rb"  1 of 1 server is ready")
    server.stop()
    watch.read(rb"  0 of 1 server is ready")
    assert b'"component"' not in watch.shown, watch.shown
    status, rest = watch.end(signal.SIGTERM)
    assert status == 130, status
    before, _, after = rest.partition(OWN_SCREEN)
    assert b'"component"' not in before, before
    line = json.loads(after)
    assert (line["level"], line["message"]) == ("info", "interrupted"), line


def test_json():
    server = Server()
    watch = Watch("--server", server.address, "--json")
    watch.read(rb"\n.*\n.*\n")
    status, _ = watch.end(signal.SIGTERM)
    assert status == 130, status
    lines = [json.loads(line) for line in watch.shown.splitlines()[:3]]
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line["time"]), line
        assert line["servers"][0]["state"] == "ready"
    assert lines[0]["time"] < lines[1]["time"] < lines[2]["time"]
    server.stop()


def test_silent_server():
    """A server that hangs is shown as unreachable from the first table on."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        watch = Watch("--server", address, "--timeout", "0.5")
        watch.read(row(address, "unreachable"))
        assert b"unknown" not in watch.shown, watch.shown
        watch.end(signal.SIGTERM)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run("millrace", "import", "ogb", DATA / "cora", "--split", "public",
        "--out", WORK / "graph", "--log-level", "error")
    run("millrace", "partition", WORK / "graph", "--parts", "1", "--out",
        WORK / "store", "--log-level", "error")
    test_pipe()
    test_terminal()
    test_log_in_terminal()
    test_json()
    test_silent_server()
    shutil.rmtree(WORK)


main()
