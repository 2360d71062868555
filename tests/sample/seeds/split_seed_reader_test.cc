// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/split_seed_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/sample/resolve_job.h"
#include "tests/support/store_builder.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::BuildStore;
using ::testing::HasSubstr;
using testing::SpreadAssignment;
using testing::TestDirectory;
using testing::TestGraph;

constexpr int kParts = 3;
constexpr int64_t kBatchSize = 50;

// 1000 nodes spread over the partitions; two in three are seeds.
TestGraph Graph() {
  TestGraph graph;
  graph.types = {{.count = 1000}};
  graph.relations = {{.edges = {{0, 1}}}};
  graph.splits = {{}};
  for (int64_t v = 0; v < 1000; ++v) {
    if (v % 3 != 1) graph.splits[0].ids.push_back(v);
  }
  return graph;
}

class SplitSeedReaderTest : public ::testing::Test {
 protected:
  SplitSeedReaderTest()
      : graph_(Graph()),
        owner_(SpreadAssignment(graph_, kParts)),
        path_(TestDirectory("split_seeds") / "store") {
    EXPECT_TRUE(BuildStore(graph_, kParts, owner_, path_).ok());
    Reopen();
  }
  ~SplitSeedReaderTest() override {
    std::filesystem::remove_all(path_.parent_path());
  }

  void Reopen() { store_ = Store::Open(path_).value(); }

  ResolvedJob Job(SeedOrder order, bool shuffle) const {
    JobSpec spec;
    spec.fanouts = {1};
    spec.batch_size = kBatchSize;
    spec.seed_order = order;
    spec.shuffle = shuffle;
    auto job = ResolveJob(spec, store_->manifest());
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }

  // The seeds of all batches of an epoch; empty after an error.
  static std::vector<std::vector<int64_t>> Epoch(const SplitSeedReader& seeds,
                                                 const ResolvedJob& job) {
    std::vector<std::vector<int64_t>> batches;
    while (true) {
      const auto batch =
          seeds.ReadBatch(job, 2, static_cast<uint32_t>(batches.size()));
      if (absl::IsOutOfRange(batch.status())) return batches;
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) return {};
      batches.push_back(batch->original_ids);
    }
  }

  const TestGraph graph_;
  const std::vector<std::vector<int>> owner_;
  const std::filesystem::path path_;
  std::unique_ptr<Store> store_;
};

TEST_F(SplitSeedReaderTest, LocalBatchesAreOfOnePartitionInSplitOrder) {
  std::vector<std::vector<int64_t>> expected;
  for (int part = 0; part < kParts; ++part) {
    int64_t count = 0;
    for (const int64_t v : graph_.splits[0].ids) {
      if (owner_[0][v] != part) continue;
      if (count++ % kBatchSize == 0) expected.emplace_back();
      expected.back().push_back(v);
    }
  }
  const SplitSeedReader seeds(*store_);
  EXPECT_EQ(Epoch(seeds, Job(SeedOrder::kLocal, false)), expected);
}

