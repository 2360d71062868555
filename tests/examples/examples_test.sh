#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples_test.sh BIN_DIR WORK_DIR: shortened versions of docs/examples end as
# their pages say and leave nothing behind; launch.sh always stops all of its
# parts.
set -euo pipefail
. "$(dirname "$0")/../cli/script_test.sh"
bin=$(cd "$bin" && pwd)
examples=$root/docs/examples
mkdir tmp
export TMPDIR=$PWD/tmp MILLRACE_LOG_LEVEL=warning

# running TEXT: ids of the processes, except this one, whose command line
# contains WORK_DIR and then TEXT.
running() {
  local file pid
  for file in /proc/[0-9]*/cmdline; do
    pid=${file#/proc/}
    pid=${pid%/*}
    [[ $pid != "$$" ]] || continue
    if { tr '\0' ' ' <"$file"; } 2>/dev/null | grep -q -- "$PWD/.*$1"; then
      echo "$pid"
    fi
  done
}
nothing_runs() {
  local left
  left=$(running '')
  [[ -z $left ]] || fail "still running: $left"
}

# example NAME [OPTION]...: runs it; its files are in NAME, its output in
# NAME.txt.
example() {
  local name=$1
  shift
  run_step "$examples/$name/run.sh" --quick --bin "$bin" --work "$name" "$@" \
    >"$name.txt" 2>&1 || fail "$name ends with status $?"
  nothing_runs
}

# learned FILE EPOCHS ACCURACY: a line for each epoch, and one with a test
# accuracy at best validation of at least ACCURACY.
learned() {
  local file=$1 lines accuracy
  lines=$(grep -c '"loss":[0-9]' "$file") || true
  [[ $lines == "$2" ]] || fail "$file has $lines epochs instead of $2"
  accuracy=$(sed -n '$ s/.*"test":\([0-9.]*\).*"best_epoch".*/\1/p' "$file")
  awk -v a="$accuracy" -v b="$3" 'BEGIN {exit !(a >= b)}' ||
    fail "$file: accuracy '$accuracy' instead of $3 or more"
}

# By chance, 1 in 10 predictions would be right, or 1 in 3 (heterogeneous).
example 000_multi_process
learned 000_multi_process/metrics.jsonl 5 0.3

example 001_graph_classification
grep -qx "the fleet's batches are the same" 001_graph_classification.txt ||
  fail "the batches of the fleet were not compared"
[[ $(grep -c '^0 [0-4] ' 001_graph_classification/store.txt) == 5 ]] ||
  fail "150 graphs are not 5 batches"
[[ $(grep -c '^total' 001_graph_classification.txt) == 2 &&
  $(grep '^total' 001_graph_classification.txt | sort -u | wc -l) == 2 ]] ||
  fail "two epochs have the same order"
for batch in 0 1; do
  grep -o '"graphs":\[[0-9,]*\]' "001_graph_classification/batch-$batch.json"
done | grep -o '[0-9]*' | sort >graphs.txt
[[ $(wc -l <graphs.txt) == 64 && $(sort -u graphs.txt | wc -l) == 64 ]] ||
  fail "the trainers do not share the graphs"

grep -q '^loss of the first batch: 5[.]692' 001_graph_classification.txt ||
  fail "the tutorial's first loss differs"
learned 001_graph_classification/metrics.jsonl 10 0.6

example 002_multi_node
learned 002_multi_node/metrics.jsonl 2 0.8

example 003_worker_and_server_client
learned 003_worker_and_server_client/worker.jsonl 5 0.8
learned 003_worker_and_server_client/client.jsonl 5 0.8
cmp 003_worker_and_server_client/{worker,client}.digest
[[ $(wc -l <003_worker_and_server_client/worker.digest) == 6 ]] ||
  fail "2400 seeds are not 5 batches and a total"

example 004_two_partitions
learned 004_two_partitions/homogeneous.jsonl 4 0.8
learned 004_two_partitions/heterogeneous.jsonl 4 0.5

# On GPUs, or where there are none on the CPU.
for name in 002_multi_node 003_worker_and_server_client; do
  mv "$name" "$name-cpu"
  example "$name" --device auto
  for file in "$name"/*.jsonl; do
    [[ $(wc -l <"$file") == $(wc -l <"$name-cpu/${file##*/}") ]] ||
      fail "$file has fewer lines than on the CPU"
  done
done
status=0
"$examples/000_multi_process/run.sh" --quick --bin "$bin" --device tpu \
  2>usage.txt || status=$?
[[ $status == 2 ]] || fail "status $status of an unknown device"

# Wrong usage is reported before anything starts; temporary folders are removed.
for script in "$examples"/*/{run,launch}.sh; do
  [[ -e $script ]] || continue
  "$script" --help | grep -q -- '--bin DIR' || fail "$script has no --help"
  status=0
  "$script" --no-such-option 2>usage.txt || status=$?
  [[ $status == 2 ]] || fail "$script: status $status of wrong usage"
done
"$examples/001_graph_classification/run.sh" --bin "$bin" >temporary.txt 2>&1
[[ -z $(ls -A tmp) ]] || fail "a temporary folder is left"

# Other hosts are reached by ssh, which runs a shell command line.
cat >ssh <<'END'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do
  [[ $1 != -o ]] || shift
  shift
done
echo "$1" >>"$(dirname "$0")/asked"
exec bash -c "$2"
END
chmod +x ssh
export MILLRACE_SSH=$PWD/ssh
printf '# two\nlocalhost\n\n127.0.0.2 %s' $((20000 + RANDOM % 12000)) >hosts
launch() {
  exec env --default-signal=INT "$examples/004_two_partitions/launch.sh" \
    --hosts hosts --store 004_two_partitions/homogeneous-2 --bin "$bin" -- \
    --fanouts 3,3 --hidden 8 "$@"
}
(launch --epochs 1) >launch.txt 2>&1 || fail "launch.sh ends with status $?"
grep -q '^best epoch' launch.txt || fail "rank 0 is not shown"
[[ $(<asked) == $'127.0.0.2\n127.0.0.2' ]] || fail "ssh was not asked twice"
nothing_runs

status=0
(launch --epochs 1 --lr high) >refused.txt 2>&1 || status=$?
[[ $status == 1 ]] || fail "status $status where trainers fail"
grep -q '^launch.sh: rank-[01] ended with status 2' refused.txt ||
  fail "it does not say which part failed"
nothing_runs

# interrupted SIGNAL STATUS: sends the signal while launch.sh trains, and
# expects that exit status.
interrupted() {
  local launcher until=$((SECONDS + 60)) status=0
  (launch --epochs 100000) >interrupted.txt 2>&1 &
  launcher=$!
  until grep -q '^epoch 1 ' interrupted.txt; do
    kill -0 "$launcher" || fail "it does not train"
    ((SECONDS < until)) || fail "it does not train within a minute"
    sleep 0.05
  done
  kill "-$1" "$launcher"
  wait "$launcher" || status=$?
  [[ $status == "$2" ]] || fail "status $status after SIG$1"
  nothing_runs
}
interrupted INT 130
interrupted TERM 143

# If a server dies, the training ends.
(launch --epochs 100000) >killed.txt 2>&1 &
launcher=$!
until grep -q '^epoch 1 ' killed.txt; do
  kill -0 "$launcher" || fail "it does not train"
  sleep 0.05
done
server=$(running '--partition 1 ')
# The last match; the one before it is the ssh that started it.
kill -KILL "${server##*$'\n'}"
status=0
wait "$launcher" || status=$?
[[ $status == 1 ]] || fail "status $status after the death of a server"
grep -q 'launch.sh: server-1 ended with status 137' killed.txt ||
  fail "it does not say which server died"
nothing_runs
[[ -z $(ls -A tmp) ]] || fail "a temporary folder is left"
