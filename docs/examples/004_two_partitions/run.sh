#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Distributed training over two partitions, of a homogeneous and of a
# heterogeneous graph, started by launch.sh from a list of hosts.
#
# Usage: docs/examples/004_two_partitions/run.sh [OPTION]...
#   --hosts FILE     list of hosts, see launch.sh (default: this one, twice)
#   --trainers N     trainers on each host (default 1)
#   --nodes N        nodes of the homogeneous graph (default 20000)
#   --papers N       papers of the heterogeneous graph (default 4000)
#   --epochs N       epochs (default 10)
#   --quick          2,000 nodes, 1,000 papers, 4 epochs, a smaller model
#   --bin DIR        where the programs are (default build/release/bin)
#   --work DIR       keep what is written here (default: a temporary folder)
#   --help           this text
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lib.sh"

hosts='' trainers=1 nodes=20000 papers=4000 epochs=10
hidden=256 batch_size=1024 lr=0.0004
quick() {
  nodes=2000 papers=1000 epochs=4 hidden=32 batch_size=128 lr=0.004
}
start_example 'hosts trainers nodes papers epochs' "$@"
if [[ -n $hosts ]]; then
  hosts=$(absolute "$hosts")
else
  hosts=$WORK/hosts
  printf 'localhost\nlocalhost\n' >"$hosts"
fi

# train GRAPH OPTION...: divides it in two and starts its training.
train() {
  local graph=$1
  shift
  run millrace partition "$graph" --parts 2 --out "$graph-2"
  run "$here/launch.sh" --hosts "$hosts" --store "$WORK/$graph-2" \
    --trainers "$trainers" --bin "$(dirname "$(command -v millrace)")" \
    --work "$WORK/logs-$graph" -- --batch-size "$batch_size" \
    --hidden "$hidden" --lr "$lr" --epochs "$epochs" --inference sampled \
    --metrics-json "$WORK/$graph.jsonl" "$@"
}

run millrace import fake --nodes "$nodes" --avg-degree 10 --features 100 \
  --classes 10 --undirected --out homogeneous
train homogeneous --model sage --fanouts 15,10,5

make_with_python "$here/make_acm.py" raw --papers "$papers"
run millrace import npy --edges author__writes__paper=raw/writes.npy \
  --edges subject__covers__paper=raw/covers.npy --add-reverse \
  --features paper=raw/features.npy --labels paper=raw/labels.npy \
  --split-fractions 0.6,0.2,0.2 --out heterogeneous
train heterogeneous --model rgcn --type paper --fanouts 15,10
