#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# secure_fleet_test.sh BIN_DIR WORK_DIR: a fleet with mutual TLS serves the
# batches of a store, reports certificate problems within seconds, and picks up
# renewed certificates without a restart. docs/security.md has the same openssl
# commands.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

# new_ca NAME
new_ca() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -keyout "$1-ca.key" -out "$1-ca.pem" -days 3650 -subj "/CN=$1 CA" \
    2>>openssl.txt
}
# new_certificate CA NAME NAMES DAYS: replaces NAME.pem and NAME.key atomically.
new_certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -keyout "$2.key.new" -out "$2.csr" -subj "/CN=$2" 2>>openssl.txt
  openssl x509 -req -in "$2.csr" -CA "$1-ca.pem" -CAkey "$1-ca.key" \
    -CAcreateserial -days "$4" -out "$2.pem.new" \
    -extfile <(echo "subjectAltName=$3") 2>>openssl.txt
  mv "$2.key.new" "$2.key"
  mv "$2.pem.new" "$2.pem"
}
new_ca our
new_ca their
new_certificate our server DNS:localhost,IP:127.0.0.1 30
new_certificate our client DNS:trainer.example 30
new_certificate our laptop DNS:laptop.example 30
new_certificate our expired DNS:localhost,IP:127.0.0.1 -1
new_certificate their stranger DNS:trainer.example 30

"$bin/millrace" import ogb "$root/tests/data/cora" --split public --out cora
"$bin/millrace" partition cora --parts 2 --method hash --out store
job=(--split test --fanouts 10,5 --batch-size 100)
"$bin/millrace" digest --store cora "${job[@]}" >expected.txt

secure=(--tls-cert server.pem --tls-key server.key --tls-ca our-ca.pem)
# start_server PARTITION HOST OPTION...
start_server() {
  rm -f "port-$1"
  start_group "$bin/millrace-server" --store store --partition "$1" \
    --listen "$2:0" --peers @fleet.list --port-file "port-$1" \
    "${@:3}" 2>"server-$1.txt"
  wait_for_file "port-$1" "$STARTED" || fail "server $1 does not start"
}
write_list() {
  printf '127.0.0.1:%s\n' "$(<port-0)" "$(<port-1)" >fleet.list.new
  mv fleet.list.new fleet.list
}
touch fleet.list
servers=()
for part in 0 1; do
  start_server "$part" 127.0.0.1 "${secure[@]}" --tls-allow 'server, *.example'
  servers+=("$STARTED")
done
write_list

# fails STATUS PATTERN PROGRAM ARG...: expects the program to fail like this
# within 20 s.
fails() {
  local status=0
  timeout -k 5 20 "${@:3}" >fails.txt 2>&1 || status=$?
  ((status == $1)) || fail "status $status, not $1, of: ${*:3}"
  grep -q -- "$2" fails.txt || fail "no error \"$2\" of: ${*:3}"
}

mutual=(--tls-ca our-ca.pem --tls-cert client.pem --tls-key client.key)
"$bin/millrace" status --servers @fleet.list --wait 20s "${mutual[@]}" ||
  fail "the fleet is not ready"
"$bin/millrace" digest --servers @fleet.list "${job[@]}" "${mutual[@]}" \
  >digest.txt || fail "no digest over TLS"
cmp expected.txt digest.txt || fail "batches over TLS differ"
# The options also work from the environment.
MILLRACE_TLS_CA=our-ca.pem MILLRACE_TLS_CERT=client.pem \
  MILLRACE_TLS_KEY=client.key "$bin/millrace" digest --servers @fleet.list \
  "${job[@]}" >digest.txt || fail "no digest with options of the environment"
cmp expected.txt digest.txt

# Tests clients that are refused, or that refuse the server.
digest=("$bin/millrace" digest --servers @fleet.list "${job[@]}")
first=127.0.0.1:$(<port-0)
fails 1 "server $first: its certificate .* is not signed by the CA in their" \
  "${digest[@]}" --tls-ca their-ca.pem --tls-cert client.pem \
  --tls-key client.key
fails 1 'is not for elsewhere.example' \
  "${digest[@]}" "${mutual[@]}" --tls-server-name elsewhere.example
fails 1 'does it want a certificate' \
  "${digest[@]}" --tls-ca our-ca.pem
fails 1 'does it want a certificate' \
  "${digest[@]}" --tls-ca our-ca.pem --tls-cert stranger.pem \
  --tls-key stranger.key
grep -qF 'a client is refused why="certificate \"CN=stranger\"' server-0.txt ||
  fail "the server does not name the client that it refuses"
fails 1 'does it want TLS' "${digest[@]}" --partition-wait 3s
# handshake VERSION PATTERN: what s_client must report about its handshake.
handshake() {
  timeout 20 openssl s_client -connect "$first" "-$1" \
    -cipher 'ALL:@SECLEVEL=0' -cert client.pem -key client.key \
    </dev/null >s_client.txt 2>&1 || true
  grep -q -- "$2" s_client.txt || fail "no \"$2\" in a handshake by $1"
}
handshake tls1_3 'New, TLSv1.3'
for version in tls1 tls1_1; do
  handshake "$version" 'has read 0 bytes and written [1-9]'
done
fails 1 'expired.pem: expired at' "${digest[@]}" --tls-ca our-ca.pem \
  --tls-cert expired.pem --tls-key expired.key
