#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# programs_test.sh BIN_DIR WORK_DIR: the contract that all programs keep on
# their command lines: exit statuses, one line of what and one of what to do,
# results on stdout and nothing else there.
set -euo pipefail
bin=$1 work=$2
data=$(cd "$(dirname "$0")/../data" && pwd)
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failures=0

# run STATUS PROGRAM ARG...: leaves out.txt and err.txt.
run() {
  local expected=$1 status=0
  shift
  "$bin/$1" "${@:2}" >out.txt 2>err.txt || status=$?
  last="$*"
  [[ $status == "$expected" ]] || report "status $status instead of $expected"
}

report() {
  failures=$((failures + 1))
  printf 'FAILED: %s: %s\nstdout: %s\nstderr: %s\n' "$last" "$1" \
    "$(head -c 400 out.txt)" "$(head -c 400 err.txt)"
}

stdout_has() { grep -qe "$1" out.txt || report "stdout lacks '$1'"; }
stderr_has() { grep -qe "$1" err.txt || report "stderr lacks '$1'"; }
stdout_is_empty() { [[ ! -s out.txt ]] || report "stdout is not empty"; }
# Two lines that start with the program's name, whatever was logged before.
stderr_is_what_and_what_to_do() {
  [[ $(tail -n 2 err.txt | grep -c "^${last%% *}[^:]*: .") == 2 ]] ||
    report "stderr does not end in what and what to do"
}

for program in "$bin"/millrace "$bin"/millrace-server "$bin"/millrace-train; do
  [[ -x $program ]] || continue
  program=${program##*/}
  run 0 "$program" --help
  stdout_has "--config"
  run 0 "$program" --version
  stdout_has "^$program [0-9]"
  run 2 "$program" --no-such-option
  stdout_is_empty
  stderr_is_what_and_what_to_do
  stderr_has "--no-such-option"
done

run 2 millrace
run 2 millrace no-such-command
for command in 'import ogb' 'import npy' partition split inspect verify sample \
  digest status up bench; do
  # shellcheck disable=SC2086  # two words
  run 0 millrace $command --help
  stdout_has "--help"
done

run 1 millrace import ogb "$work/nothing" --out "$work/cora"
stdout_is_empty
stderr_has "$work/nothing"
stderr_is_what_and_what_to_do
[[ ! -e $work/cora ]] || report "it left an output behind"

run 1 millrace inspect "$work/nothing"
stderr_is_what_and_what_to_do
stderr_has "$work/nothing"
run 1 millrace digest --store "$work/nothing" --fanouts 5
stderr_is_what_and_what_to_do

run 0 millrace import ogb "$data/cora" --split public --out "$work/cora"
run 1 millrace import ogb "$data/cora" --split public --out "$work/cora"
stderr_is_what_and_what_to_do
run 2 millrace partition "$work/cora" --parts many --out "$work/store"
stderr_has "--parts"
run 0 millrace partition "$work/cora" --parts 2 --out "$work/store"
run 0 millrace verify "$work/store"

# Options from the command line, a file and the environment are the same.
run 0 millrace digest --store "$work/store" --fanouts 5,5 --batch-size 50
cp out.txt expected.txt
same() { cmp -s out.txt expected.txt || report "the digest differs"; }
printf 'store = %s\nfanouts = 5,5\n[digest]\nbatch-size = 50\n' \
  "$work/store" >options.toml
run 0 millrace digest --config options.toml
same
MILLRACE_CONFIG=options.toml run 0 millrace digest
same
MILLRACE_STORE=$work/store MILLRACE_FANOUTS=5,5 MILLRACE_BATCH_SIZE=50 \
  MILLRACE_PARTS=many run 0 millrace digest
same
run 2 millrace digest --store "$work/store" --config <(echo 'fanoutz = 5')

# Results that cannot be written are a failure.
last="millrace digest >/dev/full"
if "$bin/millrace" digest --config options.toml >/dev/full 2>err.txt; then
  report "status 0"
fi

((failures == 0))
