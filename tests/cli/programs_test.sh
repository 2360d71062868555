#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# programs_test.sh BIN_DIR WORK_DIR: the command-line contract of all programs:
# exit statuses, one line that says what is wrong and one that says what to do,
# and results, and nothing else, on stdout.
set -euo pipefail
bin=$1 work=$2
data=$(cd "$(dirname "$0")/../data" && pwd)
rm -rf "$work"
mkdir -p "$work"
cd "$work"
failures=0

# run STATUS PROGRAM ARG...: runs the program, expects STATUS, and writes
# out.txt and err.txt.
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
help_is_tidy() {
  [[ -z $(awk 'length > 80' out.txt) ]] || report "lines of over 80 columns"
  ! grep -E 'TEXT|BYTES:|\.\.\. \.\.\.' out.txt || report "words of CLI11"
}
# Checks that stderr ends with two lines that start with the program's name,
# whatever was logged before.
stderr_is_what_and_what_to_do() {
  [[ $(tail -n 2 err.txt | grep -c "^${last%% *}[^:]*: .") == 2 ]] ||
    report "stderr does not end in what and what to do"
}

for program in "$bin"/millrace "$bin"/millrace-server "$bin"/millrace-train; do
  [[ -x $program ]] || continue
  program=${program##*/}
  run 0 "$program" --help
  stdout_has "--config"
  help_is_tidy
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
  stdout_has "^Usage: millrace $command "
  stdout_has "^Example:"
  help_is_tidy
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
stderr_has "METIS: [0-9.]* s$"
run 0 millrace verify "$work/store"

# Tests impossible numbers, missing options, lists that are not lists, and
# unknown words.
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
stderr_has '"all" is not one of add, keep, remove$'
wrong_usage millrace import ogb "$data/cora" --out "$work/x" \
  --normalize-features all
stderr_has '"all" is not one of none, row, standard$'
wrong_usage millrace import tu "$data/mutag" --out "$work/x" --folds 2
stderr_has "--folds"
wrong_usage millrace import tu "$data/mutag" --out "$work/x" --folds 3 \
  --split-fractions 0.5,0.2,0.3
stderr_has "--split-fractions and --folds cannot be used together"
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
  stderr_has '"0" is neither a whole number from 1 to 2147483647 nor gpus'
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
  stderr_has "--inference full: goes"
fi

# A type that follows from the data need not be given.
python=${MILLRACE_PYTHON:-/usr/bin/python3}
"$python" -c "import numpy as np
np.save('$work/buys', np.array([np.arange(60) % 20, np.arange(60) % 30]))
np.save('$work/user', np.ones((20, 3), np.float32))
np.save('$work/item', np.ones((30, 2), np.float32))
np.save('$work/label', np.arange(30) % 4)
np.save('$work/seeds', np.arange(10))"
shop=(millrace import npy --edges "user__buys__item=$work/buys.npy"
  --features "user=$work/user.npy" --features "item=$work/item.npy"
  --labels "item=$work/label.npy" --undirected --add-reverse)
run 0 "${shop[@]}" --train "$work/seeds.npy" --out "$work/shop"
stderr_has "seeds.npy are of type item, the only one with labels"
run 0 "${shop[@]}" --train "item=$work/seeds.npy" --out "$work/named"
digest=(--fanouts 3,2 --batch-size 4)
run 0 millrace digest --store "$work/named" --type item "${digest[@]}"
! grep -q "of --type" err.txt || report "what was said is said again"
cp out.txt expected.txt
run 0 millrace digest --store "$work/shop" "${digest[@]}"
stderr_has "seeds are of --type item, which alone has a split train"
cmp -s out.txt expected.txt || report "another type"
run 0 millrace bench --store "$work/shop" "${digest[@]}" --batches 1
run 0 millrace sample --store "$work/shop" "${digest[@]}"
wrong_usage millrace sample --store "$work/shop" "${digest[@]}" --seed-ids 3
stderr_has "--type is needed"
run 0 millrace split "$work/shop" --name train --type user \
  --ids "$work/seeds.npy"
wrong_usage millrace digest --store "$work/shop" "${digest[@]}"
stderr_has "--type is needed"
for type in user__buys__item item__rev_buys__user; do
  run 0 millrace split "$work/shop" --name pairs --type $type --all
  status=0
  [[ $type == user* ]] || status=2
  run $status millrace digest --store "$work/shop" "${digest[@]}" \
    --seeds edge --split pairs
done
if [[ -x $bin/millrace-train ]]; then
  run 0 millrace-train --store "$work/named" "${digest[@]}" --hidden 4 \
    --epochs 1 --workers 2
  [[ $(grep -c "of --type item" err.txt) == 1 ]] || report "not said once"
fi

# Tests options that another method, or another kind of split or seeds, would
# ignore.
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
  stderr_has "$option needs --pairs"
done
wrong_usage millrace split "$work/store" --name n --type node__to__node
stderr_has "--ids, --all, --pairs"
for option in --seed-ids --seed-times --seed-dst-ids; do
  wrong_usage millrace sample "${source[@]}" --fanouts 2 "$option" ''
done
for option in --seed-times --seed-dst-ids; do
  wrong_usage millrace sample "${source[@]}" --fanouts 2 "$option" 3
  stderr_has "$option needs --seed-ids"
done
wrong_usage millrace sample "${source[@]}" --fanouts 2 --seed-ids 7 \
  --seeds-file "$work/ids.npy"
stderr_has "--seed-ids and --seeds-file cannot be used together"
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
stderr_has "2000000 is out of range: 0 to 1048576"
# Degrees are those of the graph after the import's options.
for loops in keep add; do
  rm -rf "$work/degrees"
  run 0 millrace import tu "$data/mutag" --node-features degree \
    --self-loops $loops --out "$work/degrees" --json
  run 0 millrace inspect "$work/degrees" --json
  cp out.txt "degrees-$loops.txt"
done
cmp -s degrees-keep.txt degrees-add.txt && report "loops do not count"

# A fault in the data is not wrong usage.
bad_input() {
  run 1 millrace import ogb "$work/bad" --split public --out "$work/x"
  stderr_is_what_and_what_to_do
  stderr_has "$1"
  ! grep -qe --help err.txt || report "it points at --help"
  ! grep -q 'millrace verify' err.txt || report "it points at verify"
  [[ ! -e $work/x ]] || report "it left an output behind"
}
# spoil COMMAND...: copies Cora with its edges replaced by the output of
# COMMAND.
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

# Options mean the same on the command line, in a file and in the environment.
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
# The file that docs/command-line.md shows, and its list in the other forms that
# the page names.
sed -n '/^# cora.toml/,/^```/p' "$data/../../docs/command-line.md" |
  sed '/^```/d' >cora.toml
ln -s store cora-2
run 0 millrace digest --store cora-2 --fanouts 25,10 --batch-size 16 \
  --drop-last --epoch 3
cp out.txt expected.txt
grep -q '^fanouts = 25,10 .*\[25, 10\] is the same' cora.toml ||
  report "the page shows other lists"
for list in 25,10 '[25, 10]' '25, 10' '"25, 10"' '[ 25 ,10 ]'; do
  sed "s/^fanouts = 25,10/fanouts = $list/" cora.toml >listed.toml
  run 0 millrace digest --config listed.toml
  same
done
run 0 millrace digest --config cora.toml --fanouts '25, 10'
same
MILLRACE_FANOUTS=' 25 ,10 ' run 0 millrace digest --store cora-2 \
  --batch-size 16 --drop-last --epoch 3
same
run 0 millrace partition "$work/cora" --parts 2 --out "$work/documented" \
  --config cora.toml
run 0 millrace inspect "$work/documented"
stdout_has "^partitioning ldg"
# The same forms work for every option that takes a list.
walk=(--method walk --walks 2 --walk-length 2 --batches 1 --metapath)
relation=node__to__node
run 0 millrace digest "${source[@]}" "${walk[@]}" $relation,$relation
cp out.txt expected.txt
run 0 millrace digest "${source[@]}" "${walk[@]}" "$relation , $relation"
same
run 0 millrace sample "${source[@]}" --fanouts 2 --seed-ids 7,2
cp out.txt expected.txt
run 0 millrace sample "${source[@]}" --fanouts "$relation = 2 " --seed-ids '7 , 2'
same
for option in --split-fractions --edge-split-fractions; do
  run 0 millrace import ogb "$data/cora" --out "$work/tight${option#-}" \
    "$option" 0.8,0.1,0.1
  run 0 millrace import ogb "$data/cora" --out "$work/loose${option#-}" \
    "$option" '0.8 , 0.1, 0.1 '
  diff -r -x store.json "$work/tight${option#-}" "$work/loose${option#-}" \
    >out.txt || report "$option: the datasets differ"
done
run 0 millrace import triples "$work/triples" --columns 'h, r ,t' \
  --out "$work/columns"
if [[ -x $bin/millrace-train ]]; then
  run 0 millrace-train "${source[@]}" --fanouts '5, 5' --eval-fanouts ' 5 ,5' \
    --inference sampled --hidden 4 --epochs 1
  wrong_usage millrace-train "${source[@]}" --fanouts 5 --eval-fanouts 5,x
  stderr_has '--eval-fanouts "5,x": "x" is not a number of at least -1'
fi
echo 'fanoutz = 5' >misspelt.toml
wrong_usage millrace digest --store "$work/store" --config misspelt.toml
stderr_has "no option --fanoutz; did you mean fanouts?"
# A program would wait for a pipe, so it is refused.
mkfifo fifo.toml
wrong_usage millrace digest --store "$work/store" --config fifo.toml
stderr_has "fifo.toml is not a regular file"

# An error about a value from elsewhere says where the value comes from; options
# with one name and two meanings have two variables.
MILLRACE_FANOUTS=many run 2 millrace digest "${source[@]}"
stderr_has "(MILLRACE_FANOUTS=many in the environment)"
MILLRACE_UP_SERVERS=many run 2 millrace up "$work/store"
stderr_has "(MILLRACE_UP_SERVERS=many in the environment)"
MILLRACE_METHOD=labor MILLRACE_LABELS=all MILLRACE_SEEDS=node run 0 \
  millrace partition "$work/cora" --parts 2 --out "$work/other"
! grep -q MILLRACE err.txt || report "a variable of others is complained about"

# Each program knows its own variables, and does not mistake another program's
# variables for misspelt ones of its own.
programs=(millrace millrace-server)
[[ ! -x $bin/millrace-train ]] || programs+=(millrace-train)
commands() { "$bin/millrace" __complete "$@" '' | cut -f 1; }
# variables PREFIX WHICH PROGRAM ARG...: lists the variables of the options in
# the section "Options" of --help, or in the other sections.
variables() {
  "$bin/$3" "${@:4}" --help | awk -v prefix="MILLRACE_$1" -v own="$2" '
    /^[A-Z].*:$/ {section = $1}
    section != "General:" && (section == "Options:") == own && /^  --/ {
      sub(/^--/, "", $1); sub(/,$/, "", $1); gsub(/-/, "_", $1)
      print prefix toupper($1)
    }'
}
{
  for program in "${programs[@]:1}"; do
    variables '' 0 "$program"
    variables '' 1 "$program"
  done
  variables '' 0 millrace digest
  for command in $(commands); do
    path=("$command")
    [[ $command != import ]] || mapfile -t path < <(commands import)
    for sub in "${path[@]}"; do
      words=("$command")
      [[ $sub == "$command" ]] || words+=("$sub")
      prefix=$(tr 'a-z -' 'A-Z__' <<<"${words[*]} ")
      variables "$prefix" 1 millrace "${words[@]}"
    done
  done
  printf 'MILLRACE_%s\n' DATA JOBS SSH PYTHON TORCH_PYTHON GRPC_PYTHON
} | sort -u >variables.txt
for variable in STORE LISTEN UP_SERVERS PARTITION_METHOD IMPORT_NPY_LABELS; do
  grep -qx "MILLRACE_$variable" variables.txt || report "no MILLRACE_$variable"
done
for program in "${programs[@]}" "millrace digest" "millrace up"; do
  # A mistake ends the program before it does anything.
  mapfile -t all < <(sed 's/$/=/' variables.txt)
  # shellcheck disable=SC2086  # a program and its command
  env "${all[@]}" "$bin"/$program --no-such-option >out.txt 2>err.txt || true
  last="$program with all variables"
  ! grep 'is not read' err.txt || report "a variable is taken for misspelt"
done
MILLRACE_BATCHSIZE=7 run 0 millrace digest "${source[@]}" --fanouts 5
stderr_has "did you mean MILLRACE_BATCH_SIZE? variable=MILLRACE_BATCHSIZE$"
MILLRACE_BATCHSIZE=7 run 0 millrace inspect "$work/store"
! grep -q MILLRACE err.txt || report "it speaks of what it has no use for"

# Tests misspelt words.
wrong_usage millrace improt
stderr_has "no command improt; did you mean import?"
wrong_usage millrace import npy --edge e.npy --out "$work/x"
stderr_has "no option --edge; did you mean --edges?"
wrong_usage millrace partition "$work/cora" --parts 2 --out x --method metsi
stderr_has "did you mean metis?"

# help COMMAND is COMMAND --help.
run 0 millrace import ogb --help
cp out.txt expected.txt
run 0 millrace help import ogb
cmp -s out.txt expected.txt || report "help differs from --help"
run 0 millrace help
stdout_has "^Commands:"
wrong_usage millrace help nosuch
stderr_has "no command nosuch"
wrong_usage millrace help import obg
stderr_has "no command obg; did you mean ogb?"
wrong_usage millrace help import ogb more
stderr_has "no command more"
wrong_usage millrace help --nosuch
wrong_usage millrace completion
wrong_usage millrace completion nosuch
stderr_has '"nosuch" is not one of bash, zsh, fish'
wrong_usage millrace completion bash more

# Failing to write results is an error, for help too.
full() {
  last="$* >/dev/full"
  local status=0
  "$bin/$1" "${@:2}" >/dev/full 2>err.txt || status=$?
  [[ $status == 1 ]] || report "status $status instead of 1"
  stderr_has "cannot write the results"
}
: >out.txt
full millrace digest --config options.toml
full millrace inspect "$work/store"
full millrace completion bash
full millrace up "$work/store"
for program in "${programs[@]}"; do full "$program" --help; done
if [[ -x $bin/millrace-train ]]; then
  train=("${source[@]}" --fanouts 5 --hidden 4 --epochs 1 --batch-size 70)
  full millrace-train "${train[@]}"
  full millrace-train "${train[@]}" --workers 2
  for option in --metrics-json --consumed-log; do
    run 1 millrace-train "${train[@]}" "$option" /dev/full
    stderr_has "/dev/full.*No space left"
  done
  # The file is replaced, whatever it was before.
  mkfifo pipe
  wrong_usage millrace-train "${train[@]}" --predict pipe
  stderr_has "pipe is not a regular file"
  [[ -p pipe ]] || report "the pipe is gone"
fi

((failures == 0))
