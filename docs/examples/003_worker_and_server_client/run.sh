#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# GLT's two ways to deploy: worker mode (the trainers sample in process) and
# server-client mode (two sampler servers, two trainers). Both train on the
# same batches.
#
# Usage: docs/examples/003_worker_and_server_client/run.sh [OPTION]...
#   --data DIR     an OGB folder such as ogbn_products (default: a fake graph)
#   --nodes N      nodes of the fake graph (default 10000)
#   --device NAME  cpu (default), cuda, or auto: a GPU if there is one
#   --epochs N     epochs (default 3)
#   --cache-ratio R  share of the features, hottest first, that the trainers
#                  keep in server-client mode (default 0.2)
#   --threads N    threads of each trainer (default 1)
#   --quick        3,000 nodes of 10 classes, 5 epochs, hidden 64
#   --bin DIR      where the programs are (default build/release/bin)
#   --work DIR     keep what is written here (default: a temporary folder)
#   --help         this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

data='' nodes=10000 device=cpu epochs=3 threads=1 hidden=256 classes=47 cache_ratio=0.2
quick() { nodes=3000 epochs=5 hidden=64 classes=10; }
start_example 'data nodes device epochs threads cache-ratio' "$@"
train_on "$device" 2

if [[ -n $data ]]; then
  run millrace import ogb "$(absolute "$data")" --undirected --out graph
else
  run millrace import fake --nodes "$nodes" --avg-degree 10 --features 100 \
    --classes "$classes" --undirected --out graph
fi
job=(--fanouts '15,10,5' --batch-size 512)

# Two partitions; in each, what batches visit most comes first.
run millrace partition graph --parts 2 --hot presample \
  --hot-job "--split train ${job[*]}" --out store

model=(--model sage --hidden "$hidden" --layers 3 --lr 0.01
  --epochs "$epochs" --inference sampled)

echo 'worker mode'
run millrace-train --store store --threads "$threads" --workers "$WORKERS_ON" \
  "${TRAIN_ON[@]}" "${MEMORY[@]}" "${job[@]}" "${model[@]}" \
  --metrics-json worker.jsonl

echo 'server-client mode'
start_fleet store
run millrace-train --servers "$SERVERS" --cache-ratio "$cache_ratio" \
  --threads "$threads" --workers "$WORKERS_ON" "${TRAIN_ON[@]}" \
  "${job[@]}" "${model[@]}" --metrics-json client.jsonl

run millrace digest --store store "${job[@]}" --batches 10 >worker.digest
run millrace digest --servers "$SERVERS" --cache-ratio "$cache_ratio" \
  "${job[@]}" --batches 10 >client.digest
cmp worker.digest client.digest
echo "both modes have the same batches: $(tail -n 1 client.digest)"
