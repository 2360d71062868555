// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_advice.h"

namespace millrace {
namespace {

constexpr ReasonAdvice kTrainAdvice[] = {
    {{"batch_too_large"},
     "use a smaller --batch-size, --fanouts or --hidden; on a GPU also a "
     "smaller "
     "--cache-ratio or --prefetch-batches"},
    {{"batch_without_features"},
     "import the dataset with --features F.npy, and do not use --no-features"},
    {{"checkpoint_not_written"},
     "free space or repair the disk, and restart with --resume; the previous "
     "checkpoint is intact"},
    {{"classes_with_gaps"},
     "import the labels with -1 for each node that has none, number the "
     "classes from 0 without gaps, or say with --classes how many there are"},
    {{"earlier_checkpoint"},
     "give --resume to continue that run, choose another folder, or remove the "
     "old checkpoints"},
    {{"edge_types_unread"},
     "import each type of edge as a relation of its own (--edges "
     "SRC__NAME__DST=F.npy)"},
    {{"empty_split"},
     "name another with --split, or make one with `millrace split`"},
    {{"epoch_without_steps"},
     "use a smaller --batch-size, fewer trainers, or leave out --drop-last"},
    {{"evaluated_edges_in_graph"},
     "import with --edge-split-fractions, which takes them out, or use "
     "--inference sampled, which leaves them out"},
    {{"evaluation_batch_too_large"},
     "use a smaller --eval-batch-size, --eval-fanouts or --hidden"},
    {{"evaluation_out_of_device_memory"},
     "use a smaller --eval-batch-size, --eval-fanouts, --hidden or "
     "--cache-ratio, or --inference sampled"},
    {{"evaluation_out_of_memory"},
     "use a smaller --eval-batch-size, --eval-fanouts or --hidden, or fewer "
     "processes on this host"},
    {{"full_inference_in_time"}, "use --inference sampled with --temporal"},
    {{"full_inference_of_script"}, "use --inference sampled"},
    {{"gpu_has_failed"},
     "see `nvidia-smi` and the kernel's log (dmesg) for what happened to it; "
     "choose another one with CUDA_VISIBLE_DEVICES, or use --device cpu"},
    {{"gpu_is_busy"},
     "end the process that has it for itself (`nvidia-smi` names it), or allow "
     "several with `nvidia-smi -c DEFAULT`; choose another one with "
     "CUDA_VISIBLE_DEVICES, or use --device cpu"},
    {{"gpu_is_full"},
     "end processes that use its memory (`nvidia-smi` names them), choose "
     "another one with CUDA_VISIBLE_DEVICES, or use --device cpu"},
    {{"heads_do_not_divide"}, "use a multiple of --heads for --hidden"},
    {{"incomplete_group"},
     "set all of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none of "
     "them; or use --workers"},
    {{"inference_too_large"}, "use --inference sampled, or a smaller --hidden"},
    {{"label_beyond_classes"},
     "use a larger --classes, or import the labels with -1 for each node that "
     "has none"},
    {{"labels_and_negatives"},
     "make a split without --labels or without --negatives"},
    {{"labels_are_not_binary"},
     "use --task single for classes, --task regression for numbers"},
    {{"labels_are_not_classes"},
     "--task single needs whole numbers; use --task regression for others"},
    {{"labels_name_negatives"},
     "leave out --negatives, or make a split without --labels"},
    {{"loss_not_finite"},
     "use a smaller --lr, another --norm, or normalize the features at "
     "import"},
    {{"loss_not_finite_in_bf16"},
     "use --precision float32, a smaller --lr, another --norm, or normalize "
     "the features at import"},
    {{"loss_without_negatives"},
     "use --negatives triplet:K, shared:K or in-batch, or --loss bce"},
    {{"model_too_large"},
     "use a smaller --hidden, fewer trainers on this host, or labels with "
     "fewer classes"},
    {{"no_checkpoint"},
     "name the folder of an earlier run with --checkpoint, or train with "
     "--epochs 1 or more"},
    {{"no_checkpoint_folder"}, "name the folder that checkpoints are in"},
    {{"no_edge_features"}, "import the dataset with --edge-features F.npy"},
    {{"no_embeddings"}, "use --output logits"},
    {{"no_features"}, "import the dataset with --features F.npy"},
    {{"no_given_negatives"},
     "use --eval-negatives triplet:100, or millrace split --negatives"},
    {{"no_gpu"},
     "install NVIDIA's driver 580 or later for a GPU that it supports, or use "
     "--device cpu"},
    {{"no_labels"}, "import the dataset with --labels F.npy"},
    {{"no_negatives"},
     "use --negatives binary:1, triplet:K, shared:K or in-batch"},
    {{"nodes_without_times"},
     "import the dataset with --node-times F.npy, or train without the splits "
     "valid and test"},
    {{"order_of_edges"},
     "give the edges in order with --seeds-file F.npy, [n, 2], and "
     "--no-shuffle"},
    {{"order_without_times"},
     "give the seeds and their times with --seeds-file F.npy, [n, 2]"},
    {{"other_batch_size"},
     "use the same job, dataset and model, or another --checkpoint folder; "
     "--global-batch-size is divided by the number of trainers"},
    {{"other_depth"},
     "give a number for each layer in --fanouts and --eval-fanouts, or leave "
     "out --layers"},
    {{"other_eval_negatives"}, "use --eval-negatives triplet:100"},
    {{"other_run"},
     "use the same job, dataset and model, or another --checkpoint folder"},
    {{"other_secret"}, "give every rank the same --rendezvous-secret"},
    {{"out_of_device_memory"},
     "use a smaller --batch-size, --fanouts, --hidden or --cache-ratio, "
     "--prefetch-batches 1, --feature-memory pinned, or --precision bf16"},
    {{"out_of_memory"},
     "use a smaller --batch-size, --fanouts or --hidden, or fewer processes on "
     "this host"},
    {{"predictions_too_large"},
     "leave out --predict, or run fewer trainers on this host"},
    {{"rank_ended"},
     "see its own message above; restart with --resume to continue from the "
     "last checkpoint"},
    {{"rank_lost"},
     "see what that rank printed, and restart the group with --resume to "
     "continue from the last checkpoint"},
    {{"ranks_have_other_splits"},
     "add the same splits to all copies of the store, or serve one copy"},
    {{"ranks_on_other_devices"},
     "give every rank the same --device and --backend; with --device auto, the "
     "log of a rank says why it takes the CPU"},
    {{"ranks_read_other_stores"},
     "give every rank the same --store, or --servers of a single store"},
    {{"script_without_features"},
     "import features (--features TYPE=F.npy), or use another --model"},
    {{"seeds_without_edge_types"},
     "make a split: millrace split --pairs F --edge-types F"},
    {{"seeds_without_neighbors"},
     "use --direction out, or import with --add-reverse"},
    {{"several_labels_per_node"}, "use --task multi or regression"},
    {{"several_values_per_node"}, "use --task multi"},
    {{"shared_gpu"},
     "give each rank of a host its own LOCAL_RANK and let all of them see all "
     "its GPUs, as --workers gpus does, or let each see only its own; with "
     "--backend gloo ranks may share a GPU"},
    {{"tensor_not_saved"},
     "script the model with real numbers in its place, or leave out "
     "--checkpoint"},
    {{"too_few_gpus"},
     "start at most one rank for each GPU of a host, as --workers gpus does, "
     "and let CUDA_VISIBLE_DEVICES name them all"},
    {{"too_many_embeddings"},
     "import features (--features TYPE=F.npy) or use a smaller --hidden"},
    {{"unlabelled_split"},
     "name another split with --split, or import labels for this one: NaN and "
     "negative labels count as none"},
    {{"unreadable_checkpoint"},
     "put a good copy of it there, remove it to start from the beginning, or "
     "name another --checkpoint folder"},
    {{"weights_of_other_model"},
     "give weights for this --model, --layers and --norm, with PyG's names"},
};

}  // namespace

std::span<const ReasonAdvice> TrainAdvice() { return kTrainAdvice; }

}  // namespace millrace
