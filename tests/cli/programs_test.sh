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
stderr_has "the commands are import, partition"
run 2 millrace no-such-command
stderr_has "there is no command no-such-command"
stderr_has "the commands are import, partition"
stderr_is_what_and_what_to_do
for command in 'import ogb' 'import npy' 'import tu' 'import triples' \
  'import reddit' \
  'import pyg-partitions' 'import glt-partitions' 'import fake' partition \
  split inspect verify sample digest status up bench; do
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
run 2 millrace partition "$work/cora" --parts 2709 --out "$work/store"
stderr_has "--parts 2709"
stderr_has "2708 nodes"
stderr_is_what_and_what_to_do
run 0 millrace partition "$work/cora" --parts 2 --out "$work/store"
run 0 millrace verify "$work/store"

# Numbers that cannot be, options that are needed, lists that are none, words
# that are not known.
source=(--store "$work/store")
wrong_usage() {
  run 2 "$@"
  stdout_is_empty
  stderr_is_what_and_what_to_do
}
for command in digest sample bench; do
  wrong_usage millrace "$command" "${source[@]}" --fanouts 5 --seed -1
  stderr_has "--seed"
  wrong_usage millrace "$command" "${source[@]}"
  stderr_has "--fanouts 15,10,5"
  wrong_usage millrace "$command" "${source[@]}" --fanouts 5,-2
  wrong_usage millrace "$command" "${source[@]}" --fanouts 5 --batch-size 0
  stderr_has "--batch-size"
  wrong_usage millrace "$command" --servers foo --fanouts 5
  stderr_has '"foo"'
done
run 0 millrace digest "${source[@]}" --fanouts 0 --batches 1
wrong_usage millrace digest "${source[@]}" --fanouts 5 --config "$work/none"
stderr_has "$work/none"
wrong_usage millrace import ogb "$data/cora" --out "$work/x" --self-loops all
stderr_has "all not in {add,keep,remove}"
wrong_usage millrace import ogb "$data/cora" --out "$work/x" \
  --normalize-features all
stderr_has "all not in {none,row,standard}"
wrong_usage millrace import tu "$data/mutag" --out "$work/x" --folds 2
stderr_has "--folds"
wrong_usage millrace import tu "$data/mutag" --out "$work/x" --folds 3 \
  --split-fractions 0.5,0.2,0.3
stderr_has "--split-fractions excludes --folds"
for format in ogb tu triples reddit pyg-partitions glt-partitions; do
  run 1 millrace import $format "$work/nothing" --out "$work/x"
  stderr_is_what_and_what_to_do
  stderr_has "$work/nothing"
  [[ ! -e $work/x ]] || report "it left an output behind"
done
mkdir -p "$work/triples"
printf 'a knows b\nb knows c\n' | tee "$work/triples/"{train,valid}.txt \
  >"$work/triples/test.txt"
wrong_usage millrace import triples "$work/triples" --out "$work/x" \
  --columns h,t
stderr_has "--columns h,t"
wrong_usage millrace import triples "$work/triples" --out "$work/x" \
  --edge-split-by time
stderr_has "--edge-split-fractions"
run 0 millrace import triples "$work/triples" --out "$work/kg" \
  --names-out "$work/names"
grep -qx knows "$work/names/relations.txt" || report "no names"
run 0 millrace verify "$work/kg"
run 1 millrace import triples "$work/triples" --out "$work/x" \
  --names-out "$work/names"
stderr_is_what_and_what_to_do
[[ ! -e $work/x ]] || report "it left an output behind"
wrong_usage millrace import ogb "$data/cora" --out "$work/x" \
  --edge-split-fractions 0.8,0.1,0.1 --edge-split-by time
stderr_has "have no times"
run 0 millrace import ogb "$data/cora" --split public --out "$work/links" \
  --undirected --coalesce --edge-split-fractions 0.8,0.1,0.1
run 0 millrace verify "$work/links"
run 0 millrace import tu "$data/mutag" --out "$work/mutag" --folds 10
run 0 millrace verify "$work/mutag"
run 0 millrace import fake --nodes 20 --avg-degree 2 --features 3 --classes 2 \
  --folds 3 --out "$work/folds"
if [[ -x $bin/millrace-train ]]; then
  wrong_usage millrace-train "${source[@]}" --fanouts 5 --model no-such-model
  stderr_has "no-such-model"
  wrong_usage millrace-train "${source[@]}" --fanouts 5 --workers 2 \
    --batch-size 0
  [[ $(grep -c batch-size err.txt) == 1 ]] || report "it was said twice"
  wrong_usage millrace-train "${source[@]}" --fanouts 5 --workers 0
  stderr_has "0 is no whole number of at least 1"
  wrong_usage millrace-train "${source[@]}" --layers 2
  stderr_has "--fanouts is needed to train"
  wrong_usage millrace-train "${source[@]}" --fanouts 5 --layers -1
  stderr_has "--layers"
  graphs=(millrace-train --store "$work/mutag" --task graph --layers 2)
  wrong_usage "${graphs[@]}" --seeds node
  stderr_has "--task graph learns graphs"
  wrong_usage "${graphs[@]}" --model embedding
  stderr_has "--model embedding is for --task link"
  wrong_usage "${graphs[@]}" --inference full
  stderr_has "--inference full goes"
