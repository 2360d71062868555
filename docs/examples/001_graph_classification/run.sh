#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Batches of whole graphs, as DGL's GraphDataLoader makes them: from MUTAG, or
# from another collection in TU Dortmund's format. It does not train: see
# README.md.
#
# Usage: docs/examples/001_graph_classification/run.sh [OPTION]...
#   --data DIR            folder with DS_A.txt and the rest, e.g. IMDB-BINARY
#                         (default: tests/data/mutag)
#   --node-features KIND  ones, degree, labels or attributes (default ones)
#   --trainers N          that share an epoch (default 2)
#   --quick               the same: it takes a second
#   --bin DIR             where the programs are (default build/release/bin)
#   --work DIR            keep what is written here (default: a temporary
#                         folder)
#   --help                this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

data='' node_features=ones trainers=2
quick() { :; }
start_example 'data node-features trainers' "$@"
if [[ -n $data ]]; then
  data=$(absolute "$data")
else
  data=$ROOT/tests/data/mutag
fi

run millrace import tu "$data" --node-features "$node_features" \
  --split-fractions 0.8,0.1,0.1 --split-seed 0 --out graphs
job=(--seeds graph --batch-size 32)
run millrace digest --store graphs "${job[@]}" --epoch 0
run millrace digest --store graphs "${job[@]}" --epoch 1

# Batch k of an epoch belongs to the trainer k mod N.
for ((trainer = 0; trainer < trainers; ++trainer)); do
  run millrace sample --store graphs "${job[@]}" --batch "$trainer" \
    --with-features >"batch-$trainer.json"
  cut -c -160 "batch-$trainer.json"
done

# The same batches from a fleet that holds the graphs in two parts.
run millrace partition graphs --parts 2 --out graphs-2
start_fleet graphs-2
run millrace digest --servers "$SERVERS" "${job[@]}" --epoch 0 >fleet.txt
millrace digest --store graphs "${job[@]}" --epoch 0 >store.txt
cmp fleet.txt store.txt
echo "the fleet's batches are the same"
