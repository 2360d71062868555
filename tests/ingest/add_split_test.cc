// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/add_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/file/file.h"
#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/graph/verify_content.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/split_seed_reader.h"
#include "tests/support/store_builder.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AddSplitTest : public testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    path_ = directory_ / "store";
  }

  void Build(int parts) {
    ASSERT_TRUE(testing::WriteGraph(testing::SmallGraph(), parts, path_).ok());
  }

  std::unique_ptr<Store> Open() const { return Store::Open(path_).value(); }

  fs::path File(const std::string& name, std::vector<int64_t> values) const {
    const fs::path file = directory_ / name;
    fs::remove(file);
    EXPECT_TRUE(WriteNpy(file, Array::Adopt(std::move(values))).ok());
    return file;
  }

  void Add(const std::string& name, std::vector<int64_t> ids) const {
    const auto added = AddSplit(
        path_,
        {.name = name, .type = "", .ids = File(name + ".npy", std::move(ids))});
    ASSERT_TRUE(added.ok()) << added.status();
  }
  void AddAllEdges(const std::string& name) const {
    NewEdgeSplit split;
    split.name = name;
    split.all = true;
    const auto added = AddEdgeSplit(path_, split);
    ASSERT_TRUE(added.ok()) << added.status();
  }

  std::string FingerprintOf(const std::string& name) const {
    const auto store = Open();
    const auto place = store->manifest().FindSplit(0, name);
    EXPECT_TRUE(place.ok()) << place.status();
    return store->manifest().splits[*place].identity.fingerprint;
  }

  fs::path path_;
};

TEST_F(AddSplitTest, StoresKeepTheirFingerprints) {
  Build(2);
  const auto before = Open();
  Add("mine", {1, 3, 5});
  AddAllEdges("edges");
  const auto after = Open();
  EXPECT_EQ(after->manifest().fingerprint, before->manifest().fingerprint);
  EXPECT_EQ(after->manifest().dataset_fingerprint,
            before->manifest().dataset_fingerprint);
  EXPECT_EQ(after->manifest().uuid, before->manifest().uuid);
  EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
}

TEST_F(AddSplitTest, FingerprintsDependOnSeedsButNotOnPartitions) {
  const auto with_split = [this](int parts, std::vector<int64_t> seeds) {
    fs::remove_all(path_);
    Build(parts);
    Add("mine", std::move(seeds));
    return FingerprintOf("mine");
  };
  EXPECT_EQ(with_split(2, {3, 1, 6}), with_split(3, {3, 1, 6}));
  EXPECT_NE(with_split(2, {3, 1, 6}), with_split(2, {3, 1, 7}));
}

// All lookup tables except the last have the same length.
TEST_F(AddSplitTest, SeedsAreTheNodesOfAnyPartition) {
  for (const int64_t nodes : {5, 7, 8, 10, 11}) {
    fs::remove_all(path_);
    const testing::TestGraph graph = {{{.count = nodes}}, {{}}, {}};
    ASSERT_TRUE(testing::WriteGraph(graph, nodes < 10 ? 2 : 3, path_).ok());
    std::vector<int64_t> all(static_cast<size_t>(nodes));
    std::iota(all.begin(), all.end(), 0);
    Add("mine", all);
    EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
    const auto store = Open();
    const PartitionBook& book = store->book(0);
    const Split& split = **store->FindSplit(0, "mine");
    for (int64_t i = 0; i < nodes; ++i) {
      const auto id = static_cast<uint64_t>(split.id.IntegerAt(i));
      const int owner = book.Owner(id);
      EXPECT_EQ(store->partition(owner)->nodes[0].original_id.IntegerAt(
                    static_cast<int64_t>(id - book.begin(owner))),
                split.original_id.IntegerAt(i));
    }
  }
}

// An earlier version wrote this store: its splits, one added to the dataset and
// one to the store, have no fingerprints of their own.
TEST_F(AddSplitTest, StoresOfEarlierVersionsKeepTheirFingerprints) {
  fs::copy(fs::path(MILLRACE_SOURCE_DIR) / "tests/golden/store-2", path_,
           fs::copy_options::recursive);
  constexpr char kFingerprint[] =
      "c0cac3e0eac63e4cb3995c6f23b1a8e00d7039f4a6e0cb4d8da025eb70845a7b";
  constexpr char kDataset[] =
      "a03028786bd18e4a33643b0a4a5289e606f904154216013b40d30bb2345eb5bc";
  const auto before = Open();
  ASSERT_EQ(before->manifest().splits.size(), 4u);
  ASSERT_EQ(before->manifest().edge_splits.size(), 1u);
  EXPECT_EQ(before->manifest().fingerprint, kFingerprint);
  EXPECT_EQ(before->manifest().dataset_fingerprint, kDataset);
  EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
  const std::string added = FingerprintOf("added");
  Add("mine", {3, 7, 11, 19});
  AddAllEdges("edges");
  const auto after = Open();
  EXPECT_EQ(after->manifest().fingerprint, kFingerprint);
  EXPECT_EQ(after->manifest().dataset_fingerprint, kDataset);
  EXPECT_EQ(FingerprintOf("added"), added);
  EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
  // The split has the same fingerprint in another store, of today's version.
  fs::remove_all(path_);
  const testing::TestGraph graph = {{{.count = 24}}, {{}}, {}};
  ASSERT_TRUE(testing::BuildDataset(graph, path_).ok());
  Add("added", {3, 7, 11, 19});
  EXPECT_EQ(FingerprintOf("added"), added);
}

