#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# added_split_test.sh BIN_DIR WORK_DIR: a split is made while servers run.
# Clients started afterwards find it; servers started afterwards belong to the
# same fleet; another split of the same name is refused.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

"$bin/millrace" import ogb "$root/tests/data/cora" --split public --out cora
"$bin/millrace" partition cora --parts 2 --method hash --out store
cp -r store copy
"$bin/millrace" inspect store --json | grep fingerprint >before.txt

# write_ids FILE: writes int64 ids from stdin, one per line.
write_ids() {
  local ids
  mapfile -t ids
  {
    printf '\x93NUMPY\x01\x00\x76\x00'
    printf '%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (${#ids[@]},), }"
    for id in "${ids[@]}"; do
      # shellcheck disable=SC2059
      printf "\\x$(printf %02x $((id % 256)))\\x$(printf %02x $((id / 256)))"
      printf '\0\0\0\0\0\0'
    done
  } >"$1"
}
seq 1 7 2700 | write_ids seeds.npy
seq 2 7 2700 | write_ids others.npy

# start_server NAME STORE PARTITION: reuses the server's previous port, if any.
declare -A SERVERS PORTS
start_server() {
  rm -f "port-$1"
  start_group "$bin/millrace-server" --store "$2" --partition "$3" \
    --listen "127.0.0.1:${PORTS[$1]:-0}" --peers @fleet.list \
    --port-file "port-$1" 2>>"server-$1.txt"
  SERVERS[$1]=$STARTED
  wait_for_file "port-$1" "$STARTED" || fail "server $1 does not start"
  PORTS[$1]=$(<"port-$1")
}
restart_server() {
  kill -KILL "${SERVERS[$1]}"
  wait "${SERVERS[$1]}" || true
  forget_group "${SERVERS[$1]}"
  start_server "$@"
}
# list NAME...: makes these servers the fleet.
list() {
  for name in "$@"; do echo "127.0.0.1:${PORTS[$name]}"; done >fleet.list.new
  mv fleet.list.new fleet.list
}
touch fleet.list
start_server a store 0
start_server b store 1
start_server d store 0
start_server e store 1
list a b d e

job=(--split added --fanouts 10,5 --batch-size 50)
digest() {
  timeout -k 5 60 "$bin/millrace" digest --servers @fleet.list "$@" \
    >digest.txt 2>client.txt
}

# A client that does not know the split runs during everything that follows.
running=(--split test --fanouts 25,10 --batch-size 1)
"$bin/millrace" digest --store cora "${running[@]}" >running-expected.txt
start_group "$bin/millrace" digest --servers @fleet.list "${running[@]}" \
  >running.txt 2>running-client.txt
client=$STARTED
wait_for_file running.txt "$client" || fail "no digest is printed"
kill -STOP "$client"

if digest "${job[@]}"; then fail "there is no split yet"; fi
grep -q 'no split "added"' client.txt || fail "the split is not named"

"$bin/millrace" split store --name added --ids seeds.npy
"$bin/millrace" split cora --name added --ids seeds.npy
"$bin/millrace" digest --store cora "${job[@]}" >expected.txt
digest "${job[@]}" || fail "the servers do not find the split"
cmp expected.txt digest.txt || fail "the fleet's batches differ"

# One server was started before the split was made, the other one after.
restart_server b store 1
for servers in "a b d e" "d b"; do
  # shellcheck disable=SC2086
  list $servers
  "$bin/millrace" status --servers @fleet.list --wait 30s >status.txt ||
    fail "a server that began after the split was made is refused"
  grep -q "127.0.0.1:${PORTS[b]} *ready" status.txt || fail "server b is refused"
  digest "${job[@]}" || fail "the fleet has come apart"
  cmp expected.txt digest.txt || fail "the fleet's batches differ"
done
"$bin/millrace" inspect store --json | grep fingerprint | head -n 2 |
  cmp - <(head -n 2 before.txt) || fail "the split changed the fingerprints"
"$bin/millrace" verify store || fail "verify of a store with an added split"

# First serves a copy without the split, then one with a different split.
start_server c copy 0
list c a b
digest "${job[@]}" || fail "a replica without the split is not left"
cmp expected.txt digest.txt || fail "the fleet's batches differ"
list c b
if digest "${job[@]}"; then fail "a server lacks the split"; fi
grep -q "^millrace digest: partition 0: server 127.0.0.1:${PORTS[c]}: .*has no $(
  )split \"added\"" client.txt || fail "the error does not say who lacks it"
list c a b
"$bin/millrace" split copy --name added --ids others.npy
if digest "${job[@]}"; then fail "two splits of one name are one"; fi
# The error names the two servers that differ: a and b have the same split.
for names in "${PORTS[c]}" "\(${PORTS[a]}\|${PORTS[b]}\)"; do
  grep -q "^millrace digest:.* 127.0.0.1:$names has " client.txt ||
    fail "the error does not name server $names"
done
digest --split train --fanouts 10,5 --batch-size 50 ||
  fail "a job that does not use the split fails"

# No server of partition 0 has the split as the client knows it.
list c b
status=0
digest "${job[@]}" || status=$?
((status == 1)) || fail "status $status with another split on each server"

list a b
kill -CONT "$client"
status=0
wait "$client" || status=$?
forget_group "$client"
((status == 0)) || fail "a client that ran before has ended with $status"
cmp running.txt running-expected.txt || fail "its batches changed"
