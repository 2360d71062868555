# SPDX-License-Identifier: Apache-2.0
"""The training runs that compare_losses.py compares."""
from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingRun:
    """A run of millrace-train; with `more`, a second one that continues from its
    checkpoint with these options added."""
    name: str
    store: str  # name in stores.py; that of two partitions ends with -2
    options: str
    workers: int = 1
    fleet: bool = False  # whether servers make the batches, not the trainer
    more: str = ""
    swapped: bool = False  # continues from the other build's checkpoint


NODES = "--batch-size 20 --hidden 16 --lr 0.01 --epochs 2"
USERS = "--type user --fanouts 4,3 --batch-size 20 --hidden 16 --epochs 2"
LINKS = "--task link --batch-size 1000 --hidden 16 --lr 0.01 --epochs 1"
PAIRS = "--task link --batch-size 100 --hidden 16 --lr 0.01 --epochs 2"
GRAPHS = "--task graph --layers 2 --batch-size 20 --hidden 16 --epochs 2"
CHECKPOINT = "--checkpoint checkpoint --checkpoint-every 2"

TRAINING_RUNS = (
    TrainingRun("sage", "cora", f"{NODES} --fanouts 10,5 --predict rows.npy"),
    TrainingRun("sage, two workers of a fleet", "cora-2",
        f"{NODES} --fanouts 5,5,5 --aggr max --norm batch --dropout 0.5 "
        "--optimizer adamw --weight-decay 5e-4 --lr-schedule cosine "
        "--eval-ranks all", workers=2, fleet=True),
    TrainingRun("gat", "cora", f"{NODES} --model gat --heads 4 --fanouts 8,4 "
        "--dropout 0.3 --norm layer"),
    TrainingRun("gcn by true degrees", "cora-2",
        f"{NODES} --model gcn --fanouts 8,4 --metric f1-macro",
        fleet=True),
    TrainingRun("gcn by sampled degrees", "cora",
        f"{NODES} --model gcn --gcn-norm sampled --fanouts 8,4 "
        "--inference sampled --eval-fanouts 10,10", workers=2),
    TrainingRun("gin", "cora", f"{NODES} --model gin --gin-mlp 2 --fanouts 8,4 "
        "--optimizer sgd --lr-schedule step:1:0.5"),
    TrainingRun("inductive, by labor", "columns-2",
        f"{NODES} --fanouts 5,4 --method labor --train-graph "
        "induced:train", fleet=True),
    TrainingRun("weighted, float16 features", "columns-2",
        f"{NODES} --fanouts 5,4 --weighted --replace --feature-dtype "
        "float16 --seed-order local", workers=2, fleet=True),
    TrainingRun("random walks", "columns",
        f"{NODES} --method walk --walks 3 --walk-length 4 --layers 2"),
    TrainingRun("ppr", "columns",
        f"{NODES} --method ppr --walks 6 --walk-length "
        "3 --fanouts 5,3 --model gat --heads 2 --inference sampled"),
    TrainingRun("temporal", "columns-2",
        f"{NODES} --fanouts 5,4 --temporal last "
        "--inference sampled --keep-best --checkpoint checkpoint "
        "--patience 1", fleet=True),
    TrainingRun("rgcn with bases", "shop-2",
        f"{USERS} --model rgcn --num-bases 3 "
        "--predict rows.npy", workers=2, fleet=True),
    TrainingRun("rgcn", "shop", f"{USERS} --model rgcn --weighted"),
    TrainingRun("sage over relations", "shop",
        f"{USERS} --aggr sum", workers=2),
    TrainingRun("gat over relations", "shop",
        f"{USERS} --model gat --heads 2 --dropout 0.2"),
    TrainingRun("several labels per node", "shop-2",
        "--type item --task multi --fanouts 4,3 --hidden 16 --epochs 2 "
        "--batch-size 20 --model gin --direction out", fleet=True),
    TrainingRun("regression", "shop", "--type item --task regression --fanouts "
        "4,3 --hidden 16 --epochs 2 --batch-size 20"),
    TrainingRun("links: dot, bce of pairs", "links",
        f"{LINKS} --fanouts 5,3 --negatives binary:1"),
    TrainingRun("links: embedding, distmult, softmax of shared", "links",
        f"{LINKS} --model embedding --decoder distmult --negatives "
        "shared:64 --metric hits@10"),
    TrainingRun("links: softmax of triplets", "links-2",
        f"{LINKS} --fanouts 5,3 --negatives triplet:2 --loss softmax "
        "--eval-negatives triplet:20", workers=2, fleet=True),
    TrainingRun("links: in-batch, gat", "links",
        f"{LINKS} --model gat --fanouts 4,3 --negatives in-batch "
        "--eval-negatives shared:50 --predict rows.npy"),
    TrainingRun("links: given negatives", "columns",
        f"{PAIRS} --split ranked --fanouts 4,3 --exclude-seed-edges self "
        "--inference sampled --loss softmax --valid-split ranked"),
    TrainingRun("links: labels", "columns",
        f"{PAIRS} --split labelled --fanouts "
        "4,3 --inference sampled --valid-split labelled"),
    TrainingRun("links: temporal", "columns-2",
        f"{PAIRS} --fanouts 4,3 --temporal uniform --negatives triplet:1 "
        "--inference sampled --decoder distmult", workers=2, fleet=True),
    TrainingRun("graphs: gin", "mutag", f"{GRAPHS} --model gin --readout sum"),
    TrainingRun("graphs: sage, two workers of a fleet", "mutag-2",
        f"{GRAPHS} --readout max --graph-head none --norm batch",
        workers=2, fleet=True),
    TrainingRun("resumed", "cora-2", f"{NODES} --fanouts 5,5 --dropout 0.5 "
        f"--norm batch {CHECKPOINT}", workers=2, fleet=True,
        more="--epochs 4 --resume --predict rows.npy"),
    TrainingRun("resumed from the other build's checkpoint", "shop",
        f"{USERS} --dropout 0.5 {CHECKPOINT}",
        more="--epochs 4 --resume", swapped=True),
    TrainingRun("started from weights", "cora",
        f"{NODES} --fanouts 5,5 --checkpoint checkpoint --model-seed 5",
        more="--checkpoint second --init checkpoint/last.pt"),
)
