#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# DGL's tutorial on graph classification, reproduced number by number, and a
# model that learns; from MUTAG, or from another collection in TU Dortmund's
# format. See README.md.
#
# Usage: docs/examples/001_graph_classification/run.sh [OPTION]...
#   --data DIR            folder with DS_A.txt and the rest, e.g. IMDB-BINARY
#                         (default: tests/data/mutag)
#   --node-features KIND  degree, labels, attributes or ones: what the model
#                         that learns is given (default degree)
#   --device NAME         cpu (default), cuda, or auto: a GPU if there is one
#   --trainers N          number of trainers that share an epoch (default 2, or
#                         gpus: one for each GPU)
#   --epochs N            epochs for the model that learns (default 30)
#   --quick               10 epochs
#   --bin DIR             where the programs are (default build/release/bin)
#   --work DIR            keep what is written here (default: a temporary
#                         folder)
#   --help                this text
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lib.sh"

data='' node_features=degree device=cpu trainers='' epochs=30
quick() { epochs=10; }
start_example 'data node-features device trainers epochs' "$@"
train_on "$device" 2
if [[ -n $data ]]; then
  data=$(absolute "$data")
else
  data=$ROOT/tests/data/mutag
fi

# The tutorial's graphs, splits, model, initial weights and order.
run millrace import tu "$data" --node-features ones --out tutorial
make_with_python "$here/tutorial_order.py" "$data" . 5
for split in train valid test; do
  run millrace split tutorial --type graph --name "$split" --ids "$split.npy"
done
run millrace-train --store tutorial --task graph --batch-size 32 \
  --model gin --layers 2 --hidden 2 --gin-mlp 1 --graph-head none \
  --lr 0.01 --epochs 5 --init "$here/initial_weights.pt" --order order.npy \
  "${TRAIN_ON[@]}" \
  --log-every 1 --metrics-json tutorial.jsonl
grep -m 1 -o '"loss":[0-9.]*' tutorial.jsonl |
  sed 's/.*:/loss of the first batch: /'

# Features that a model can learn from.
run millrace import tu "$data" --node-features "$node_features" \
  --split-fractions 0.8,0.1,0.1 --split-seed 0 --out graphs
job=(--seeds graph --batch-size 32)
run millrace digest --store graphs "${job[@]}" --epoch 0
run millrace digest --store graphs "${job[@]}" --epoch 1

# Batch k of an epoch belongs to the trainer k mod N: of two trainers, these are
# the first.
for batch in 0 1; do
  run millrace sample --store graphs "${job[@]}" --batch "$batch" \
    --with-features >"batch-$batch.json"
  cut -c -160 "batch-$batch.json"
done

# The same batches from a fleet that holds the graphs in two parts.
run millrace partition graphs --parts 2 --out graphs-2
start_fleet graphs-2
run millrace digest --servers "$SERVERS" "${job[@]}" --epoch 0 >fleet.txt
millrace digest --store graphs "${job[@]}" --epoch 0 >store.txt
cmp fleet.txt store.txt
echo "the fleet's batches are the same"

run millrace-train --servers "$SERVERS" --workers "${trainers:-$WORKERS_ON}" \
  "${TRAIN_ON[@]}" --task graph \
  --model gin --layers 5 --hidden 64 --norm batch --readout mean \
  --batch-size 32 --lr 0.01 --epochs "$epochs" --metrics-json metrics.jsonl
