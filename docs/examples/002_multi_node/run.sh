#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Multi-node GCN on a fake graph of 100,000 nodes: each "node" of the cluster
# is a group of processes on this machine, and each process is started with
# the variables that torchrun sets.
#
# Usage: docs/examples/002_multi_node/run.sh [OPTION]...
#   --cluster-nodes N    groups of processes (default 2)
#   --ranks-per-node N   trainers in each (default 1)
#   --device NAME        cpu (default), cuda, or auto: a GPU if there is one.
#                        All ranks are on this machine here, so that it needs a
#                        GPU for each
#   --nodes N            nodes of the graph (default 100000)
#   --epochs N           epochs (default 3)
#   --quick              10,000 nodes, 2 epochs
#   --bin DIR            where the programs are (default build/release/bin)
#   --work DIR           keep what is written here (default: a temporary
#                        folder)
#   --help               this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

cluster_nodes=2 ranks_per_node=1 device=cpu nodes=100000 epochs=3
quick() { nodes=10000 epochs=2; }
start_example 'cluster-nodes ranks-per-node device nodes epochs' "$@"
train_on "$device" "$ranks_per_node"

# 5 edges per node and their reverses: degree 10.
run millrace import fake --nodes "$nodes" --avg-degree 5 --undirected \
  --features 64 --classes 10 --split-fractions 0.6,0.2,0.2 --out fake

free_port
world=$((cluster_nodes * ranks_per_node))

# start_node NODE: what you would run on that machine (there with LOCAL_RANK
# from 0 and LOCAL_WORLD_SIZE=ranks_per_node; here all share the cores and GPUs
# of one).
start_node() {
  local rank first=$(($1 * ranks_per_node))
  for ((rank = first; rank < first + ranks_per_node; ++rank)); do
    start_part "rank-$rank" env RANK="$rank" WORLD_SIZE="$world" \
      LOCAL_RANK="$rank" LOCAL_WORLD_SIZE="$world" \
      MASTER_ADDR=127.0.0.1 MASTER_PORT="$FREE_PORT" \
      millrace-train --store fake "${TRAIN_ON[@]}" "${MEMORY[@]}" \
      --model gcn --hidden 64 --layers 2 --fanouts 50,50 --batch-size 128 \
      --lr 0.01 --epochs "$epochs" --eval-ranks 0 \
      --metrics-json metrics.jsonl
  done
}
for ((node = 0; node < cluster_nodes; ++node)); do
  start_node "$node"
done
# shellcheck disable=SC2119  # it takes none of our arguments
wait_for_parts
