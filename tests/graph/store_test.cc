// SPDX-License-Identifier: Apache-2.0
#include "common/graph/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/huge_array.h"
#include "common/file/npy.h"
#include "tests/support/store_builder.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::BuildDataset;
using ::testing::HasSubstr;
using testing::RichGraph;
using testing::SmallGraph;
using ::testing::StartsWith;
using testing::TestGraph;

class StoreTest : public testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    path_ = directory_ / "store";
  }

  void Build(const TestGraph& graph, int parts) {
    const absl::Status built = testing::WriteGraph(graph, parts, path_);
    ASSERT_TRUE(built.ok()) << built;
  }

  // Replaces the array in a file of the store and updates store.json to match.
  void WriteRows(Manifest manifest, const fs::path& file,
                 const Array& array) const {
    fs::remove(path_ / file);
    const auto written = WriteNpy(path_ / file, array);
    ASSERT_TRUE(written.ok()) << written.status();
    for (FileInfo& info : manifest.files) {
      if (info.path != file) continue;
      info.bytes = written->file_bytes;
      info.xxh3 = written->xxh3;
    }
    SetFingerprints(manifest);
    std::ofstream(path_ / "store.json") << FormatManifest(manifest);
  }

  absl::Status OpenStatus(std::vector<int> partitions = {}) const {
    return Store::Open(path_, std::move(partitions)).status();
  }

  fs::path path_;
};

// (source, destination, edge id), with original ids.
using EdgeSet = std::set<std::tuple<int64_t, int64_t, int64_t>>;

EdgeSet EdgesOf(const Store& store, RelationIndex index, Direction direction) {
  const Relation& relation = store.schema().relations[index];
  const bool in = direction == Direction::kIn;
  const TypeIndex owner = in ? relation.dst : relation.src;
  const TypeIndex other = in ? relation.src : relation.dst;
  const auto original = [&store](TypeIndex type, int64_t id) {
    const PartitionBook& book = store.book(type);
    const int part = book.Owner(static_cast<uint64_t>(id));
    return store.partition(part)->nodes[type].original_id.IntegerAt(
        id - static_cast<int64_t>(book.begin(part)));
  };
  EdgeSet edges;
  for (const int part : store.mapped_partitions()) {
    const NeighborLists& lists =
        store.partition(part)->edges[index].lists(direction);
    const auto indptr = lists.indptr.As<int64_t>();
    const auto begin = static_cast<int64_t>(store.book(owner).begin(part));
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
      const int64_t self = original(owner, begin + static_cast<int64_t>(row));
      for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
        const int64_t peer = original(other, lists.indices.IntegerAt(i));
        edges.emplace(in ? peer : self, in ? self : peer,
                      lists.edge_id.As<int64_t>()[static_cast<size_t>(i)]);
      }
    }
  }
  return edges;
}

EdgeSet EdgesOf(const testing::TestRelation& relation) {
  EdgeSet edges;
  for (size_t i = 0; i < relation.edges.size(); ++i) {
    edges.emplace(relation.edges[i].first, relation.edges[i].second, i);
  }
  return edges;
}

TEST_F(StoreTest, ReadsDatasetWithOriginalIds) {
  ASSERT_TRUE(BuildDataset(SmallGraph(), path_).ok());
  const auto store = Store::Open(path_).value();
  EXPECT_EQ(store->partition_count(), 1);
  EXPECT_TRUE(store->schema().homogeneous());
  const NodeColumns& nodes = store->partition(0)->nodes[0];
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(nodes.original_id.IntegerAt(i), i);
    EXPECT_EQ(nodes.lookup.IntegerAt(i), i);
  }
  EXPECT_FALSE(nodes.hotness.present());
  EXPECT_FLOAT_EQ(nodes.feature.As<float>()[3 * 2 + 1], 2.125F);
  const auto split = store->FindSplit(0, "test");
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT((*split)->original_id.As<int64_t>(),
              ::testing::ElementsAre(2, 5));
}

