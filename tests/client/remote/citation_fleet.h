// SPDX-License-Identifier: Apache-2.0
// A graph with features of several types, and its batches from a fleet.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/sample/digest.h"
#include "common/sample/resolve_job.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"

namespace millrace::testing {

constexpr int64_t kPapers = 60;
constexpr int64_t kRowFloats = 5;
constexpr TypeIndex kPapersType = 0, kAuthorsType = 2;
constexpr uint32_t kBatches = 5;  // of an epoch

// Papers with features; venues with other features, so few that one of three
// partitions has none; authors without features; topics that no edge reaches.
inline TestGraph CitationGraph() {
  TestGraph graph;
  graph.types = {{.name = "paper",
                  .count = kPapers,
                  .feature = RampFeature(kPapers, kRowFloats)},
                 {.name = "venue", .count = 2, .feature = RampFeature(2, 3)},
                 {.name = "author", .count = 10},
                 {.name = "topic", .count = 4, .feature = RampFeature(4, 2)}};
  TestRelation cites = {.src = "paper", .name = "cites", .dst = "paper"};
  TestRelation prints = {.src = "venue", .name = "prints", .dst = "paper"};
  TestRelation writes = {.src = "author", .name = "writes", .dst = "paper"};
  TestSplit train = {.type = "paper"};
  for (int64_t v = 0; v < kPapers; ++v) {
    for (int64_t i = 1; i <= 4; ++i) {
      cites.edges.emplace_back((v * i + 7) % (kPapers / 2), v);
    }
    prints.edges.emplace_back(v % 2, v);
    writes.edges.emplace_back(v % 10, v);
    if (v % 3 != 0) train.ids.push_back(v);
  }
  graph.relations = {cites, prints, writes};
  graph.splits = {train};
  return graph;
}

inline ResolvedJob Resolved(const Manifest& manifest) {
  JobSpec spec;
  spec.seed_type = "paper";
  spec.fanouts = {3, 2};
  spec.batch_size = 8;
  auto job = ResolveJob(spec, manifest);
  EXPECT_TRUE(job.ok()) << job.status();
  return *std::move(job);
}

inline std::unique_ptr<RemoteBatchSource> Connect(
    const RemoteOptions& options) {
  auto source = RemoteBatchSource::Connect(options);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

inline BatchRequest Request(uint32_t batch, DType cast = DType::kNone,
                            std::shared_ptr<ArrayMemory> memory = nullptr) {
  BatchRequest request;
  request.batch = batch;
  request.columns = DigestColumns(/*features=*/true, false);
  request.columns.feature_dtype = cast;
  request.memory = std::move(memory);
  return request;
}

// All batches of an epoch.
inline std::vector<Batch> Epoch(
    BatchSource& source, DType cast = DType::kNone,
    const std::shared_ptr<ArrayMemory>& memory = nullptr) {
  const ResolvedJob job = Resolved(source.manifest());
  std::vector<Batch> batches;
  for (uint32_t b = 0; b < kBatches; ++b) {
    PendingFetch fetch(source, job, Request(b, cast, memory));
    EXPECT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
    if (fetch.Wait().ok()) batches.push_back(*fetch.Wait());
  }
  return batches;
}

// The bytes of an array on the host.
inline std::string BytesOf(const Array& array) {
  EXPECT_TRUE(array.on_host());
  return {reinterpret_cast<const char*>(array.data()), array.total_bytes()};
}

// Expects the batches of an epoch to be equal.
inline void ExpectEqualEpochs(const std::vector<Batch>& got,
                              const std::vector<Batch>& want,
                              const Schema& schema) {
  ASSERT_EQ(want.size(), kBatches);
  ASSERT_EQ(got.size(), want.size());
  for (size_t b = 0; b < got.size(); ++b) {
    EXPECT_EQ(DigestBatch(got[b], schema), DigestBatch(want[b], schema));
    for (size_t t = 0; t < want[b].nodes.size(); ++t) {
      EXPECT_EQ(BytesOf(got[b].nodes[t].feature),
                BytesOf(want[b].nodes[t].feature));
    }
  }
}

}  // namespace millrace::testing