TEST_F(AddSplitTest, OpenStoresFindTheNewSplits) {
  Build(2);
  const auto before = Open();
  EXPECT_EQ(*before->WithNewSplits(), nullptr);
  Add("mine", {1, 3, 5});
  AddAllEdges("edges");
  EXPECT_FALSE(before->FindSplit(0, "mine").ok());
  const auto now = before->WithNewSplits();
  ASSERT_TRUE(now.ok() && *now != nullptr) << now.status();
  const auto fresh = Open();
  EXPECT_EQ((*now)->manifest().splits, fresh->manifest().splits);
  EXPECT_EQ((*now)->manifest().edge_splits, fresh->manifest().edge_splits);
  EXPECT_EQ((*(*now)->FindSplit(0, "mine"))->original_id.IntegerAt(2), 5);
  // All share one graph, and one set of members and seeds.
  EXPECT_EQ((*now)->partition(1), before->partition(1));
  EXPECT_EQ(*(*now)->FindMembers(0, "train"), *before->FindMembers(0, "train"));
  EXPECT_EQ(*(*now)->WithNewSplits(), nullptr);
}

TEST_F(AddSplitTest, SeedsOfNewSplitsAreThoseOfAFreshStore) {
  Build(3);
  const auto before = Open();
  const SplitSeedReader old_seeds(*before);
  Add("mine", {1, 3, 5, 6});
  const auto now = before->WithNewSplits();
  ASSERT_TRUE(now.ok() && *now != nullptr) << now.status();
  const SplitSeedReader seeds(**now, old_seeds);
  const auto fresh = Open();
  const SplitSeedReader fresh_seeds(*fresh);
  for (const char* split : {"train", "mine"}) {
    JobSpec spec;
    spec.split = split;
    spec.fanouts = {1};
    spec.batch_size = 2;
    spec.seed_order = SeedOrder::kLocal;
    const auto job = ResolveJob(spec, fresh->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto got = seeds.ReadBatch(*job, 0, 0);
    const auto want = fresh_seeds.ReadBatch(*job, 0, 0);
    ASSERT_TRUE(got.ok() && want.ok()) << got.status();
    EXPECT_EQ(got->ids, want->ids);
  }
}

TEST_F(AddSplitTest, RefusesPairsOfNodesThatDoNotExist) {
  Build(2);
  for (const int64_t node : {7, 8, -1}) {
    NewEdgeSplit split;
    split.name = "pairs" + std::to_string(node + 1);
    split.pairs = directory_ / "pairs.npy";
    fs::remove(split.pairs);
    ASSERT_TRUE(
        WriteNpy(split.pairs,
                 Array::Adopt(std::vector<int64_t>{0, 1, 1, node}, {2, 2}))
            .ok());
    const absl::Status status = AddEdgeSplit(path_, split).status();
    EXPECT_EQ(status.ok(), node == 7) << status;
  }
}

// VerifyStore() would find the checksum wrong first.
TEST_F(AddSplitTest, OutOfRangeEndpointsAreViolations) {
  Build(2);
  NewEdgeSplit split;
  split.name = "pairs";
  split.all = true;
  ASSERT_TRUE(AddEdgeSplit(path_, split).ok());
  EXPECT_EQ(VerifyEdgeSplit(*Open(), 0), absl::OkStatus());
  for (const char* column : {"src", "dst"}) {
    const fs::path file = path_ / SplitPath("node__to__node", "pairs", column);
    const std::string good = ReadFile(file, 1 << 20).value();
    for (const uint32_t id : {6u, 8u}) {
      std::string damaged = good;
      std::memcpy(&damaged[damaged.size() - sizeof id], &id, sizeof id);
      ASSERT_NE(damaged, good);
      std::ofstream(file) << damaged;
      const absl::Status status = VerifyEdgeSplit(*Open(), 0);
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(file.string() + "[11]: "));
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(id == 8 ? "out of range: there are 8 nodes"
                                    : "has original id"));
    }
    std::ofstream(file) << good;
  }
}

TEST_F(AddSplitTest, OpenStoresIgnoreOtherChanges) {
  Build(2);
  Add("mine", {1, 3, 5});
  const auto before = Open();
  const fs::path other = directory_ / "other";
  fs::rename(path_, other);
  const auto expect_refusal = [&](const char* what) {
    const absl::Status status = before->WithNewSplits().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    fs::remove_all(path_);
  };
  Build(2);  // has another uuid
  expect_refusal("another store");
  fs::copy(other, path_, fs::copy_options::recursive);
  // This is like a restored older copy to which a split of the same name was
  // added.
  Manifest manifest = before->manifest();
  manifest.splits.pop_back();
  std::erase_if(manifest.files, [](const FileInfo& file) {
    return file.path.starts_with("splits/node/mine/");
  });
  std::ofstream(path_ / "store.json") << FormatManifest(manifest);
  Add("mine", {1, 3, 6});
  expect_refusal("another split of a name that is in use");
  EXPECT_TRUE(absl::IsNotFound(before->WithNewSplits().status()));
}

}  // namespace
}  // namespace millrace