TEST_F(StoreTest, KeepsEdgesInAnyPartitioning) {
  const TestGraph graph = RichGraph();
  for (const int parts : {1, 2, 3, 7, 11}) {
    fs::remove_all(path_);
    Build(graph, parts);
    const auto store = Store::Open(path_).value();
    for (size_t i = 0; i < graph.relations.size(); ++i) {
      const auto index = static_cast<RelationIndex>(i);
      EXPECT_EQ(EdgesOf(*store, index, Direction::kIn),
                EdgesOf(graph.relations[i]));
      if (!graph.relations[i].out) continue;
      EXPECT_EQ(EdgesOf(*store, index, Direction::kOut),
                EdgesOf(graph.relations[i]));
    }
  }
}

TEST_F(StoreTest, MapsOnlyTheNamedPartitions) {
  Build(SmallGraph(), 3);
  const auto store = Store::Open(path_, {2, 0, 2}).value();
  EXPECT_THAT(store->mapped_partitions(), ::testing::ElementsAre(0, 2));
  EXPECT_NE(store->partition(0), nullptr);
  EXPECT_EQ(store->partition(1), nullptr);
  // Partitions that are not requested need not exist.
  fs::remove_all(path_ / "part-00001");
  EXPECT_TRUE(OpenStatus({0, 2}).ok());
  EXPECT_EQ(OpenStatus(),
            absl::NotFoundError(
                "partition 1 of " + path_.string() +
                " is not on this host: it has 0, 2\ncopy part-00001 from a "
                "host that has it, or name partitions that are here"));
  EXPECT_THAT(Store::OpenOnHost(path_).value()->mapped_partitions(),
              ::testing::ElementsAre(0, 2));
  EXPECT_FALSE(Store::OpenOnHost(path_).value()->is_whole());
  // A folder without all of its files is damaged.
  fs::create_directory(path_ / "part-00001");
  EXPECT_EQ(OpenStatus({1}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Store::OpenOnHost(path_).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(StoreTest, GivesListTimesByDirection) {
  Build(RichGraph(), 2);
  const auto store = Store::Open(path_).value();
  const Partition& part = *store->partition(0);
  // Papers have times, authors do not.
  EXPECT_FALSE(part.edges[0].in.time.present());
  EXPECT_TRUE(part.edges[0].out.time.present());
  EXPECT_TRUE(part.edges[0].out.slot.present());
  EXPECT_FALSE(part.edges[0].in.slot.present());
  EXPECT_TRUE(part.edges[1].in.time.present());
  EXPECT_TRUE(part.edges[2].in.time.present());
  EXPECT_FALSE(part.edges[2].out.present());
}

TEST_F(StoreTest, ReportsMissingStoresPartitionsAndSplits) {
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kNotFound);
  Build(SmallGraph(), 2);
  EXPECT_EQ(OpenStatus({2}).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(OpenStatus({-1}).code(), absl::StatusCode::kOutOfRange);
  const auto store = Store::Open(path_);
  const absl::Status split = (*store)->FindSplit(0, "valid").status();
  EXPECT_EQ(split.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(split.message()), HasSubstr("train, test"));
}

TEST_F(StoreTest, NamesEachMissingFile) {
  Build(RichGraph(), 2);
  const auto store = Store::Open(path_).value();
  for (const FileInfo& file : store->manifest().files) {
    fs::rename(path_ / file.path, directory_ / "away");
    const absl::Status status = OpenStatus();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(file.path));
    fs::rename(directory_ / "away", path_ / file.path);
  }
  EXPECT_TRUE(OpenStatus().ok());
}

TEST_F(StoreTest, NamesEachFileOfTheWrongSize) {
  Build(RichGraph(), 2);
  const auto store = Store::Open(path_).value();
  for (const FileInfo& file : store->manifest().files) {
    // An empty array consists only of its header; one byte less is damage too.
    for (const uint64_t bytes :
         {file.bytes - 1, file.bytes + 1, uint64_t{0}, uint64_t{9}}) {
      const fs::path copy = directory_ / "copy";
      fs::copy_file(path_ / file.path, copy,
                    fs::copy_options::overwrite_existing);
      fs::resize_file(path_ / file.path, bytes);
      const absl::Status status = OpenStatus();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(file.path));
      fs::rename(copy, path_ / file.path);
    }
  }
  EXPECT_TRUE(OpenStatus().ok());
}

TEST_F(StoreTest, RefusesSwappedColumns) {
  Build(SmallGraph(), 1);
  const fs::path lists = path_ / "part-00000/edges/node__to__node/in";
  fs::copy_file(lists / "indptr.npy", lists / "edge_id.npy",
                fs::copy_options::overwrite_existing);
  const absl::Status status = OpenStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("edge_id.npy"));
}

