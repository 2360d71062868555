#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# training_test.sh BIN_DIR WORK_DIR: runs the commands from docs/training.md
# verbatim, and trains on edges through a fleet, with the same losses.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"
ln -s "$root/tests" tests
export PATH="$bin:$PATH"

awk '/^```$/ {show = !show; next} show' "$root/docs/training.md" >commands.txt
for needed in 'task link' distmult shared: hits@ '--resume' '--predict'; do
  grep -q -e "$needed" commands.txt || fail "the page does not show $needed"
done
start_group bash -euo pipefail -c '. ./commands.txt' >output.txt 2>&1
wait "$STARTED" || fail "a command of the page fails: $(tail -n 3 output.txt)"
(($(grep -c '^best epoch' output.txt) == 7)) || fail "not every run has a best"
[[ -s rows.npy ]] || fail "no prediction"

millrace partition links --parts 3 --method random --out parts >>output.txt 2>&1
serve parts 3
for source in "--store links" "--servers $SERVERS"; do
  # shellcheck disable=SC2086
  millrace-train $source --task link --model sage --fanouts 5,5 --hidden 16 \
    --negatives triplet:3 --loss softmax --epochs 1 --log-every 1 \
    --metrics-json steps.json >/dev/null 2>>errors.txt
  grep -o '"loss":[^,]*\|"valid":[^,]*\|"test":[^,]*' steps.json |
    sha256sum
done | sort -u >distinct.txt
(($(wc -l <distinct.txt) == 1)) || fail "a fleet trains otherwise"
