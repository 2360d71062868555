// SPDX-License-Identifier: Apache-2.0
// Small graphs with classes to learn, and groups of ranks in one process.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/train/group/collectives.h"
#include "client/train/trainer.h"
#include "common/sample/batch_source.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {

// `nodes` nodes in 4 classes; 5 random edges into each, mostly from its own
// class (including self loops and equal edges); noisy one-hot features of 6
// columns. The first `train` nodes are the train split, followed by 20 valid
// and 20 test nodes.
TestGraph ClassGraph(int64_t nodes, int64_t train);

// Node types: paper (the first type; `papers` in 4 classes, noisy one-hot
// features of 6 columns), author (features of 5 columns), subject (no features)
// and venue, which no relation leads to. Relations: author writes paper and its
// reverse, subject of paper and its reverse, paper cites paper, all mostly
// within classes (the number modulo 4), and venue prints paper. Some nodes have
// no edges, and some edges occur twice. Splits of papers as in ClassGraph.
TestGraph PaperGraph(int64_t papers, int64_t train);

// Serves the graph in this process as a store of `parts` partitions.
std::shared_ptr<BatchSource> Serve(const TestGraph& graph,
                                   const std::string& name, int parts = 1);

// Writes a new store of `parts` partitions to `path`; opens such a store.
void WriteStore(const TestGraph& graph, const std::filesystem::path& path,
                int parts);
std::shared_ptr<BatchSource> OpenStore(const std::filesystem::path& path);

using Edges = std::vector<std::pair<int64_t, int64_t>>;

struct LinkSplit {
  std::string relation;
  std::string name;
  Edges edges;
  std::vector<float> labels = {};
};

// Serves the graph as a store of `parts` partitions with splits of edges.
std::shared_ptr<BatchSource> ServeLinks(const TestGraph& graph,
                                        const std::vector<LinkSplit>& splits,
                                        const std::string& name, int parts);

// A run of sage with 2 layers, 8 wide, fanouts 3,2, batches of 16, 2 epochs.
TrainOptions SmallRun();
// A run on edges with features, 16 wide, with a negative for each.
TrainOptions LinkRun();

// Runs `body` as every rank of a group, each on a thread of its own.
void RunRanks(int world, const std::function<void(Collectives&)>& body);
// Makes a trainer for each rank from its source and options, and then ends it.
// As in millrace-train, a rank that fails tells the others. Returns each rank's
// status.
std::vector<absl::Status> CreateTrainers(
    const std::vector<std::shared_ptr<BatchSource>>& sources,
    const std::vector<TrainOptions>& runs);

// Trains with `options` in a group of `world`; returns the history of rank 0.
std::vector<MetricsRecord> TrainRanks(
    int world, const std::shared_ptr<BatchSource>& source,
    const TrainOptions& options);

// The losses of a history; -1 where there is none.
std::vector<double> Losses(const std::vector<MetricsRecord>& history);

// The error of Trainer::Create() for `options`.
absl::Status Refusal(const std::shared_ptr<BatchSource>& source,
                     const TrainOptions& options);
absl::Status Refusal(const TestGraph& graph, const TrainOptions& options);

// All batches of epoch 0 in order, with the columns that models read.
std::vector<Batch> AllBatches(const std::shared_ptr<BatchSource>& source,
                              const JobSpec& job);

}  // namespace millrace::testing
