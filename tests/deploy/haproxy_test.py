#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs deploy/haproxy/haproxy.cfg in front of two servers, both with mutual TLS:
the batches, errors and other calls must be those of the servers, floods of
HTTP/2 frames must stop at the proxy, and a good client must be served
meanwhile. Prints what was measured, with and without the proxy.

As root on Debian 12 it installs with apt what it needs: HAProxy, OpenSSL, gRPC
for Python and the libraries of the programs.

  haproxy_test.py [--bin build/release/bin] [--seconds 3] [--floods NAME...]

The attacker comes from 127.0.0.2, the good client from 127.0.0.1, both with a
certificate that is let in: strangers without one get no further than the
handshake."""
import argparse
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(ROOT / "tests/abuse"), str(ROOT / "tests/support")]
from free_port import free_port  # noqa: E402
from http2 import Connection, Target  # noqa: E402
from sampler_requests import (ALL_COLUMNS, DESCRIBE, EXPAND,  # noqa: E402
                              SAMPLE, batch_digest, expand, job, sample)
import deploy  # noqa: E402
import proxy_floods  # noqa: E402

PACKAGES = "haproxy", "openssl", "python3-grpcio"
FLOODS = ["continuation", "huge_value", "hpack_bomb", "rapid_reset",
          "rapid_reset_requests"]
# Those that take all memory of a server.
HARMFUL = {"continuation", "rapid_reset", "rapid_reset_requests"}
LONGEST = 60  # seconds of a flood
CONFIG = ROOT / "deploy/haproxy/haproxy.cfg"
INFLIGHT = "256M"
# How much a server and the proxy may grow by while a flood runs.
BOUND = 100 << 20
JOB = ["--fanouts", "10,5", "--batch-size", "256"]
GOOD_JOB = job(seed=7, split="train", fanouts=[10, 5], batch_size=256)
ATTACKER, GOOD = "127.0.0.2", "127.0.0.1"


def make_certificates(folder):
    """A CA, and certificates of servers, of the proxy and of clients."""
    names = {"server": "DNS:s0.fleet.example,DNS:s1.fleet.example",
             "proxy": "DNS:proxy.example", "client": "DNS:t1.example"}
    deploy.make_certificates(folder, {
        name: f"{more},IP:127.0.0.1" for name, more in names.items()})
    for name in names:
        # As HAProxy wants them: a certificate and its key in a file.
        (folder / f"{name}-both.pem").write_text("".join(
            (folder / f"{name}.{kind}").read_text() for kind in ("pem", "key")))


class Process(contextlib.AbstractContextManager):
    def __init__(self, log, *words):
        self.log = open(log, "a")
        self.process = subprocess.Popen([str(word) for word in words],
                                        stdout=self.log, stderr=self.log)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def resident(self):
        """Anonymous memory in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) << 10

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        return sum(map(int, fields.rsplit(")", 1)[1].split()[11:13])) / (
            os.sysconf("SC_CLK_TCK"))


class Server(Process):
    """Serves all partitions of the store."""

    def __init__(self, setup):
        self.port, self.metrics = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        super().__init__(
            setup.folder / "servers.log", setup.bin / "millrace-server",
            "--store", setup.store, "--partition", "all", "--listen",
            self.address, "--metrics", f"127.0.0.1:{self.metrics}",
            "--max-inflight-bytes", INFLIGHT, "--tls-cert",
            setup.folder / "server.pem", "--tls-key", setup.folder /
            "server.key", "--tls-ca", setup.folder / "ca.pem")
        deploy.await_true("a server", lambda: self.page("readyz"), 30)

    def page(self, name):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.metrics}/{name}", timeout=5) as page:
            return page.read().decode()

    def metric(self, name):
        """The sum over all labels."""
        return sum(float(line.split()[-1])
                   for line in self.page("metrics").splitlines()
                   if re.match(name + r"[ {]", line))


