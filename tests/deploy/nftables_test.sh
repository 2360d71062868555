#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries deploy/nftables/millrace.nft with Debian's nft, which it installs: the
# rules are valid, and loading them twice leaves them as after the first time.
# Then a network namespace with these rules is a host, and another one, at the
# other end of a cable, has the addresses of servers, trainers, Prometheus and a
# stranger: each must be able to connect to the ports that are meant for it, and
# to no others.
#
# Needs root; changes only network namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/deploy/debian_root.sh
need_package nft:nftables ip:iproute2 python3:python3
if [[ -z ${MILLRACE_NFTABLES_TEST:-} ]]; then
  MILLRACE_NFTABLES_TEST=1 exec unshare --net tests/deploy/nftables_test.sh
fi

rules=deploy/nftables/millrace.nft
nft -c -f "$rules"
nft -f "$rules"
once=$(nft list ruleset)
nft -f "$rules"
[[ $(nft list ruleset) == "$once" ]]
echo "$rules is valid"

exec /usr/bin/python3 -B - <<'END'
import itertools
import socket
import subprocess
import sys

HOST = "10.0.0.1"  # a server and a trainer are on it
SERVER, TRAINER, MONITOR, STRANGER = CLIENTS = (
    "10.0.0.3", "10.0.1.7", "10.0.2.10", "10.0.3.3")
ALLOWED = {  # port -> who may connect
    22: CLIENTS,  # of ssh
    7000: (SERVER, TRAINER), 7007: (SERVER, TRAINER), 7008: (),
    7079: (), 7080: (MONITOR,), 7087: (MONITOR,), 7088: (),
    7089: (), 7090: (MONITOR,), 7105: (MONITOR,), 7106: (),
    29500: (TRAINER,), 29501: (), 32768: (TRAINER,), 60999: (TRAINER,),
    61000: ()}


def run(*words):
    subprocess.run(words, check=True)


# The namespace of the clients lives as long as this process, which waits.
clients = subprocess.Popen(["unshare", "--net", "sh", "-c",
                            "echo && read _"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
clients.stdout.readline()


def at_clients(*words, **options):
    return subprocess.run(["nsenter", "--net", "--target", str(clients.pid),
                           *words], check=True, **options)


run("ip", "link", "add", "host", "type", "veth", "peer", "name", "clients",
    "netns", str(clients.pid))
run("ip", "address", "add", f"{HOST}/16", "dev", "host")
for address in CLIENTS:
    at_clients("ip", "address", "add", f"{address}/16", "dev", "clients")
run("ip", "link", "set", "lo", "up")
run("ip", "link", "set", "host", "up")
at_clients("ip", "link", "set", "clients", "up")
listeners = [socket.create_server((HOST, port), backlog=64) for port in ALLOWED]

# In the clients' namespace: prints, for each pair, 1 if it could connect. Which
# packets are dropped shows in no answer, so all are tried at once.
CONNECT = """
import selectors, socket, sys, time
waiting, answers = selectors.DefaultSelector(), {}
pairs = [word.split("-") for word in sys.argv[2:]]
for i, (source, port) in enumerate(pairs):
    one = socket.socket()
    one.setblocking(False)
    one.bind((source, 0))
    one.connect_ex((sys.argv[1], int(port)))
    waiting.register(one, selectors.EVENT_WRITE, i)
end = time.monotonic() + 3
while time.monotonic() < end:
    for key, _ in waiting.select(0.1):
        answers[key.data] = key.fileobj.getsockopt(
            socket.SOL_SOCKET, socket.SO_ERROR)
        waiting.unregister(key.fileobj)
print(*[int(answers.get(i) == 0) for i in range(len(pairs))])
"""


def connections():
    """The pairs of client and port that could connect."""
    pairs = list(itertools.product(CLIENTS, ALLOWED))
    answers = at_clients(
        "/usr/bin/python3", "-c", CONNECT, HOST,
        *[f"{client}-{port}" for client, port in pairs],
        stdout=subprocess.PIPE, text=True).stdout.split()
    return {pair for pair, answer in zip(pairs, answers) if answer == "1"}


expected = {(client, port) for port, allowed in ALLOWED.items()
            for client in allowed}
found = connections()
if found != expected:
    sys.exit(f"wrongly open: {sorted(found - expected)}\n"
             f"wrongly closed: {sorted(expected - found)}")
# Without rules all of them could: the rules are why the others could not.
run("nft", "flush", "ruleset")
every = set(itertools.product(CLIENTS, ALLOWED))
if connections() != every:
    sys.exit("not all ports are open without the rules")
print(f"{len(expected)} of {len(every)} connections are let in, as they should")
END
