#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# other_store_test.sh BIN_DIR WORK_DIR: servers of two stores in one list. A
# client that starts fails and names both, however long it would wait for a
# partition; one that is already running continues with the servers of its
# store.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"
ulimit -f 65536  # KiB: stops a client that would write without end

"$bin/millrace" import fake --nodes 100000 --avg-degree 8 --features 4 \
  --classes 3 --seed 1 --out one
"$bin/millrace" import fake --nodes 100000 --avg-degree 8 --features 4 \
  --classes 3 --seed 2 --out two
job=(--split train --fanouts 5,5 --batch-size 1)
"$bin/millrace" digest --store one "${job[@]}" --batches 100 >expected.txt

# start_server NAME STORE PORT: sets SERVERS[NAME] to its process and
# ADDRESSES[NAME] to its address.
declare -A SERVERS ADDRESSES
start_server() {
  rm -f "port-$1"
  start_group "$bin/millrace-server" --store "$2" --partition all \
    --listen "127.0.0.1:$3" --port-file "port-$1" 2>>"server-$1.txt"
  SERVERS[$1]=$STARTED
  wait_for_file "port-$1" "$STARTED" || fail "server $1 does not start"
  ADDRESSES[$1]=127.0.0.1:$(<"port-$1")
}
# replace_server NAME: replaces the server with one for the other store, at the
# same address.
replace_server() {
  kill -KILL "${SERVERS[$1]}"
  wait "${SERVERS[$1]}" || true
  forget_group "${SERVERS[$1]}"
  start_server "$1" two "${ADDRESSES[$1]#*:}"
}
# await_text TEXT FILE: waits until the file contains the text.
await_text() {
  local until=$((SECONDS + 60))
  until grep -q "$1" "$2"; do
    ((SECONDS < until)) || fail "no '$1' in $2"
    sleep 0.05
  done
}
# is_short FILE: checks that a waiting client has written little, since it
# should write a line only every few seconds.
is_short() {
  (($(stat -c %s "$1") < 20000)) || fail "$1 has $(stat -c %s "$1") bytes"
}

start_server a one 0
start_server b one 0
start_server c two 0

# ends_with_both_names LIST PROGRAM ARG...
ends_with_both_names() {
  local status=0
  timeout -k 5 60 "${@:2}" --servers "$1" >out.txt 2>client.txt || status=$?
  ((status == 1)) || fail "status $status of $2 $3, not 1"
  is_short client.txt
  grep -q "^$(basename "$2").*${ADDRESSES[c]}" client.txt ||
    fail "the error does not name ${ADDRESSES[c]}"
  grep -Eq "^$(basename "$2").*(${ADDRESSES[a]}|${ADDRESSES[b]})" client.txt ||
    fail "the error names only ${ADDRESSES[c]}"
}
# The program may learn of either store first.
for list in "${ADDRESSES[a]},${ADDRESSES[b]},${ADDRESSES[c]}" \
  "${ADDRESSES[c]},${ADDRESSES[a]}"; do
  ends_with_both_names "$list" "$bin/millrace" digest "${job[@]}"
  ends_with_both_names "$list" "$bin/millrace" bench "${job[@]}"
  ends_with_both_names "$list" "$bin/millrace" status --wait 5m
  if [[ -x $bin/millrace-train ]]; then
    ends_with_both_names "$list" "$bin/millrace-train" --fanouts 2 --hidden 4 \
      --batch-size 64 --epochs 1
  fi
done

# A signal ends a client that waits for servers.
for signal in INT TERM; do
  start_group "$bin/millrace" digest --servers 127.0.0.1:1 "${job[@]}" \
    >out.txt 2>client.txt
  client=$STARTED
  await_text 'waiting for servers.* error="no server of the fleet answers' client.txt
  kill "-$signal" "$client"
  status=0
  wait "$client" || status=$?
  forget_group "$client"
  ((status == 130 || status == 143)) || fail "status $status after SIG$signal"
  is_short client.txt
done

# A running client leaves a server that comes back with another store and
# continues with the others; without any it fails.
start_group "$bin/millrace" digest "${job[@]}" \
  --servers "${ADDRESSES[a]},${ADDRESSES[b]}" >digest.txt 2>client.txt
client=$STARTED
wait_for_file digest.txt "$client" || fail "no digest is printed"
replace_server a
await_text "server ${ADDRESSES[a]} has another store" client.txt
lines=$(wc -l <digest.txt)
until (($(wc -l <digest.txt) >= lines + 100)); do
  kill -0 "$client" || fail "the client ended with a server of another store"
  sleep 0.05
done
head -n 100 digest.txt | cmp - <(head -n 100 expected.txt) ||
  fail "the batches changed"
replace_server b
status=0
wait "$client" || status=$?
forget_group "$client"
((status == 1)) || fail "status $status without a server of its store"
is_short client.txt
for name in a b; do
  grep -q "server ${ADDRESSES[$name]} has another store" client.txt ||
    fail "the client does not name ${ADDRESSES[$name]}"
done