class Proxy(Process):
    """HAProxy with the project's configuration and other addresses."""

    def __init__(self, setup, servers, less=None):
        self.ports = [free_port() for _ in servers]
        text = CONFIG.read_text()
        changes = {
            **(less or {}),
            "log /dev/log local0": "log stdout format raw local0",
            " port 7080": "",
            **{f"/etc/haproxy/millrace/{name}.pem": f"{setup.folder}/{other}.pem"
               for name, other in {"proxy": "proxy-both",
                                   "proxy-client": "proxy-both",
                                   "fleet-ca": "ca", "clients-ca": "ca"
                                   }.items()}}
        for i, server in enumerate(servers):
            changes[f"bind :700{i} "] = f"bind 127.0.0.1:{self.ports[i]} "
            changes[f"backend server-700{i}"] = f"backend server-{self.ports[i]}"
            changes[f"s{i} 10.0.0.1{i}:7000"] = (
                f"s{i} {server.address} port {server.metrics}")
        for old, new in changes.items():
            assert old in text, f"{CONFIG} has no {old!r}"
            text = text.replace(old, new)
        config = setup.folder / "haproxy.cfg"
        config.write_text(text)
        deploy.run_quietly("haproxy", "-c", "-f", config)
        super().__init__(setup.folder / "haproxy.log", "haproxy", "-db", "-f",
                         config)
        self.addresses = [f"127.0.0.1:{port}" for port in self.ports]
        for address in self.addresses:
            deploy.await_true(
                "the proxy", lambda client=Client(setup, address):
                client.call(DESCRIBE, b"").status == 0, 30)


class Client:
    """A client that is let in, with HTTP/2 of its own."""

    def __init__(self, setup, address, source=GOOD):
        self.setup, self.address, self.source = setup, address, source

    def connect(self, **own_settings):
        return Connection(Target(self.address, 0), self.source, patience=10.0,
                          tls=self.setup.tls, **own_settings)

    def call(self, method, message, timeout="10S"):
        with self.connect() as connection:
            return connection.call(method, message, timeout)


class Setup(contextlib.ExitStack):
    def __init__(self, binary):
        super().__init__()
        self.bin = binary
        self.folder = pathlib.Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-haproxy-")))
        self.folder.chmod(0o755)
        make_certificates(self.folder)
        self.tls = ssl.create_default_context(cafile=self.folder / "ca.pem")
        self.tls.check_hostname = False
        self.tls.set_alpn_protocols(["h2"])
        self.tls.load_cert_chain(self.folder / "client-both.pem")
        deploy.run_quietly(
            self.bin / "millrace", "import", "fake", "--nodes", 100_000,
            "--avg-degree", 15, "--features", 64, "--classes", 8, "--seed", 1,
            "--out", self.folder / "data")
        self.store = self.folder / "store"
        deploy.run_quietly(
            self.bin / "millrace", "partition", self.folder / "data", "--parts",
            2, "--method", "random", "--out", self.store)

    def millrace(self, command, servers, *words, parse=str):
        return parse(deploy.run_quietly(
            self.bin / "millrace", command, "--servers", ",".join(servers),
            *JOB, *words, "--tls-ca", self.folder / "ca.pem", "--tls-cert",
            self.folder / "client.pem", "--tls-key",
            self.folder / "client.key"))


# What a client sees.

def check_batches(setup, servers, proxy):
    direct = setup.millrace("digest", [s.address for s in servers],
                            "--batches", 40)
    through = setup.millrace("digest", proxy.addresses, "--batches", 40)
    local = deploy.run_quietly(setup.bin / "millrace", "digest", "--store",
                               setup.store, *JOB, "--batches", 40)
    assert direct == through == local, "the batches differ"
    print("batches through the proxy equal those of the servers and the store")


def channel(setup, address, certificate=True):
    import grpc
    read = lambda name: (setup.folder / name).read_bytes()  # noqa: E731
    mine = ([read("client.key"), read("client.pem")] if certificate else
            [None, None])
    return grpc.secure_channel(
        address, grpc.ssl_channel_credentials(read("ca.pem"), *mine))


