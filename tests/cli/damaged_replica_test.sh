#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# damaged_replica_test.sh BIN_DIR WORK_DIR: clients abandon a replica whose
# files are damaged on disk, whether reads reveal the damage (an id out of
# range) or only --scrub does. Without an intact replica a client fails and
# names them all.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

"$bin/millrace" import ogb "$root/tests/data/cora" --split public --out cora
"$bin/millrace" partition cora --parts 2 --method hash --out a
cp -r a b
cp -r a intact
job=(--split test --fanouts 10,5 --batch-size 20)
"$bin/millrace" digest --store cora "${job[@]}" >expected.txt

# start_server NAME STORE PARTITION OPTION...
declare -A SERVERS ADDRESSES
start_server() {
  rm -f "port-$1"
  start_group "$bin/millrace-server" --store "$2" --partition "$3" \
    --listen 127.0.0.1:0 --peers @fleet.list --port-file "port-$1" "${@:4}" \
    2>"server-$1.txt"
  SERVERS[$1]=$STARTED
  wait_for_file "port-$1" "$STARTED" || fail "server $1 does not start"
  ADDRESSES[$1]=127.0.0.1:$(<"port-$1")
  printf '%s\n' "${ADDRESSES[@]}" >fleet.list.new
  mv fleet.list.new fleet.list
}
stop_servers() {
  for name in "${!SERVERS[@]}"; do
    kill "${SERVERS[$name]}"
    wait "${SERVERS[$name]}" || fail "server $name ended with an error"
    forget_group "${SERVERS[$name]}"
  done
  SERVERS=() ADDRESSES=()
}
# damage FILE BYTE: overwrites the last 64 bytes with BYTE.
damage() {
  local byte=$2 size
  size=$(stat -c %s "$1")
  # shellcheck disable=SC2059
  for ((i = 0; i < 64; ++i)); do printf "\\x$byte"; done |
    dd of="$1" bs=1 seek=$((size - 64)) conv=notrunc status=none
}
# same_batches: compares the batches from all running servers.
same_batches() {
  timeout -k 5 60 "$bin/millrace" digest --servers @fleet.list "${job[@]}" \
    >digest.txt 2>client.txt || fail "no intact replica is used: $1"
  cmp expected.txt digest.txt || fail "the batches differ: $1"
}
# ends_with_all_names FILE: the client names all replicas of partition 0, long
# before the client would give up the partition.
ends_with_all_names() {
  local status=0
  timeout -k 5 120 "$bin/millrace" digest --servers @fleet.list "${job[@]}" \
    --partition-wait 1h >digest.txt 2>client.txt || status=$?
  ((status == 1)) || fail "status $status without an intact replica"
  for name in one two; do
    grep -q "^millrace digest: partition 0: .*${ADDRESSES[$name]}: .*$1" \
      client.txt || fail "the error does not name server $name and $1"
  done
}
await_text() {
  local until=$((SECONDS + 60))
  until grep -q "$1" "$2"; do
    ((SECONDS < until)) || fail "no '$1' in $2"
    sleep 0.05
  done
}

# If neighbours are out of range, the server that reads them notices.
indices=part-00000/edges/node__to__node/in/indices.npy
start_server one a 0
start_server two b 0
start_server three intact 1
same_batches "before the damage"
damage "a/$indices" ff
same_batches "one replica has neighbours out of range"
await_text "partition no longer served.* partition=0 file=$indices" server-one.txt
"$bin/millrace" status --servers @fleet.list >status.txt ||
  fail "the fleet has all partitions"
grep -q "${ADDRESSES[one]}.*partition 0 is damaged: .*$indices" status.txt ||
  fail "status does not report the damage"
damage "b/$indices" ff
ends_with_all_names "$indices"
if "$bin/millrace" status --servers @fleet.list >status.txt 2>&1; then
  fail "status of a fleet without partition 0"
fi
stop_servers

# Only the checksums can tell that features have changed.
rm -r a b
cp -r intact a
cp -r intact b
features=part-00000/nodes/node/feature.npy
start_server one a 0 --scrub 200M
start_server two b 0 --scrub 200M
start_server three intact 1 --scrub 200M
for name in one two three; do
  await_text 'all files read .* damaged_files=0$' "server-$name.txt"
done
damage "a/$features" 3c
await_text "partition no longer served.* partition=0 file=$features" server-one.txt
await_text 'all files read .* damaged_files=1$' server-one.txt
same_batches "one replica has other features"
damage "b/$features" 3c
await_text "partition no longer served.* partition=0 file=$features" server-two.txt
ends_with_all_names "$features"
! grep -q "no longer served" server-three.txt ||
  fail "an intact server complains"
stop_servers
