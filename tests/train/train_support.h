// SPDX-License-Identifier: Apache-2.0
// Small graphs with classes to learn, and groups of ranks in one process.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/train/collectives.h"
#include "client/train/trainer.h"
#include "common/sample/batch_source.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {

// `nodes` nodes in 4 classes, 5 random edges into each, mostly from its own
// class (self loops and equal edges among them), noisy one-hot features of 6
// columns; the first `train` nodes are the train split, then 20 valid and 20
// test nodes.
TestGraph ClassGraph(int64_t nodes, int64_t train);

// Types paper (`papers` in 4 classes, noisy one-hot features of 6 columns;
// the first type), author (features of 5 columns), subject (no features) and
// venue, which no relation leads to. Relations: author writes paper and its
// reverse, subject of paper and its reverse, paper cites paper, all mostly
// within classes (of the number modulo 4), and venue prints paper. Some nodes
// have no edges and some edges are there twice. Splits of papers as
// ClassGraph's.
TestGraph PaperGraph(int64_t papers, int64_t train);

// The graph served in this process as a store of `parts` partitions.
std::shared_ptr<BatchSource> Serve(const TestGraph& graph,
                                   const std::string& name, int parts = 1);

// A new store of `parts` partitions at `path`, and a store served here.
void WriteStore(const TestGraph& graph, const std::filesystem::path& path,
                int parts);
std::shared_ptr<BatchSource> OpenStore(const std::filesystem::path& path);

// Sage of 2 layers, 8 wide, fanouts 3,2, batches of 16, 2 epochs.
TrainOptions SmallRun();

// Runs `body` as every rank of a group, each in a thread of its own.
void RunRanks(int world, const std::function<void(Collectives&)>& body);
// Makes a trainer of each rank's source and options and ends, as millrace-train
// does: one that cannot be made tells the other ranks. What each rank ended
// with.
std::vector<absl::Status> CreateTrainers(
    const std::vector<std::shared_ptr<BatchSource>>& sources,
    const std::vector<TrainOptions>& runs);

// Trains with `options` in a group of `world`; the history of rank 0.
std::vector<MetricsRecord> TrainRanks(
    int world, const std::shared_ptr<BatchSource>& source,
    const TrainOptions& options);

// All batches of epoch 0 in order, with the columns that models read.
std::vector<Batch> AllBatches(const std::shared_ptr<BatchSource>& source,
                              const JobSpec& job);

}  // namespace millrace::testing