def check_calls(setup, servers, proxy):
    """Error details, deadlines, health and reflection, by gRPC's own client."""
    import grpc
    answers = []
    for address in (servers[0].address, proxy.addresses[0]):
        with channel(setup, address) as to:
            def unary(method, message, to=to, **options):
                call = to.unary_unary(method)
                try:
                    return call(message, timeout=10, **options)
                except grpc.RpcError as error:
                    return (error.code(), error.details(), [
                        value for key, value in error.trailing_metadata()
                        if key == "grpc-status-details-bin"])
            bad = sample(job(split="nothing", fanouts=[2], batch_size=1))
            try:
                list(to.unary_stream(SAMPLE)(bad, timeout=10))
                raise AssertionError("a wrong split is served")
            except grpc.RpcError as error:
                wrong = (error.code(), error.details(), sorted(
                    (key, value) for key, value in error.trailing_metadata()
                    if key == "grpc-status-details-bin"))
            health = unary("/grpc.health.v1.Health/Check", b"")
            listed = next(iter(to.stream_stream(
                "/grpc.reflection.v1alpha.ServerReflection/"
                "ServerReflectionInfo")(iter([b"\x3a\x01*"]), timeout=10)))
            big = unary("/grpc.health.v1.Health/Check", b"",
                        metadata=[("x", "v" * 20_000)])
            answers.append((wrong, health, listed))
            if address == proxy.addresses[0]:
                refused = unary(EXPAND, expand([1, 2], 0))
                assert refused[0] == grpc.StatusCode.PERMISSION_DENIED, refused
            assert isinstance(big, tuple), "headers of 20 KB are taken"
    assert answers[0] == answers[1], answers
    assert answers[0][0][2], "no details"
    assert b"\x08\x01" in answers[0][1] and b"millrace.v1.Sampler" in (
        answers[0][2]), answers
    print("error details, health and reflection are those of the server")

    ended = servers[0].metric("millrace_calls_total")
    with channel(setup, proxy.addresses[0]) as to, \
            contextlib.suppress(grpc.RpcError):
        to.unary_unary(DESCRIBE)(b"", timeout=10)  # connects
        ended += 1
        long = sample(job(split="train", fanouts=[-1, -1, -1], batch_size=4096),
                      columns=ALL_COLUMNS)
        list(to.unary_stream(SAMPLE)(long, timeout=0.05))
        raise AssertionError("the deadline is not kept")
    deploy.await_true(
        "the end of a call whose deadline has passed",
        lambda: servers[0].metric("millrace_calls_total") > ended and
        servers[0].metric("millrace_inflight_bytes") == 0, 30)
    print("a deadline ends the call at the server")

    with channel(setup, proxy.addresses[0], certificate=False) as to:
        try:
            to.unary_unary(DESCRIBE)(b"", timeout=3)
            raise AssertionError("a stranger is let in")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
    print("a client without a certificate is refused at the handshake")


def check_flow(setup, server, proxy):
    """A reset ends the call at the server; a client that does not read stops
    the server, and no other client."""
    client = Client(setup, proxy.addresses[0])
    large = sample(job(split="train", fanouts=[15, 10, 5], batch_size=4096),
                   columns=ALL_COLUMNS)
    whole = len(client.call(SAMPLE, large).data)
    with client.connect(own_settings={4: 65535}) as slow:
        sent = server.metric("millrace_sent_bytes_total")
        stream = slow.start(SAMPLE, large)
        time.sleep(1)
        before = server.metric("millrace_sent_bytes_total")
        time.sleep(1)
        after = server.metric("millrace_sent_bytes_total")
        assert before == after, "the server sends though nobody reads"
        assert after - sent < whole / 2, (after - sent, whole)
        held = server.metric("millrace_inflight_bytes")
        assert held > 0, "the call has ended"
        start = time.monotonic()
        assert client.call(SAMPLE, sample(GOOD_JOB)).status == 0
        other = time.monotonic() - start
        same = slow.start(SAMPLE, sample(job(split="train", fanouts=[1],
                                             batch_size=1)))
        start = time.monotonic()
        try:
            slow.socket.settimeout(3)
            slow.finish(same)
            beside = f"{1e3 * (time.monotonic() - start):.0f} ms"
        except OSError:
            beside = "no answer in 3 s"
        slow.reset(stream)
        deploy.await_true("the end of a call that was reset", lambda:
                          server.metric("millrace_inflight_bytes") == 0, 30)
    print(f"a client that does not read: of {whole >> 20} MB the server sent "
          f"{int(after - sent) >> 10} KB; another client waited "
          f"{1e3 * other:.0f} ms, a call on the same connection: {beside}")
    print("a reset ends the call at the server")