fails 1 '--tls-key client.key: does not match .* laptop.pem' "${digest[@]}" \
  --tls-ca our-ca.pem --tls-cert laptop.pem --tls-key client.key
fails 1 '--tls-ca: cannot open nothing.pem' "${digest[@]}" --tls-ca nothing.pem
fails 2 '--tls-ca is needed' "${digest[@]}" --tls-cert client.pem \
  --tls-key client.key

# Tests servers that fail to start.
server=("$bin/millrace-server" --store store --partition all)
fails 2 'can be reached from other hosts' "${server[@]}" --listen 0.0.0.0:0
fails 2 '--plaintext and TLS' \
  "${server[@]}" --listen 0.0.0.0:0 "${secure[@]}" --plaintext
fails 1 'expired.pem: expired at' "${server[@]}" --listen 127.0.0.1:0 \
  --tls-cert expired.pem --tls-key expired.key
fails 2 '--tls-allow needs --tls-client-auth require' \
  "${server[@]}" --listen 127.0.0.1:0 --tls-allow somebody

# Certificates are renewed while clients come and go, starting with a truncated
# file.
serial() {
  # A client without a certificate is refused, but has seen the server's by
  # then.
  { timeout 10 openssl s_client -connect "$first" </dev/null 2>/dev/null ||
    true; } | openssl x509 -noout -serial
}
before=$(serial)
head -c 300 server.pem >server.half
mv server.half server.pem
until=$((SECONDS + 30))
until grep -q 'server.pem: does not contain a complete certificate' server-0.txt; do
  ((SECONDS < until)) || fail "no warning of half a file"
  sleep 0.1
done
[[ $(serial) == "$before" ]] || fail "half a file replaced the certificate"
new_certificate our server DNS:localhost,IP:127.0.0.1 3
until=$((SECONDS + 30))
while [[ $(serial) == "$before" ]]; do
  ((SECONDS < until)) || fail "the new certificate is not used"
  sleep 0.1
done
grep -q 'expires within a week' server-0.txt || fail "no warning of a near end"
"${digest[@]}" "${mutual[@]}" >digest.txt || fail "no digest after a renewal"
cmp expected.txt digest.txt || fail "batches differ after a renewal"

# A server comes back with a wrong certificate, and later with a right one: a
# running client says what it waits for and loses nothing.
kill_server() {
  kill -KILL "$1"
  wait "$1" || true
  forget_group "$1"
}
long=(--split test --fanouts 10,5 --batch-size 1)  # 1000 batches
"$bin/millrace" digest --store cora "${long[@]}" >expected.txt
start_group "$bin/millrace" digest --servers @fleet.list "${long[@]}" \
  "${mutual[@]}" --partition-wait 60s >digest.txt 2>client.txt
client=$STARTED
wait_for_file digest.txt "$client" || fail "no digest is printed"
kill_server "${servers[1]}"
start_server 1 127.0.0.1 --tls-cert stranger.pem --tls-key stranger.key \
  --tls-ca our-ca.pem
servers[1]=$STARTED
write_list
until=$((SECONDS + 30))
until grep -q 'partition=1 .*"CN=stranger\\".* is not signed by' client.txt; do
  kill -0 "$client" 2>/dev/null || fail "the client ended too early"
  ((SECONDS < until)) || fail "the client does not say what is wrong"
  sleep 0.05
done
kill_server "${servers[1]}"
start_server 1 127.0.0.1 "${secure[@]}"
servers[1]=$STARTED
write_list
status=0
wait "$client" || status=$?
((status == 0)) || fail "the client fails though the server came back"
forget_group "$client"
cmp expected.txt digest.txt || fail "batches differ after a wrong certificate"

# Another server allows only some clients.
start_server 0 127.0.0.1 "${secure[@]}" --tls-allow trainer.example
alone=("$bin/millrace" status --servers "127.0.0.1:$(<port-0)" --tls-ca
  our-ca.pem)
fails 1 'ended the handshake' \
  "${alone[@]}" --tls-cert laptop.pem --tls-key laptop.key --timeout 3
grep -qF 'refused why="certificate \"CN=laptop\" (laptop.example) has no' \
  server-0.txt || fail "the server does not say whom --tls-allow refuses"
# hears NAME: prints how many bytes of HTTP/2 a client with that certificate
# receives.
hears() {
  "${MILLRACE_PYTHON:-/usr/bin/python3}" - "$(<port-0)" "$1" <<'END'
import socket, ssl, sys

context = ssl.create_default_context(cafile="our-ca.pem")
context.load_cert_chain(sys.argv[2] + ".pem", sys.argv[2] + ".key")
context.set_alpn_protocols(["h2"])
client = socket.create_connection(("127.0.0.1", sys.argv[1]), timeout=20)
heard = b""
try:
    heard = context.wrap_socket(client, server_hostname="localhost").recv(9)
except (ConnectionError, ssl.SSLError):
    pass  # the handshake fails
print(len(heard))
END
}
[[ $(hears client) == 9 ]] || fail "an allowed client hears nothing"
[[ $(hears laptop) == 0 ]] || fail "a client that is refused gets to HTTP/2"
fails 1 'no ready server for partition 1' \
  "${alone[@]}" --tls-cert client.pem --tls-key client.key --timeout 5

# A server serves plaintext on request.
start_server 1 0.0.0.0 --plaintext