// The size matches store.json, so only the number of rows is wrong.
TEST_F(StoreTest, RefusesEdgeColumnsWhoseLengthDiffersFromIndices) {
  Build(RichGraph(), 2);
  const Manifest manifest = (*Store::Open(path_))->manifest();
  std::set<std::string> columns;
  for (const FileInfo& file : manifest.files) {
    const fs::path path(file.path);
    const std::string column = path.stem();
    const std::string folder = path.parent_path().filename();
    if ((folder != "in" && folder != "out") || column == "indptr") continue;
    columns.insert(column);
    const Array array = *MapNpy(path_ / path);
    for (const int64_t more : {-1, 1}) {
      if (array.rows() + more < 0) continue;
      WriteRows(manifest, path,
                Array::Allocate(array.dtype(), {array.rows() + more}));
      const absl::Status status = OpenStatus();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << file.path;
      // The end of a list contradicts its indices.
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(column == "indices" ? "indptr" : file.path));
    }
    WriteRows(manifest, path, array);
    ASSERT_TRUE(OpenStatus().ok()) << OpenStatus();
  }
  EXPECT_THAT(columns, ::testing::ElementsAre(
                           "edge_id", "indices", "neighbor_original_id", "slot",
                           "time", "type", "weight", "weight_sum"));
}

TEST_F(StoreTest, KeepsBFloat16Features) {
  TestGraph graph = SmallGraph();
  graph.types[0].feature = Array::Allocate(DType::kBFloat16, {8, 2});
  auto* bytes = graph.types[0].feature.mutable_data();
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(BuildDataset(graph, path_).ok());
  const auto store = Store::Open(path_).value();
  const Array& feature = store->partition(0)->nodes[0].feature;
  EXPECT_EQ(feature.dtype(), DType::kBFloat16);
  EXPECT_EQ(feature.data()[31], std::byte{31});
}

TEST_F(StoreTest, StaysReadableWhileAnArrayLives) {
  ASSERT_TRUE(BuildDataset(SmallGraph(), path_).ok());
  Array ids;
  {
    const auto store = Store::Open(path_).value();
    ids = store->partition(0)->nodes[0].original_id;
  }
  fs::remove_all(path_);
  EXPECT_EQ(ids.IntegerAt(7), 7);
}

TEST_F(StoreTest, StaysMappedUnlessThereIsMemoryForAllCopies) {
  ASSERT_TRUE(BuildDataset(RichGraph(), path_).ok());
  const auto store = Store::Open(path_).value();
  const std::byte* mapped = store->partition(0)->nodes[0].original_id.data();
  int left = 3;
  const auto allocate =
      [&left](DType dtype,
              std::vector<int64_t> shape) -> absl::StatusOr<Array> {
    if (left-- == 0) return absl::ResourceExhaustedError("no room\nlet go");
    return AllocateHugeArray(dtype, std::move(shape));
  };
  const absl::Status status =
      store->LoadIntoMemory(Store::Content::kGraph, allocate);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("no room; "),
                    HasSubstr(" are needed for the graph\nmap the files")));
  EXPECT_EQ(store->partition(0)->nodes[0].original_id.data(), mapped);
  EXPECT_EQ(store->loaded_bytes(Store::Content::kGraph), 0);
  for (const FileInfo& file : store->manifest().files) {
    EXPECT_EQ(store->FindLoaded(file.path), nullptr) << file.path;
  }
  EXPECT_EQ(store->LoadIntoMemory(Store::Content::kGraph), absl::OkStatus());
  EXPECT_NE(store->partition(0)->nodes[0].original_id.data(), mapped);
}