def check_drain(setup, servers, proxy):
    """The proxy passes no new calls to a server that drains, and clients turn
    to the other one."""
    def digest():
        return setup.millrace("digest", proxy.addresses, "--batches", 200)

    expected = digest()
    answered = servers[1].metric("millrace_calls_total")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        again = pool.submit(digest)
        deploy.await_true("calls of the digest", lambda: servers[1].metric(
            "millrace_calls_total") > answered + 5, 30)
        servers[1].process.send_signal(signal.SIGTERM)
        assert not again.done(), "the digest ended before the drain"
        assert servers[1].process.wait(timeout=60) == 0
        assert again.result() == expected, (
            "the batches changed while a server drained")
    print("a server drains and ends behind the proxy: the batches stay the same")


def check_limits(setup, servers):
    """Who makes too many calls is refused, and may not connect again; others
    are not. The limits are a tenth here."""
    with Proxy(setup, servers, less={" gt 10000": " gt 1000"}) as proxy:
        address = proxy.addresses[0]
        many, good = Client(setup, address, ATTACKER), Client(setup, address)
        answers = {True: 0, False: 0}
        start = time.monotonic()
        with many.connect() as connection:
            connection.greet()
            while sum(answers.values()) < 3000:
                streams = [connection.start(DESCRIBE, b"") for _ in range(100)]
                for stream in streams:
                    answers[connection.finish(stream).status == 0] += 1
        # The rate is of 10 s.
        most = 1100 * (1 + (time.monotonic() - start) / 10)
        assert 900 <= answers[True] <= most, answers
        try:
            many.call(DESCRIBE, b"")
            raise AssertionError("a client with too many calls is let in")
        except OSError:
            pass
        assert good.call(DESCRIBE, b"").status == 0
    print(f"of {sum(answers.values())} calls in quick succession "
          f"{answers[True]} were answered, the others refused, and a new "
          "connection too; another client was served")


# What floods do.

def fetch_all(setup, address, stop, results):
    """A client that asks for a batch each 50 ms: seconds of each answer, and
    how often it got none."""
    client, seconds, errors = Client(setup, address), [], 0
    connection, expected = None, None
    while not stop.is_set():
        start = time.monotonic()
        try:
            connection = connection or client.connect()
            call = connection.call(SAMPLE, sample(GOOD_JOB, batch=1), "10S")
            digest = batch_digest(call)
            assert call.status == 0 and digest == (expected or digest)
            expected = digest
        except (OSError, AssertionError):
            errors += 1
            if connection:
                connection.socket.close()
            connection = None
        seconds.append(time.monotonic() - start)
        stop.wait(0.05)
    results.put((seconds, errors))


def measure(setup, name, through, seconds):
    """A fresh server, and a proxy if `through`, under one flood."""
    with Server(setup) as server, contextlib.ExitStack() as stack:
        other = stack.enter_context(Server(setup)) if through else None
        proxy = stack.enter_context(
            Proxy(setup, [server, other])) if through else None
        address = proxy.addresses[0] if through else server.address
        processes = [server, *([proxy] if through else [])]
        Client(setup, address).call(SAMPLE, sample(GOOD_JOB))
        base = [one.resident() for one in processes]
        stop, results = multiprocessing.Event(), multiprocessing.SimpleQueue()
        good = multiprocessing.Process(
            target=fetch_all, args=(setup, address, stop, results), daemon=True)
        good.start()
        time.sleep(0.5)
        sent, halt = multiprocessing.SimpleQueue(), multiprocessing.Event()
        attacker = multiprocessing.Process(
            target=lambda: sent.put(proxy_floods.flood(
                getattr(proxy_floods, name), Target(address, 0), ATTACKER,
                setup.tls, halt)), daemon=True)
        attacker.start()
        peak, busy = list(base), [one.cpu_seconds() for one in processes]
        begin = time.monotonic()
        # On a busy machine the attacker needs longer to do harm, and on an idle
        # one it must not fill the memory.
        while (time.monotonic() < begin + seconds or
               not through and name in HARMFUL and
               peak[0] - base[0] < 2 * BOUND and
               time.monotonic() < begin + LONGEST):
            for i, one in enumerate(processes):
                if one.process.poll() is None:
                    peak[i] = max(peak[i], one.resident())
            if peak[0] - base[0] > 2 << 30:
                break
            time.sleep(0.02)
        lasted = time.monotonic() - begin
        halt.set()
        cpu = [one.cpu_seconds() - busy[i] for i, one in enumerate(processes)]
        stop.set()
        latencies, errors = results.get()
        attacker.join(timeout=20)
        attacker.kill()
        volume, connections = (sent.get() if not sent.empty() else (0, 0))
        alive = [one.process.poll() is None for one in processes]
    grown = [top - bottom for top, bottom in zip(peak, base)]
    return {"flood": name, "path": "proxy" if through else "direct",
            "seconds": lasted,
            "sent": volume, "connections": connections, "server": grown[0],
            "proxy": grown[1] if through else None, "cpu": cpu,
            "answers": len(latencies) - errors, "errors": errors,
            "p50": statistics.median(latencies), "max": max(latencies),
            "alive": all(alive)}


