// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/add_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
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

TEST_F(AddSplitTest, SaysWhatIsWrongWithASplitOfNodes) {
  const testing::TestGraph graph = testing::RichGraph();
  ASSERT_TRUE(testing::WriteGraph(graph, 2, path_).ok());
  struct Case {
    const char *name, *type;
    std::vector<int64_t> ids;
    absl::StatusCode code;
    const char* what;
  };
  using enum absl::StatusCode;
  for (const Case& c :
       {Case{".x", "paper", {1}, kInvalidArgument, "name \".x\": a split's"},
        Case{"x",
             "",
             {1},
             kInvalidArgument,
             "type is needed: this graph has several node types"},
        Case{"x",
             "none",
             {1},
             kNotFound,
             "no node type 'none'; the node types are 'author', 'paper'"},
        Case{"train",
             "paper",
             {1},
             kAlreadyExists,
             "store: node type paper already has a split \"train\"\nchoose "
             "another name"},
        Case{"x",
             "paper",
             {1, 7},
             kInvalidArgument,
             "ids.npy: row 1: node 7 is out of range: node type paper has 7"},
        Case{"x",
             "paper",
             {1, 2, 1},
             kInvalidArgument,
             "ids.npy: row 2: node 1 occurs twice"}}) {
    SCOPED_TRACE(c.what);
    const auto added = AddSplit(
        path_, {.name = c.name, .type = c.type, .ids = File("ids.npy", c.ids)});
    EXPECT_EQ(added.status().code(), c.code) << added.status();
    EXPECT_THAT(std::string(added.status().message()), HasSubstr(c.what));
  }
  EXPECT_FALSE(fs::exists(path_ / "splits/paper/x"));
  // The same name for another type is another split; it has no times.
  const auto other = AddSplit(
      path_,
      {.name = "train", .type = "author", .ids = File("ids.npy", {4, 2})});
  ASSERT_TRUE(other.ok()) << other.status();
  const auto timed = AddSplit(
      path_, {.name = "x", .type = "paper", .ids = File("ids.npy", {6, 2, 0})});
  ASSERT_TRUE(timed.ok()) << timed.status();
  EXPECT_EQ(timed->count, 3);
  const auto store = Open();
  EXPECT_FALSE((*store->FindSplit(0, "train"))->time.present());
  const Split& split = **store->FindSplit(1, "x");
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t original = split.original_id.IntegerAt(i);
    EXPECT_EQ(split.time.IntegerAt(i), graph.types[1].time[original]);
  }
  EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
}

// The edges of paper__cites__paper have types, those of author__knows__author
// have times.
TEST_F(AddSplitTest, FindsEdgesByTheirIds) {
  const testing::TestGraph graph = testing::RichGraph();
  for (const int parts : {0, 3}) {
    fs::remove_all(path_);
    ASSERT_TRUE(testing::WriteGraph(graph, parts, path_).ok());
    for (const int relation : {0, 1, 2}) {
      const testing::TestRelation& edges = graph.relations[relation];
      NewEdgeSplit split;
      split.name = "mine";
      split.relation = edges.src + "__" + edges.name + "__" + edges.dst;
      const std::vector<int64_t> ids = {4, 0, 3, 4};
      split.edge_ids = File("ids.npy", ids);
      const auto added = AddEdgeSplit(path_, split);
      ASSERT_TRUE(added.ok()) << added.status();
      EXPECT_EQ(added->count, 4);
      EXPECT_EQ(added->has_time, relation == 2);
      EXPECT_EQ(added->has_edge_type, relation == 1);
      const auto store = Open();
      const EdgeSplit& seeds =
          store->edge_split(static_cast<size_t>(2 * relation));
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const auto& [src, dst] = edges.edges[ids[i]];
        EXPECT_EQ(seeds.edge_id.IntegerAt(at), ids[i]);
        EXPECT_EQ(seeds.src_original_id.IntegerAt(at), src);
        EXPECT_EQ(seeds.dst_original_id.IntegerAt(at), dst);
        if (relation == 2) {
          EXPECT_EQ(seeds.time.IntegerAt(at), edges.time[ids[i]]);
        }
        if (relation == 1) {
          EXPECT_EQ(seeds.edge_type.IntegerAt(at), edges.type[ids[i]]);
        }
      }
      split.name = "all";
      split.all = true;
      ASSERT_TRUE(AddEdgeSplit(path_, split).ok());
    }
    const auto store = Open();
    const EdgeSplit& all = store->edge_split(5);
    ASSERT_EQ(all.edge_id.rows(), 5);
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(all.edge_id.IntegerAt(i), i);
    EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
  }
}

