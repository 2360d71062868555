#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Multi-process GraphSAGE on Reddit, or on a small graph in Reddit's format.
#
# Usage: docs/examples/000_multi_process/run.sh [OPTION]...
#   --data DIR     folder with reddit_data.npz and reddit_graph.npz
#                  (default: a graph that make_reddit.py generates)
#   --nodes N      nodes of the generated graph (default 20000)
#   --device NAME  cpu (default), cuda, or auto: a GPU if there is one
#   --workers N    trainer processes (default 2, or gpus: one for each GPU)
#   --epochs N     epochs (default 10)
#   --quick        a small graph, 5 epochs
#   --bin DIR      where the programs are (default build/release/bin)
#   --work DIR     keep what is written here (default: a temporary folder)
#   --help         this text
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lib.sh"

data='' nodes=20000 device=cpu workers='' epochs=10 shape=()
quick() { nodes=4000 epochs=5 shape=(--features 100 --classes 10); }
start_example 'data nodes device workers epochs' "$@"
train_on "$device" 2

if [[ -n $data ]]; then
  data=$(absolute "$data")
else
  data=$WORK/raw
  make_with_python "$here/make_reddit.py" "$data" --nodes "$nodes" "${shape[@]}"
fi
run millrace import reddit "$data" --out reddit
run millrace-train --store reddit --workers "${workers:-$WORKERS_ON}" \
  "${TRAIN_ON[@]}" "${MEMORY[@]}" \
  --model sage --hidden 256 --layers 2 --fanouts 25,10 --batch-size 1024 \
  --lr 0.001 --epochs "$epochs" \
  --inference sampled --eval-ranks 0 --eval-batch-size 1024 \
  --metrics-json metrics.jsonl
