#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# partial_copy_test.sh BIN_DIR WORK_DIR: each of two hosts has a copy of its own
# partition only: store.json, splits/ and part-0000P/ (docs/format.md, section
# 4). They serve the same batches, and programs say what is not here.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

"$bin/millrace" import ogb "$root/tests/data/cora" --split public --out cora
"$bin/millrace" partition cora --parts 2 --method hash --out store
job=(--split test --fanouts 10,5 --batch-size 64)
"$bin/millrace" digest --store cora "${job[@]}" >expected.txt

for part in 0 1; do
  mkdir -p "host-$part/store"
  cp -r store/store.json store/splits "store/part-0000$part" "host-$part/store"
done
rm -r store

# serve_copy HOST PARTITIONS: fails with its words in error.txt, or sets PORT.
serve_copy() {
  rm -f port
  start_group "$bin/millrace-server" --store "$1/store" --partition "$2" \
    --listen 127.0.0.1:0 --peers @fleet.list --port-file port --verify-on-start \
    2>error.txt
  if wait_for_file port "$STARTED"; then
    PORT=$(<port)
  else
    wait "$STARTED" || true
    forget_group "$STARTED"
    return 1
  fi
}
touch fleet.list
if serve_copy host-0 1; then fail "a partition that is not here is served"; fi
grep -q "partition 1 of host-0/store is not on this host: it has 0$" error.txt ||
  fail "the server does not say what is missing: $(<error.txt)"
if grep -q damaged error.txt; then fail "a copy of a part is called damaged"; fi
if serve_copy host-1 all; then fail "all partitions are served, but one is here"; fi
grep -q "partition 0 of host-1/store is not on this host: it has 1$" error.txt ||
  fail "the server does not say what is missing: $(<error.txt)"

for part in 0 1; do
  serve_copy "host-$part" "$part" || fail "server $part: $(<error.txt)"
  echo "127.0.0.1:$PORT" >>fleet.list
  "$bin/millrace" verify "host-$part/store" --partition "$part"
  "$bin/millrace" inspect "host-$part/store" >inspect.txt ||
    fail "inspect of a part"
  grep -q "^  $part: $((1364 - 20 * part)) nodes" inspect.txt || fail "inspect: $(<inspect.txt)"
done
timeout -k 5 60 "$bin/millrace" digest --servers @fleet.list "${job[@]}" \
  >digest.txt || fail "digest from parts"
cmp expected.txt digest.txt || fail "the batches differ"
if [[ -x $bin/millrace-train ]]; then
  timeout -k 5 120 "$bin/millrace-train" --servers @fleet.list --fanouts 10,5 \
    --batch-size 64 --epochs 1 --hidden 8 || fail "training from parts"
fi

# Each of these files is needed: without it the server does not start.
while read -r file; do
  mv "host-1/store/$file" kept
  if serve_copy host-1 1; then fail "a server runs without $file"; fi
  mv kept "host-1/store/$file"
done < <(cd host-1/store && find . -type f)