def show(row):
    proxy = "" if row["proxy"] is None else f"{row['proxy'] / 1e6:.0f}"
    print(f"| {row['flood']} | {row['path']} | {row['seconds']:.0f} s | "
          f"{row['sent'] / 1e6:.0f} | "
          f"{row['connections']} | {row['server'] / 1e6:.0f} | {proxy} | "
          f"{row['answers']} | {1e3 * row['p50']:.0f} ms | "
          f"{row['max']:.2f} s | {row['errors']} |", flush=True)


def check_floods(setup, names, seconds):
    print("\nfloods; memory is what was added, in MB\n\n"
          "| flood | | for | MB sent | connections | server | proxy | good answers | "
          "median | longest | failed |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        direct = measure(setup, name, False, seconds)
        show(direct)
        through = measure(setup, name, True, seconds)
        show(through)
        for row in (direct, through):
            assert row["sent"] > 0 and row["connections"] > 0, row
        assert through["alive"], through
        assert through["server"] < BOUND and through["proxy"] < BOUND, through
        assert through["errors"] == 0 and through["max"] < 2, through
        if name in HARMFUL:
            assert direct["server"] > 2 * BOUND, direct


def bench(setup, servers, proxy):
    """What the proxy costs."""
    print("\n| millrace bench, 2 servers | batches/s | MB/s | CPU s per batch of "
          "servers | of the proxy |\n|---|---|---|---|---|")
    for name, addresses in (("direct", [s.address for s in servers]),
                            ("through the proxy", proxy.addresses)):
        processes = [*servers, proxy]
        before = [one.cpu_seconds() for one in processes]
        report = setup.millrace("bench", addresses, "--batches", 200, "--json",
                                parse=json.loads)
        used = [one.cpu_seconds() - was for one, was in
                zip(processes, before)]
        seconds = report["seconds"]
        print(f"| {name} | {report['batches'] / seconds:.1f} | "
              f"{report['bytes'] / seconds / 1e6:.0f} | "
              f"{sum(used[:-1]) / 200:.4f} | {used[-1] / 200:.4f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=deploy.find_programs())
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--floods", nargs="*", default=FLOODS, choices=FLOODS)
    args = parser.parse_args()
    deploy.install(*PACKAGES, *deploy.LIBRARIES)
    deploy.use_pretended_cuda(args.bin)
    multiprocessing.set_start_method("fork")
    with Setup(args.bin.resolve()) as setup:
        try:
            with Server(setup) as first, Server(setup) as second, \
                    Proxy(setup, [first, second]) as proxy:
                servers = [first, second]
                check_batches(setup, servers, proxy)
                check_calls(setup, servers, proxy)
                check_flow(setup, first, proxy)
                bench(setup, servers, proxy)
                check_limits(setup, servers)
                check_drain(setup, servers, proxy)
            check_floods(setup, args.floods, args.seconds)
        except BaseException:
            for log in ("servers.log", "haproxy.log"):
                text = (setup.folder / log)
                if text.exists():
                    print(f"{log}:", *text.read_text().splitlines()[-15:],
                          sep="\n", file=sys.stderr)
            raise


if __name__ == "__main__":
    main()
