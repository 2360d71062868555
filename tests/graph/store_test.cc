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
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kDataLoss);
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

}  // namespace
}  // namespace millrace