TEST_F(SplitSeedReaderTest, ShuffledLocalBatchesHoldEverySeedOnce) {
  const SplitSeedReader seeds(*store_);
  std::vector<int64_t> all;
  for (const auto& batch : Epoch(seeds, Job(SeedOrder::kLocal, true))) {
    for (const int64_t v : batch) {
      EXPECT_EQ(owner_[0][v], owner_[0][batch[0]]);
      all.push_back(v);
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, graph_.splits[0].ids);
}

TEST_F(SplitSeedReaderTest, IdsAndOriginalIdsMatch) {
  const SplitSeedReader seeds(*store_);
  for (const SeedOrder order : {SeedOrder::kLocal, SeedOrder::kGlobal}) {
    const auto batch = seeds.ReadBatch(Job(order, true), 0, 1);
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (size_t i = 0; i < batch->ids.size(); ++i) {
      const PartitionBook& book = store_->book(0);
      const int part = book.Owner(batch->ids[i]);
      const auto row = static_cast<int64_t>(batch->ids[i] - book.begin(part));
      EXPECT_EQ(store_->partition(part)->nodes[0].original_id.IntegerAt(row),
                batch->original_ids[i]);
    }
  }
}

TEST_F(SplitSeedReaderTest, ThreadsMayAskForTheFirstBatchAtOnce) {
  const ResolvedJob job = Job(SeedOrder::kLocal, true);
  const auto expected = Epoch(SplitSeedReader(*store_), job);
  const SplitSeedReader seeds(*store_);
  std::vector<std::vector<std::vector<int64_t>>> seen(8);
  std::vector<std::thread> threads;
  for (auto& batches : seen) {
    threads.emplace_back([&] { batches = Epoch(seeds, job); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& batches : seen) EXPECT_EQ(batches, expected);
}

// Seed i goes from user i to item 2 * i mod 11; every column encodes i.
EdgeSplitColumns PairsOfEveryColumn() {
  constexpr int64_t kSeeds = 9;
  std::vector<int64_t> src, dst, edge_id, time, negative;
  std::vector<int32_t> type;
  std::vector<float> label;
  for (int64_t i = 0; i < kSeeds; ++i) {
    src.push_back(i);
    dst.push_back(2 * i % 11);
    edge_id.push_back(i);
    time.push_back(100 + i);
    type.push_back(static_cast<int32_t>(7 * i));
    label.push_back(static_cast<float>(i) / 2);
    negative.insert(negative.end(), {i, 10 - i});
  }
  return {.name = "train",
          .src = Array::Adopt(src),
          .dst = Array::Adopt(dst),
          .edge_id = Array::Adopt(edge_id),
          .time = Array::Adopt(time),
          .edge_type = Array::Adopt(type),
          .label = Array::Adopt(label),
          .negative = Array::Adopt(negative, {kSeeds, 2})};
}

class EdgeSplitTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Partitions, EdgeSplitTest, ::testing::Values(0, 1, 3));

TEST_P(EdgeSplitTest, SeedsHaveAllColumnsOfTheirRows) {
  TestGraph graph;
  graph.types = {{.name = "user", .count = 9}, {.name = "item", .count = 11}};
  graph.relations = {{.src = "user", .dst = "item", .edges = {{0, 1}}}};
  graph.edge_splits = {PairsOfEveryColumn()};
  const auto store = testing::TestStore(graph, GetParam()).Open();
  JobSpec spec;
  spec.fanouts = {1};
  spec.seed_kind = SeedKind::kEdge;
  spec.batch_size = 4;
  const auto job = ResolveJob(spec, store->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const auto original_of = [&store](TypeIndex type, uint64_t id) {
    const PartitionBook& book = store->book(type);
    const int part = book.Owner(id);
    return store->partition(part)->nodes[type].original_id.IntegerAt(
        static_cast<int64_t>(id - book.begin(part)));
  };
  const SplitSeedReader seeds(*store);
  std::vector<int64_t> seen;
  for (uint32_t batch = 0; batch < 3; ++batch) {
    const auto read = seeds.ReadBatch(*job, 0, batch);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->size(), batch < 2 ? 4u : 1u);
    for (size_t row = 0; row < read->size(); ++row) {
      const int64_t i = read->original_ids[row];
      seen.push_back(i);
      EXPECT_EQ(original_of(0, read->ids[row]), i);
      EXPECT_EQ(read->dst.original_ids[row], 2 * i % 11);
      EXPECT_EQ(original_of(1, read->dst.ids[row]), 2 * i % 11);
      EXPECT_EQ(read->times.at(row), 100 + i);
      EXPECT_EQ(read->edge_types.at(row), 7 * i);
      EXPECT_EQ(read->label.As<float>()[row], static_cast<float>(i) / 2);
      for (const size_t k : {0, 1}) {
        const int64_t negative = k == 0 ? i : 10 - i;
        EXPECT_EQ(read->negative_dst.original_ids.at(2 * row + k), negative);
        EXPECT_EQ(original_of(1, read->negative_dst.ids.at(2 * row + k)),
                  negative);
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(DamagedEdgeSplitTest, IsNamedAfterItsRelation) {
  TestGraph graph;
  graph.types = {{.count = 9}};
  graph.relations = {{.name = "to", .edges = {{0, 1}}},
                     {.name = "from", .edges = {{1, 0}}}};
  EdgeSplitColumns& split = graph.edge_splits.emplace_back();
  split.relation = 1;
  split.name = "train";
  split.src = Array::Adopt(std::vector<int64_t>{0, 1, 2});
  split.dst = Array::Adopt(std::vector<int64_t>{3, 4, 5});
  const testing::TestStore stored(graph);
  const std::filesystem::path file =
      stored.path() / SplitPath("node__from__node", "train", "dst");
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  const uint32_t id = 9;
  out.seekp(-4, std::ios::end);
  out.write(reinterpret_cast<const char*>(&id), sizeof(id));
  out.close();
  const auto store = stored.Open();
  JobSpec spec;
  spec.fanouts = {1};
  spec.seed_kind = SeedKind::kEdge;
  spec.seed_type = "node__from__node";
  const auto job = ResolveJob(spec, store->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status damaged =
      SplitSeedReader(*store).ReadBatch(*job, 0, 0).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(file.string()));
}

TEST_F(SplitSeedReaderTest, DamagedSplitIsNamed) {
  const std::filesystem::path file = path_ / SplitPath("node", "train", "id");
  const auto write_last_id = [&](uint32_t id) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(-4, std::ios::end);
    out.write(reinterpret_cast<const char*>(&id), sizeof(id));
  };
  const auto error = [&]() -> std::string {
    Reopen();
    const SplitSeedReader seeds(*store_);
    const auto status =
        seeds.ReadBatch(Job(SeedOrder::kLocal, true), 0, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  write_last_id(1000);
  EXPECT_THAT(error(),
              AllOf(HasSubstr(file.string()),
                    HasSubstr("index 666 is 1000, but there are 1000 nodes")));
  // The last seed, 999, is in partition 0; this one is in another.
  write_last_id(999);
  EXPECT_THAT(error(),
              AllOf(HasSubstr(file.string()),
                    HasSubstr("partition 2 owns more seeds than the")));
}

}  // namespace
}  // namespace millrace
