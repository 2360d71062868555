#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh checkout to a trained model: sets up, builds, imports the
# citation graph Cora, divides it into two partitions, starts two sampler
# servers on loopback and trains GraphSAGE with two trainer processes. Stops
# everything at the end, or at Ctrl-C. A second run takes seconds.
#
# Usage: deploy/quickstart.sh [OPTION]...
#   --seed N      seed of the model and of the batches (default 1)
#   --epochs N    number of epochs to train (default 15)
#   --work DIR    folder for data, logs and checkpoints (default
#                 build/quickstart)
#   --bin DIR     use the programs in DIR instead of setting up and building
#   --help        print this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/deploy/processes.sh"

seed=1 epochs=15 work=$ROOT/build/quickstart bin=''
while (($# > 0)); do
  case $1 in
    --seed | --epochs | --work | --bin)
      (($# > 1)) || usage_error "$1 needs a value"
      case $1 in
        --seed) seed=$2 ;;
        --epochs) epochs=$2 ;;
        --work) work=$2 ;;
        --bin) bin=$2 ;;
      esac
      shift
      ;;
    --help) print_help; exit 0 ;;
    *) usage_error "unknown option $1" ;;
  esac
  shift
done
[[ $seed =~ ^[0-9]+$ ]] || usage_error "--seed must be a number, not '$seed'"
[[ $epochs =~ ^[1-9][0-9]*$ ]] ||
  usage_error "--epochs must be a positive number, not '$epochs'"

PARTITIONS=2
dataset=$work/cora store=$work/cora-$PARTITIONS-parts
servers=''

set_up() {
  if ((EUID != 0)) && [[ -t 0 ]]; then
    # in the foreground, since sudo may ask for a password
    "$ROOT/deploy/setup.sh"
  else
    run_step "$ROOT/deploy/setup.sh"
  fi
  say "building (the first time takes minutes; log: build/logs/)"
  BUILD_TARGETS='millrace millrace-server millrace-train' \
    run_step bash -c '. "$1" && build_preset release' "$0" "$ROOT/deploy/lib.sh"
  bin=$ROOT/build/release/bin
}

# up_to_date FOLDER: succeeds if the store in FOLDER is complete and newer than
# the program that writes it.
up_to_date() {
  [[ $1/store.json -nt $bin/millrace ]]
}

make_store() {
  if ! up_to_date "$dataset"; then
    rm -rf "$dataset" "$store"
    say "importing Cora"
    run_step "$bin/millrace" import ogb "$ROOT/tests/data/cora" \
      --split public --normalize-features row --out "$dataset"
  fi
  if ! up_to_date "$store"; then
    rm -rf "$store"
    say "partitioning into $PARTITIONS"
    run_step "$bin/millrace" partition "$dataset" --parts "$PARTITIONS" \
      --method metis --out "$store"
  fi
}

start_servers() {
  local partition port pids=()
  say "starting $PARTITIONS servers"
  : >"$work/peers"  # the servers read it repeatedly
  for ((partition = 0; partition < PARTITIONS; ++partition)); do
    rm -f "$work/port-$partition"
    start_group "$bin/millrace-server" --store "$store" \
      --partition "$partition" --listen 127.0.0.1:0 \
      --port-file "$work/port-$partition" --peers "@$work/peers" \
      2>"$work/logs/server-$partition.log"
    pids+=("$STARTED")
  done
  for ((partition = 0; partition < PARTITIONS; ++partition)); do
    wait_for_file "$work/port-$partition" "${pids[partition]}" ||
      fail "the server of partition $partition did not start" \
        "see $work/logs/server-$partition.log"
    port=$(<"$work/port-$partition")
    servers+=${servers:+,}127.0.0.1:$port
  done
  echo "$servers" >"$work/peers"
}

train() {
  say "training on $servers"
  rm -rf "$work/checkpoint" "$work/metrics.jsonl"
  run_step "$bin/millrace-train" --servers "$servers" --workers 2 \
    --model sage --hidden 256 --layers 2 --fanouts 25,10 --batch-size 16 \
    --lr 0.01 --weight-decay 5e-4 --dropout 0.5 --epochs "$epochs" \
    --seed "$seed" --model-seed "$seed" --inference full \
    --checkpoint "$work/checkpoint" --metrics-json "$work/metrics.jsonl"
}

report() {
  local accuracy
  accuracy=$(sed -n '$ s/.*"test": *\([0-9.eE+-]*\).*/\1/p' \
    "$work/metrics.jsonl")
  [[ -n $accuracy ]] ||
    fail "there is no test accuracy in $work/metrics.jsonl" \
      "see what millrace-train printed above"
  cat <<END

dataset     $dataset
store       $store
checkpoint  $work/checkpoint
metrics     $work/metrics.jsonl
logs        $work/logs
test accuracy at best validation: $accuracy
END
}

stop_groups_at_exit
mkdir -p "$work/logs"
if [[ -z $bin ]]; then set_up; fi
make_store
start_servers
train
stop_groups
report
