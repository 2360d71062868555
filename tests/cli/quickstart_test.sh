#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart_test.sh BIN_DIR WORK_DIR: the quickstart reaches its accuracy, on
# its second run skips what it made in the first, and leaves nothing running,
# even if interrupted.
set -euo pipefail
bin=$1 work=$2
root=$(cd "$(dirname "$0")/../.." && pwd)

expect() {
  local what=$1
  shift
  "$@" || {
    echo "FAILED: $what"
    tail -n 40 "$work"/*.txt
    exit 1
  }
}

# Processes that name the work folder, except this one.
left_running() {
  local file pid
  for file in /proc/[0-9]*/cmdline; do
    pid=${file#/proc/}
    pid=${pid%/*}
    [[ $pid != "$$" ]] || continue
    if { tr "\0" " " <"$file"; } 2>/dev/null | grep -F -- "$work/data" >&2; then
      return 0
    fi
  done
  return 1
}
nothing_runs() { ! left_running; }

# Background programs of a script ignore SIGINT unless told otherwise.
quickstart() {
  exec env --default-signal=INT,TERM \
    "$root/deploy/quickstart.sh" --bin "$bin" --work "$work/data" "$@"
}

rm -rf "$work"
mkdir -p "$work"

(quickstart) >"$work/first.txt" 2>&1 || expect "the first run ends with 0" false
expect "nothing runs after the first run" nothing_runs
accuracy=$(sed -n 's/^test accuracy at best validation: //p' "$work/first.txt")
expect "accuracy '$accuracy' is at least 0.78" \
  awk -v a="$accuracy" 'BEGIN {exit !(a >= 0.78)}'

(quickstart --epochs 1) >"$work/second.txt" 2>&1 ||
  expect "the second run ends with 0" false
imported_nothing() { ! grep -q importing "$work/second.txt"; }
expect "the second run imports nothing" imported_nothing

# interrupt_at LINE SIGNAL STATUS: sends the signal at the first output that
# contains LINE, and expects that exit status.
interrupt_at() {
  local output="$work/interrupted-$2.txt" status=0 until pid
  (quickstart --epochs 100000) >"$output" 2>&1 &
  pid=$!
  until=$((SECONDS + 60))
  while ! grep -q "$1" "$output"; do
    expect "the quickstart reaches '$1'" test "$SECONDS" -lt "$until"
    sleep 0.02
  done
  kill "-$2" "$pid"
  wait "$pid" || status=$?
  expect "status $status after SIG$2 at '$1' is $3" test "$status" = "$3"
  expect "nothing runs after SIG$2 at '$1'" nothing_runs
}
interrupt_at 'starting' INT 130
interrupt_at 'training' TERM 143
interrupt_at 'epoch' INT 130