// A graph with columns of every kind, of nodes, edges and both kinds of splits.
TestGraph GraphWithPairs() {
  TestGraph graph = RichGraph();
  const auto longs = [](std::vector<int64_t> values) {
    return Array::Adopt(std::move(values));
  };
  graph.edge_splits.push_back(
      {.relation = 0,
       .name = "pairs",
       .src = longs({4, 0}),
       .dst = longs({6, 2}),
       .edge_id = longs({3, 4}),
       .time = longs({7, 8}),
       .edge_type = Array::Adopt(std::vector<int32_t>{2, 1}),
       .label = Array::Adopt(std::vector<float>{0.5F, 1}),
       .negative =
           Array::Adopt(std::vector<int64_t>{1, 2, 3, 4, 5, 6}, {2, 3})});
  return graph;
}

std::string ShapeOf(const Array& array) {
  std::string shape = std::to_string(array.rows());
  for (size_t i = 1; i < array.shape().size(); ++i) {
    shape += ", " + std::to_string(array.shape()[i]);
  }
  return " (" + shape + ")";
}

// The size matches store.json, so only the dtype or the shape is wrong.
TEST_F(StoreTest, RefusesColumnsOfAnotherDTypeOrShape) {
  Build(GraphWithPairs(), 1);
  const Manifest manifest = (*Store::Open(path_))->manifest();
  std::set<std::string> columns;
  for (const FileInfo& file : manifest.files) {
    const fs::path path(file.path);
    const std::string column = path.stem();
    const Array array = *MapNpy(path_ / path);
    const bool list = column == "indices" ||
                      file.path.find("/in/") != file.path.npos ||
                      file.path.find("/out/") != file.path.npos;
    std::vector<Array> others = {Array::Allocate(DType::kInt8, array.shape())};
    std::vector<int64_t> shape = array.shape();
    shape.push_back(1);
    others.push_back(Array::Allocate(array.dtype(), shape));
    if (array.shape().size() == 2) {
      shape = array.shape();
      ++shape[1];
      others.push_back(Array::Allocate(array.dtype(), shape));
    }
    if (!list && column != "feature") {
      shape = array.shape();
      ++shape[0];
      others.push_back(Array::Allocate(array.dtype(), shape));
    }
    for (const Array& other : others) {
      WriteRows(manifest, path, other);
      const absl::Status status = OpenStatus();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << file.path;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(
              HasSubstr((path_ / path).string() + " holds " +
                        std::string(DTypeName(other.dtype())) + ShapeOf(other)),
              HasSubstr("but store.json asks for " +
                        std::string(DTypeName(array.dtype())) + " (")));
    }
    WriteRows(manifest, path, array);
    ASSERT_TRUE(OpenStatus().ok()) << OpenStatus();
    columns.insert(column);
  }
  EXPECT_EQ(columns.size(), 23u) << ::testing::PrintToString(columns);
}

TEST_F(StoreTest, RefusesListsThatDoNotCoverTheirEntries) {
  Build(SmallGraph(), 1);
  const Manifest manifest = (*Store::Open(path_))->manifest();
  const fs::path file = "part-00000/edges/node__to__node/in/indptr.npy";
  const std::vector<int64_t> good = [&] {
    const Array array = *MapNpy(path_ / file);
    const auto values = array.As<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }();
  for (const auto& [first, last] : {std::pair(1, 12), std::pair(-1, 12),
                                    std::pair(0, 11), std::pair(0, 13)}) {
    std::vector<int64_t> values = good;
    values.front() = first;
    values.back() = last;
    WriteRows(manifest, file, Array::Adopt(std::move(values)));
    const absl::Status status = OpenStatus();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(),
              (path_ / file).string() + " goes from " + std::to_string(first) +
                  " to " + std::to_string(last) +
                  "; it must go from 0 to the 12 edges of indices.npy");
  }
}