fi

# Options that another method or kind of split or seeds would not look at.
python=${MILLRACE_PYTHON:-/usr/bin/python3}
"$python" -c "import numpy as np; np.save('$work/ids', np.arange(4))
np.save('$work/timed', np.ones((4, 2), np.int64))
np.save('$work/scalar', np.int64(3))"
wrong_usage millrace digest "${source[@]}" --fanouts 5 \
  --seeds-file "$work/scalar.npy"
stderr_has "holds int64 (); it must be"
for option in '--walks 3' '--walk-length -7' '--restart 0.2' '--metapath a'; do
  # shellcheck disable=SC2086  # two words
  wrong_usage millrace digest "${source[@]}" --fanouts 5 $option
  stderr_has "${option% *} needs --method"
done
wrong_usage millrace digest "${source[@]}" --method walk --walks 2 \
  --walk-length 2 --restart 0.2
stderr_has "--restart needs --method ppr"
run 0 millrace digest "${source[@]}" --method ppr --walks 2 --walk-length 2 \
  --fanouts 3 --batches 1
for option in --times --labels --edge-types --negatives; do
  wrong_usage millrace split "$work/store" --name n --ids "$work/ids.npy" \
    "$option" "$work/ids.npy"
  stderr_has "$option belongs to --pairs"
done
wrong_usage millrace split "$work/store" --name n --type node__to__node
stderr_has "--ids, --all, --pairs"
for option in --seed-ids --seed-times --seed-dst-ids; do
  wrong_usage millrace sample "${source[@]}" --fanouts 2 "$option" ''
done
for option in --seed-times --seed-dst-ids; do
  wrong_usage millrace sample "${source[@]}" --fanouts 2 "$option" 3
  stderr_has "$option belongs to --seed-ids"
done
wrong_usage millrace sample "${source[@]}" --fanouts 2 --seed-ids 7 \
  --seeds-file "$work/ids.npy"
stderr_has "--seed-ids and --seeds-file exclude each other"
# The same mistake has one status, however the seeds are given.
wrong_usage millrace sample "${source[@]}" --fanouts 2 --seed-ids 7 \
  --seed-times 1
stderr_has "not temporal"
wrong_usage millrace digest "${source[@]}" --fanouts 2 \
  --seeds-file "$work/timed.npy"
stderr_has "not temporal"
wrong_usage millrace sample "${source[@]}" --fanouts 2 --seed-ids 7,8 \
  --seed-times 1
wrong_usage millrace digest "${source[@]}" --fanouts 2000000
stderr_has "2000000 is above the limit, 1048576"
# Degrees are those of the graph that the options make.
for loops in keep add; do
  rm -rf "$work/degrees"
  run 0 millrace import tu "$data/mutag" --node-features degree \
    --self-loops $loops --out "$work/degrees" --json
  run 0 millrace inspect "$work/degrees" --json
  cp out.txt "degrees-$loops.txt"
done
cmp -s degrees-keep.txt degrees-add.txt && report "loops do not count"

# What is wrong with the data is no question of usage.
bad_input() {
  run 1 millrace import ogb "$work/bad" --split public --out "$work/x"
  stderr_is_what_and_what_to_do
  stderr_has "$1"
  ! grep -qe --help err.txt || report "it points at --help"
  ! grep -q 'millrace verify' err.txt || report "it points at verify"
  [[ ! -e $work/x ]] || report "it left an output behind"
}
# spoil COMMAND...: a copy of Cora whose edges are what COMMAND makes.
spoil() {
  rm -rf "$work/bad"
  cp -r "$data/cora" "$work/bad"
  chmod -R u+w "$work/bad"
  gzip -dc "$data/cora/raw/edge.csv.gz" | "$@" >"$work/bad/raw/edge.csv.gz"
}
spoil sh -c 'sed "7s/,.*//" | gzip'
bad_input "line 7"
spoil sh -c 'sed "7s/,.*/,2708/" | gzip'
bad_input "line 7: destination 2708 is out of range"
spoil sh -c 'sed "7s/,.*/,nan/" | gzip'
bad_input "line 7: field 2 is \"nan\""
spoil sh -c 'gzip | head -c 9000'
bad_input "truncated"

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
