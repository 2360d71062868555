#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# up_test.sh BIN_DIR WORK_DIR: `millrace up` and `millrace status`.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

"$bin/millrace" import ogb "$root/tests/data/cora" --split public --out cora
"$bin/millrace" partition cora --parts 3 --method hash --out store

# up_and_status SERVERS PARTITIONS...: PARTITIONS are what each server must
# serve.
up_and_status() {
  local servers=$1 group list ratio expected=("${@:2}") actual
  rm -f list.txt
  # The LIST of other commands does not set the number of servers.
  start_group env MILLRACE_SERVERS=127.0.0.1:1 \
    "$bin/millrace" up store --servers "$servers" >list.txt 2>up.txt
  group=$STARTED
  wait_for_file list.txt "$group" || fail "up prints no LIST"
  list=$(<list.txt)
  "$bin/millrace" status --servers "$list" --json >status.txt ||
    fail "status of a whole fleet"
  actual=$(grep -o '"partitions":\[[0-9,]*\]' status.txt | grep -o '\[.*\]' |
    tr '\n' ' ')
  [[ $actual == "${expected[*]} " ]] ||
    fail "servers serve $actual instead of ${expected[*]}"
  "$bin/millrace" digest --store cora --fanouts 5,5 >dataset.txt
  for ratio in 0 0.3; do
    "$bin/millrace" digest --servers "$list" --fanouts 5,5 \
      --cache-ratio "$ratio" >fleet.txt
    cmp fleet.txt dataset.txt || fail "the fleet's batches differ"
  done

  ! grep -q warning up.txt || fail "up warns"
  kill -INT "$group"
  wait "$group" || fail "up does not end with 0"
  ! group_runs "$group" || fail "up left something running"
  forget_group "$group"
  if "$bin/millrace" status --servers "$list" --timeout 2 >status.txt \
    2>error.txt; then
    fail "status of a stopped fleet"
  fi
  # The reasons are in the table and are not repeated.
  (($(grep -c ' unreachable ' status.txt) == servers)) || fail "no reasons"
  [[ -z $(awk 'length > 100' error.txt) ]] || fail "a long line of errors"
}
export TMPDIR=$PWD/tmp
mkdir tmp
up_and_status 1 '[0,1,2]'
up_and_status 2 '[0]' '[1,2]'
up_and_status 4 '[0]' '[1]' '[2]' '[0]'

# If a server dies, the fleet ends with an error, and no server is left.
start_group "$bin/millrace" up store >list.txt 2>up.txt
group=$STARTED
wait_for_file list.txt "$group" || fail "up prints no LIST"
read -r server _ <"/proc/$group/task/$group/children" || true
kill -KILL "$server"
status=0
wait "$group" || status=$?
[[ $status == 1 ]] || fail "status $status after the death of a server"
grep -q 'partitions 0 was killed by signal 9' up.txt || fail "no reason given"
forget_group "$group"

# With a LIST file, commands may be started before the list exists; when the
# terminal is closed, nothing is left.
start_group "$bin/millrace" up store --servers 2 >list.txt 2>up.txt
group=$STARTED
"$bin/millrace" status --servers @list.txt --wait 60s >status.txt 2>error.txt ||
  fail "no status for a fleet that is starting"
(($(grep -c ' ready ' status.txt) == 2)) || fail "not both are ready"
[[ ! -s error.txt ]] || fail "status complains"
kill -HUP "$group"
wait "$group" || fail "up does not end with 0"
forget_group "$group"
[[ -z $(ls tmp) ]] || fail "up left $(ls tmp)"

# The servers have no room for what they write.
mkdir full
if mount -t tmpfs -o size=8k tmpfs full 2>mount.txt; then
  trap 'umount full; stop_groups' EXIT
  head -c 8192 /dev/zero >full/fill 2>/dev/null || true
  status=0
  TMPDIR=$PWD/full "$bin/millrace" up store >list.txt 2>up.txt || status=$?
  [[ $status == 1 ]] || fail "status $status with a full TMPDIR"
  grep -q "full/.*: No space left on device" up.txt || fail "no reason given"
else
  echo "skipped: full TMPDIR: $(head -n 1 mount.txt)"
fi

# Servers die with `millrace up`, however it ends.
start_group "$bin/millrace" up store >list.txt 2>up.txt
group=$STARTED
wait_for_file list.txt "$group" || fail "up prints no LIST"
read -ra children <"/proc/$group/task/$group/children" || true
kill -KILL "$group"
wait "$group" || true
until=$((SECONDS + 20))
for child in "${children[@]}"; do
  while kill -0 "$child" 2>/dev/null; do
    ((SECONDS < until)) || fail "server $child outlives millrace up"
    sleep 0.05
  done
done

# Checks a server's replica number, next to larger ones.
for partitions in 0,1 0 1,2; do
  start_group "$bin/millrace-server" --store store --partition "$partitions" \
    --listen 127.0.0.1:0 --port-file "port-$partitions" 2>server.txt
  wait_for_file "port-$partitions" "$STARTED" || fail "no server"
done
"$bin/millrace" status --wait 60s \
  --servers "127.0.0.1:$(<port-0,1),127.0.0.1:$(<port-0),127.0.0.1:$(<port-1,2)" \
  >status.txt || fail "status of servers that share partitions"
awk '$2 == "ready" && $3 ~ /^[0-9]/' status.txt >rows.txt  # remarks follow these
[[ $(awk '{print $3, $4}' rows.txt | xargs) == "0,1 0 0 1 1,2 1" ]] ||
  fail "wrong replicas"
[[ -z $(awk '$(NF - 1) !~ /s$/' rows.txt) ]] || fail "no unit of time"