TEST_F(AddSplitTest, KeepsTheColumnsOfPairs) {
  Build(2);
  NewEdgeSplit split;
  split.name = "mine";
  const auto save = [&](const char* name, const Array& array) {
    const fs::path file = directory_ / name;
    fs::remove(file);
    EXPECT_TRUE(WriteNpy(file, array).ok());
    return file;
  };
  split.pairs =
      save("pairs.npy", Array::Adopt(std::vector<int64_t>{0, 1, 5, 2}, {2, 2}));
  split.times = File("times.npy", {30, 40});
  split.edge_types = File("types.npy", {7, -8});
  split.labels = save("labels.npy", Array::Adopt(std::vector<float>{0.5, 2}));
  split.negatives =
      save("negatives.npy",
           Array::Adopt(std::vector<int64_t>{1, 2, 3, 4, 5, 6}, {2, 3}));
  const auto added = AddEdgeSplit(path_, split);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(added->negatives, 3);
  EXPECT_FALSE(added->has_edge_id);
  const auto store = Open();
  const EdgeSplit& seeds = store->edge_split(0);
  EXPECT_EQ(seeds.src_original_id.IntegerAt(1), 5);
  EXPECT_EQ(seeds.dst_original_id.IntegerAt(1), 2);
  EXPECT_EQ(seeds.time.IntegerAt(1), 40);
  EXPECT_EQ(seeds.edge_type.IntegerAt(1), -8);
  EXPECT_EQ(seeds.label.As<float>()[0], 0.5f);
  EXPECT_EQ(seeds.negative_original_id.IntegerAt(5), 6);
  EXPECT_EQ(VerifyStore(path_), absl::OkStatus());
  // Labels of a dtype that stores do not have are widened.
  std::string bytes = FormatNpyHeader(DType::kUint8, {2});
  bytes.replace(bytes.find("|u1"), 3, "|b1");
  fs::remove(split.labels);
  std::ofstream(split.labels, std::ios::binary)
      << bytes << std::string("\1\0", 2);
  split.name = "bools";
  const auto bools = AddEdgeSplit(path_, split);
  ASSERT_TRUE(bools.ok()) << bools.status();
  EXPECT_EQ(bools->label.dtype, DType::kInt64);
  EXPECT_EQ(Open()->edge_split(1).label.IntegerAt(0), 1);
}

TEST_F(AddSplitTest, SaysWhatIsWrongWithASplitOfEdges) {
  Build(2);
  AddAllEdges("edges");
  const auto save = [&](std::vector<int64_t> values,
                        std::vector<int64_t> shape) {
    static int number = 0;
    const fs::path file = directory_ / (std::to_string(number++) + ".npy");
    EXPECT_TRUE(
        WriteNpy(file, Array::Adopt(std::move(values), std::move(shape))).ok());
    return file;
  };
  const fs::path pairs = save({0, 1, 5, 2}, {2, 2});
  using Change = std::function<void(NewEdgeSplit&)>;
  const std::vector<std::pair<Change, const char*>> cases = {
      {[&](NewEdgeSplit& s) { s.name = "a/b"; }, "name \"a/b\": a split's"},
      {[&](NewEdgeSplit& s) { s.name = "edges"; },
       "store: node__to__node already has a split \"edges\"\nchoose another"},
      {[&](NewEdgeSplit& s) { s.relation = "a__b__c"; }, "a__b__c"},
      {[&](NewEdgeSplit& s) {
         s.pairs = save({1, 2, 3}, {1, 3});
       },
       " has 3 columns; give (source, destination)"},
      {[&](NewEdgeSplit& s) {
         s.pairs = save({1, 2}, {2});
       },
       " has 1 dimension; it must have 2"},
      {[&](NewEdgeSplit& s) {
         s.pairs = save({0, 8}, {1, 2});
       },
       "split \"x\": destination 0 is node 8, but node type node has 8 nodes"},
      {[&](NewEdgeSplit& s) {
         s.times = save({1, 2}, {2, 1});
       },
       " has 2 dimensions; it must have 1"},
      {[&](NewEdgeSplit& s) { s.times = save({1}, {1}); },
       "split \"x\": column time has 1 rows for 2 pairs"},
      {[&](NewEdgeSplit& s) {
         s.edge_types = save({1, 2, 3}, {3});
       },
       "split \"x\": column edge_type has 3 rows for 2 pairs"},
      {[&](NewEdgeSplit& s) {
         s.labels = save({1, 2, 3}, {3});
       },
       "split \"x\": column label has 3 rows for 2 pairs"},
      {[&](NewEdgeSplit& s) {
         s.negatives = save({1, 2}, {2});
       },
       " has 1 dimension; it must have 2"},
      {[&](NewEdgeSplit& s) {
         s.negatives = save({1, 2, 3, 8}, {2, 2});
       },
       "split \"x\": negative 3 is node 8, but node type node has 8 nodes"},
      {[&](NewEdgeSplit& s) {
         s.pairs.clear();
         s.edge_ids = save({3, 11, 12}, {3});
       },
       "edge id 12 at position 2: node__to__node has no such edge; its ids are "
       "0 to 11"},
      {[&](NewEdgeSplit& s) {
         s.pairs.clear();
         s.edge_ids = save({-1}, {1});
       },
       "edge id -1 at position 0: "},
      {[&](NewEdgeSplit& s) {
         s.pairs.clear();
         s.edge_ids = save({1, 2}, {1, 2});
       },
       " has 2 dimensions; it must have 1"}};
  for (const auto& [change, what] : cases) {
    NewEdgeSplit split;
    split.name = "x";
    split.pairs = pairs;
    change(split);
    const auto added = AddEdgeSplit(path_, split);
    ASSERT_FALSE(added.ok()) << what;
    EXPECT_THAT(std::string(added.status().message()), HasSubstr(what));
    EXPECT_FALSE(fs::exists(path_ / "splits/node__to__node/x"));
  }
  fs::remove_all(path_);
  ASSERT_TRUE(testing::WriteGraph(testing::RichGraph(), 2, path_).ok());
  NewEdgeSplit split;
  split.name = "x";
  split.all = true;
  EXPECT_EQ(AddEdgeSplit(path_, split).status().message(),
            "type is needed: this graph has several relations");
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
