#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lost_server_test.sh BIN_DIR WORK_DIR: kill -9 of a server that a client uses.
# If it comes back in time, no batch changes; if it does not, the client fails
# after --partition-wait with an error that names its partition.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

"$bin/millrace" import ogb "$root/tests/data/cora" --split public --out cora
"$bin/millrace" partition cora --parts 2 --method hash --out store
job=(--split test --fanouts 25,10 --batch-size 1)  # 1000 batches
"$bin/millrace" digest --store cora "${job[@]}" >expected.txt

# start_server PARTITION: sets SERVER to its process and PORT to its port.
start_server() {
  rm -f "port-$1"
  start_group "$bin/millrace-server" --store store --partition "$1" \
    --listen 127.0.0.1:0 --peers @fleet.list --port-file "port-$1" \
    2>>"server-$1.txt"
  SERVER=$STARTED
  wait_for_file "port-$1" "$SERVER" || fail "server $1 does not start"
  PORT=$(<"port-$1")
}
touch fleet.list
write_list() {
  printf '127.0.0.1:%s\n' "$@" >fleet.list.new
  mv fleet.list.new fleet.list
}
start_server 0
first=$PORT
start_server 1
lost=$SERVER
write_list "$first" "$PORT"

# kill_server: kills the server of partition 1, as a power cut would.
kill_server() {
  kill -KILL "$lost"
  wait "$lost" || true
  forget_group "$lost"
}

# await_client SECONDS: waits for the client, which must exit within SECONDS,
# and sets its status.
await_client() {
  local until=$((SECONDS + $1))
  while kill -0 "$client" 2>/dev/null; do
    if ((SECONDS >= until)); then
      timeout -k 5 20 "$bin/millrace" status --servers @fleet.list \
        >status.txt 2>&1 || true
      ! command -v gdb >gdb.txt || timeout -k 5 20 gdb -p "$client" -batch \
        -ex 'thread apply all backtrace 10' >stacks.txt 2>&1 || true
      fail "the client still runs after $1 s"
    fi
    sleep 0.05
  done
  wait "$client"
}

# Waits until the client says that it waits for partition 1.
await_warning() {
  local until=$((SECONDS + 30))
  until grep -q 'retrying calls.* partition=1 ' client.txt; do
    kill -0 "$client" 2>/dev/null || fail "the client ended without partition 1"
    ((SECONDS < until)) || fail "the client does not say what it waits for"
    sleep 0.05
  done
}

# The server is lost while the client runs, and is back some seconds later.
start_group "$bin/millrace" digest --servers @fleet.list "${job[@]}" \
  --partition-wait 60s >digest.txt 2>client.txt
client=$STARTED
wait_for_file digest.txt "$client" || fail "no digest is printed"
kill_server
await_warning
start_server 1  # on another port: the list is read again
lost=$SERVER
write_list "$first" "$PORT"
await_client 80 || fail "the client fails though the server came back"
forget_group "$client"
cmp expected.txt digest.txt || fail "the batches changed"

# Now the server is lost for good.
kill_server
start=$SECONDS
status=0
timeout -k 10 60 "$bin/millrace" digest --servers @fleet.list "${job[@]}" \
  --partition-wait 20s >digest.txt 2>client.txt || status=$?
took=$((SECONDS - start))
((status == 1)) || fail "status $status without partition 1"
((took >= 19 && took <= 30)) || fail "the client gave up after $took s, not 20"
grep -q '^millrace digest: .*; gave up on partition 1 after 20s' client.txt ||
  fail "the error does not name the partition"

# A signal ends the wait, even for a single batch.
start_group "$bin/millrace" sample --servers @fleet.list --split test \
  --fanouts 25,10 --batch-size 100 --partition-wait 5m >batch.txt 2>client.txt
client=$STARTED
await_warning
kill -TERM "$client"
status=0
await_client 30 || status=$?
forget_group "$client"
((status == 130)) || fail "status $status of a client that was interrupted"

# Only the file's size shows that its last byte is missing.
start_server 1
truncate -s -1 store/part-00001/nodes/node/feature.npy
client=$SERVER
status=0
await_client 30 || status=$?
forget_group "$SERVER"
((status == 1)) || fail "status $status of a server whose file was cut"
grep -q 'part-00001/nodes/node/feature.npy was truncated' server-1.txt ||
  fail "the server does not name the file that was cut"