TEST_F(StoreTest, ErrorsOfOpeningNameThePathAndTheLimit) {
  EXPECT_EQ(OpenStatus().message(), "no dataset or store at " + path_.string() +
                                        ": there is no store.json");
  Build(SmallGraph(), 3);
  for (const int part : {-1, 3}) {
    EXPECT_EQ(OpenStatus({0, part}).message(),
              "no partition " + std::to_string(part) + " in " + path_.string() +
                  "; it has 0 to 2");
  }
  EXPECT_EQ(OpenStatus({2}), absl::OkStatus());
  Manifest manifest = (*Store::Open(path_))->manifest();
  const FileInfo first = manifest.files.front();
  ++manifest.files[0].bytes;
  SetFingerprints(manifest);
  std::ofstream(path_ / "store.json") << FormatManifest(manifest);
  EXPECT_EQ(OpenStatus(),
            absl::DataLossError((path_ / first.path).string() + " has " +
                                std::to_string(first.bytes) +
                                " bytes, but store.json says " +
                                std::to_string(first.bytes + 1)));
  manifest.files.erase(manifest.files.begin());
  SetFingerprints(manifest);
  std::ofstream(path_ / "store.json") << FormatManifest(manifest);
  EXPECT_EQ(OpenStatus(), absl::DataLossError((path_ / "store.json").string() +
                                              " does not list " + first.path));
}

// Writes store.json with only the splits of these names.
void KeepSplits(const fs::path& path, Manifest manifest,
                const std::set<std::string>& names) {
  const auto unwanted = [&](const auto& split) {
    return !names.contains(split.name);
  };
  std::erase_if(manifest.splits, unwanted);
  std::erase_if(manifest.edge_splits, unwanted);
  std::erase_if(manifest.files, [&](const FileInfo& file) {
    const fs::path folder = fs::path(file.path).parent_path();
    return file.path.starts_with("splits/") &&
           !names.contains(folder.filename());
  });
  std::ofstream(path / "store.json") << FormatManifest(manifest);
}

TEST_F(StoreTest, FindsSplitsThatWereAddedSinceItWasOpened) {
  Build(GraphWithPairs(), 2);
  const Manifest all = (*Store::Open(path_))->manifest();
  KeepSplits(path_, all, {"train"});
  const auto before = Store::Open(path_, {1}).value();
  EXPECT_EQ(*before->WithNewSplits(), nullptr);
  // Splits of nodes, and splits of edges.
  for (const bool pairs : {false, true}) {
    KeepSplits(path_, all, {"train", pairs ? "pairs" : "test"});
    const auto after = before->WithNewSplits().value();
    ASSERT_NE(after, nullptr);
    EXPECT_EQ(after->path(), before->path());
    EXPECT_THAT(after->mapped_partitions(), ::testing::ElementsAre(1));
    EXPECT_EQ(after->partition(0), nullptr);
    ASSERT_NE(after->partition(1), nullptr);
    EXPECT_EQ(after->partition(1), before->partition(1));
    EXPECT_EQ((*after->FindSplit(1, "train"))->id.data(),
              (*before->FindSplit(1, "train"))->id.data());
    EXPECT_EQ(*after->FindMembers(1, "train"),
              *before->FindMembers(1, "train"));
    if (pairs) {
      EXPECT_THAT(after->edge_split(0).src_original_id.As<int64_t>(),
                  ::testing::ElementsAre(4, 0));
    } else {
      EXPECT_THAT((*after->FindSplit(0, "test"))->original_id.As<int64_t>(),
                  ::testing::ElementsAre(1, 4));
    }
    EXPECT_EQ(*after->WithNewSplits(), nullptr);
  }
}

