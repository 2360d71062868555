#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sampling_test.sh BIN_DIR WORK_DIR: runs the commands from docs/sampling.md
# verbatim; every digest on the store equals that of the dataset and of a fleet.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"
ln -s "$root/tests" tests
# The commands need the Python that has numpy.
mkdir tools
ln -s "${MILLRACE_PYTHON:-/usr/bin/python3}" tools/python3
export PATH="$PWD/tools:$bin:$PATH"

awk '/^```$/ {show = !show; next} show' "$root/docs/sampling.md" >commands.txt
for needed in --weighted labor ppr walk induced binary:1 'seeds graph' \
  --edge-features; do
  grep -q -e "$needed" commands.txt || fail "the page does not show $needed"
done
start_group bash -euo pipefail -c '. ./commands.txt' >output.txt 2>&1
wait "$STARTED" || fail "a command of the page fails"
(($(grep -c '^{' output.txt) == 6)) || fail "not every sample is printed"

# The dataset needs the split of the store too.
millrace split graph --type node__to__node --name links --all >>output.txt
serve store 2
# Joins each command into a line, and keeps the digests on the store.
sed -e ':a' -e '/\\$/ {N; s/\\\n *//; ba}' commands.txt |
  grep '^millrace digest --store store' >digests.txt
(($(wc -l <digests.txt) >= 7)) || fail "the page has few digests"
while read -r command; do
  for source in "--store store" "--store graph" "--servers $SERVERS"; do
    eval "${command/--store store/$source} --batches 2" 2>>errors.txt | tail -n 1
  done | sort -u >distinct.txt
  (($(wc -l <distinct.txt) == 1)) || fail "digests differ: $command"
  grep -q '^total ' distinct.txt || fail "no digest: $command"
done <digests.txt
