// SPDX-License-Identifier: Apache-2.0
// Walks whose sizes a stranger may choose: memory is reserved before it is
// used, and work stops soon after its call is cancelled.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/sample/draw/sampler.h"
#include "common/sample/resolve_job.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

constexpr int64_t kNodes = 64;

// A ring, in which each node's neighbour is the next node. Counts reserved
// bytes up to a limit, and cancels the call at some point.
class CountingSource final : public NeighborSource {
 public:
  explicit CountingSource(uint64_t limit = ~uint64_t{0}) : limit_(limit) {}

  absl::Status Expand(const DrawContext&, std::span<const Frontier> frontiers,
                      std::span<Picks> picks) override {
    ++expands;
    for (size_t f = 0; f < frontiers.size(); ++f) {
      const std::span<const uint64_t> ids = frontiers[f].ids;
      picks[f].counts.assign(ids.size(), 1);
      for (const uint64_t id : ids) {
        picks[f].neighbors.push_back((id + 1) % kNodes);
      }
    }
    return absl::OkStatus();
  }
  absl::Status Reserve(uint64_t bytes) override {
    reserved += bytes;
    if (reserved <= limit_) return absl::OkStatus();
    return absl::FailedPreconditionError("too much");
  }
  void Release(uint64_t bytes) override { reserved -= bytes; }
  absl::Status CheckNotCancelled() const override {
    if (expands < given_up_after) return absl::OkStatus();
    return absl::CancelledError("given up");
  }

  int expands = 0;
  int given_up_after = 1 << 30;  // expands
  uint64_t reserved = 0;

 private:
  const uint64_t limit_;
};

class WalkBudgetTest : public ::testing::TestWithParam<SampleMethod> {
 protected:
  static JobSpec Job(int walks, int length) {
    JobSpec spec = testing::ExplicitJob({});
    spec.method = GetParam();
    spec.walks = walks;
    spec.walk_length = length;
    spec.restart = 1e-9;
    if (GetParam() == SampleMethod::kPpr) spec.fanouts = {4};
    return spec;
  }

  // Samples a batch of `seeds` seeds, in which nodes may repeat.
  absl::Status Run(const JobSpec& spec, size_t seeds, NeighborSource& source) {
    const auto job = ResolveJob(spec, graph_->manifest());
    if (!job.ok()) return job.status();
    ResolvedSeeds resolved;
    for (uint64_t i = 0; i < seeds; ++i) resolved.ids.push_back(i % kNodes);
    resolved.original_ids.resize(seeds);
    return SampleTopology(*job, graph_->manifest(), {}, resolved, source)
        .status();
  }

  const std::unique_ptr<LocalBatchSource> graph_ =
      testing::OpenGraph(testing::Cycle(kNodes), 1);
};
INSTANTIATE_TEST_SUITE_P(Methods, WalkBudgetTest,
                         ::testing::Values(SampleMethod::kWalk,
                                           SampleMethod::kPpr));

// For walks, the walkers' paths alone would take 2 TB.
TEST_P(WalkBudgetTest, HugeBatchesAreRefusedBeforeTheyTakeMemory) {
  const bool walk = GetParam() == SampleMethod::kWalk;
  CountingSource source(2 << 20);
  const absl::Status status = walk ? Run(Job(4000, 250), 500000, source)
                                   : Run(Job(4096, 256), kNodes, source);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(source.expands, 0);
}

TEST_P(WalkBudgetTest, WhatIsPromisedIsAsMuchAsPathsTake) {
  constexpr uint64_t kWalkers = uint64_t{kNodes} * 100;
  CountingSource source;
  const absl::Status status = Run(Job(100, 20), kNodes, source);
  ASSERT_TRUE(status.ok()) << status;
  if (GetParam() == SampleMethod::kWalk) {
    EXPECT_GE(source.reserved, kWalkers * 21 * sizeof(int32_t));
  } else {
    EXPECT_EQ(source.reserved, 0u);  // the hop is over
  }
  CountingSource small(kWalkers * 20 * sizeof(int32_t));
  EXPECT_FALSE(Run(Job(100, 20), kNodes, small).ok());
}

// A step of a million walkers checks for cancellation.
TEST_P(WalkBudgetTest, WalksThatAreGivenUpEndInTheirStep) {
  CountingSource source;
  source.given_up_after = 1;
  const absl::Status status = Run(Job(4096, 255), 300, source);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_LE(source.expands, 4);
}

// The work after the last step takes longest.
TEST_P(WalkBudgetTest, CountingThatIsGivenUpEnds) {
  CountingSource source;
  source.given_up_after = 255;
  const absl::Status status = Run(Job(4096, 255), 4, source);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(source.expands, 255);
}

}  // namespace
}  // namespace millrace