TEST_F(StoreTest, AddedEdgeSplitsFollowThoseThatWereKnown) {
  TestGraph graph = GraphWithPairs();
  graph.edge_splits.push_back(graph.edge_splits[0]);
  graph.edge_splits[1].name = "others";
  graph.edge_splits[1].src = Array::Adopt(std::vector<int64_t>{1, 3});
  Build(graph, 2);
  const Manifest all = (*Store::Open(path_))->manifest();
  KeepSplits(path_, all, {"train", "pairs"});
  const auto before = Store::Open(path_).value();
  KeepSplits(path_, all, {"train", "pairs", "others"});
  const auto after = before->WithNewSplits().value();
  ASSERT_NE(after, nullptr);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(after->manifest().edge_splits.at(i).name,
              i == 0 ? "pairs" : "others");
    EXPECT_THAT(
        after->edge_split(i).src_original_id.As<int64_t>(),
        ::testing::UnorderedElementsAre(i == 0 ? 4 : 1, i == 0 ? 0 : 3));
  }
  EXPECT_EQ(after->edge_split(0).src.data(), before->edge_split(0).src.data());
}

TEST_F(StoreTest, RefusesOtherChangesThanAddedSplits) {
  Build(GraphWithPairs(), 2);
  const auto store = Store::Open(path_).value();
  const std::string file = (path_ / "store.json").string();
  const absl::Status other_split = absl::FailedPreconditionError(
      file + " now describes another split of a name that is in use");
  const Manifest good = store->manifest();
  KeepSplits(path_, good, {"test", "pairs"});
  EXPECT_EQ(store->WithNewSplits().status(), other_split);
  KeepSplits(path_, good, {"train", "test"});
  EXPECT_EQ(store->WithNewSplits().status(), other_split);

  const absl::Status other_store =
      absl::FailedPreconditionError(file + " now describes another store");
  Manifest changed = good;
  changed.uuid[0] = changed.uuid[0] == '0' ? '1' : '0';
  std::ofstream(file) << FormatManifest(changed);
  EXPECT_EQ(store->WithNewSplits().status(), other_store);
  changed = good;
  changed.schema.relations[0].has_type = true;
  std::ofstream(file) << FormatManifest(changed);
  EXPECT_EQ(store->WithNewSplits().status(), other_store);
  changed = good;
  ++changed.files[0].bytes;
  SetFingerprints(changed);
  std::ofstream(file) << FormatManifest(changed);
  EXPECT_EQ(store->WithNewSplits().status(), other_store);
}

TEST_F(StoreTest, MembersOfASplitAreItsIds) {
  Build(SmallGraph(), 2);
  const auto store = Store::Open(path_).value();
  EXPECT_EQ(*store->FindMembers(0, "valid"), nullptr);
  EXPECT_EQ(*store->FindMembers(1, "train"), nullptr);
  const SplitMembers* const members = *store->FindMembers(0, "train");
  ASSERT_NE(members, nullptr);
  EXPECT_EQ(*store->FindMembers(0, "train"), members);
  const Array& ids = (*store->FindSplit(0, "train"))->id;
  const auto train = ids.As<uint32_t>();
  for (uint32_t id = 0; id < 8; ++id) {
    EXPECT_EQ(members->contains(id),
              std::find(train.begin(), train.end(), id) != train.end());
  }
  // An id beyond the nodes is damage.
  const fs::path file = "splits/node/train/id.npy";
  std::vector<uint32_t> damaged(train.begin(), train.end());
  damaged[2] = 8;
  WriteRows(store->manifest(), file, Array::Adopt(std::move(damaged)));
  const absl::Status status =
      (*Store::Open(path_))->FindMembers(0, "train").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            (path_ / file).string() +
                " is damaged: seed 2 has id 8, but there are 8 nodes\nrestore "
                "the store from a copy and verify it");
}

}  // namespace
}  // namespace millrace
