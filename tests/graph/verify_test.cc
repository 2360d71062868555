// SPDX-License-Identifier: Apache-2.0
#include "common/graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/file/file.h"
#include "common/file/npy.h"
#include "common/graph/damaged_file.h"
#include "common/graph/edge_cut.h"
#include "common/graph/manifest.h"
#include "tests/support/test_directory.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::BuildDataset;
using ::testing::HasSubstr;
using testing::RichGraph;
using testing::SmallGraph;

class VerifyTest : public testing::DirectoryTest {
 protected:
  fs::path path() const { return directory_ / "store"; }

  void BuildRich(int parts) {
    const absl::Status built = testing::WriteGraph(RichGraph(), parts, path());
    ASSERT_TRUE(built.ok()) << built;
  }

  Manifest ReadManifest() const {
    return ParseManifest(ReadFile(path() / "store.json", 1 << 20).value(), "")
        .value();
  }

  void WriteManifest(const Manifest& manifest) const {
    std::ofstream(path() / "store.json") << FormatManifest(manifest);
  }

  // Changes the elements of one file and makes store.json match, like a faulty
  // writer: only the content is wrong.
  template <typename T>
  void Change(const std::string& file,
              const std::function<void(std::vector<T>&)>& change) const {
    const Array old = MapNpy(path() / file).value();
    const std::span<const T> elements = old.As<T>();
    std::vector<T> values(elements.begin(), elements.end());
    change(values);
    const Array changed =
        Array::Borrow(old.dtype(), old.shape(), values.data(), nullptr);
    fs::remove(path() / file);
    const auto summary = WriteNpy(path() / file, changed).value();
    Manifest manifest = ReadManifest();
    for (FileInfo& info : manifest.files) {
      if (info.path == file) info.xxh3 = summary.xxh3;
    }
    SetFingerprints(manifest);
    if (manifest.is_dataset()) {
      manifest.dataset_fingerprint = manifest.fingerprint;
    }
    WriteManifest(manifest);
  }

  void ExpectViolation(const std::string& file, const std::string& what) {
    const absl::Status status = VerifyStore(path());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(file), HasSubstr(what)));
  }
};

TEST_F(VerifyTest, AcceptsIntactStores) {
  for (const int parts : {1, 2, 3, 9}) {
    fs::remove_all(path());
    BuildRich(parts);
    EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
  }
  fs::remove_all(path());
  ASSERT_TRUE(BuildDataset(RichGraph(), path()).ok());
  EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
}

TEST_F(VerifyTest, AcceptsAGraphWithoutNodesOrEdges) {
  testing::TestGraph graph;
  graph.types.push_back({});
  graph.relations.push_back({});
  graph.splits.push_back({});
  ASSERT_TRUE(BuildDataset(graph, path()).ok());
  EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
}

TEST_F(VerifyTest, CatchesAFlippedByteInAnyFile) {
  BuildRich(2);
  for (const FileInfo& info : ReadManifest().files) {
    // Changes the last byte: data if there is any, else padding of the header.
    const std::string good = ReadFile(path() / info.path, 1 << 20).value();
    std::string damaged = good;
    damaged[damaged.size() - 1] ^= 1;
    std::ofstream(path() / info.path) << damaged;
    // Opening a store already checks the ends of lists.
    const bool ends = info.path.ends_with("/indptr.npy");
    ExpectViolation(info.path, ends ? "it must go from 0" : "checksum");
    std::ofstream(path() / info.path) << good;
  }
  EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
}

TEST_F(VerifyTest, ScrubbingCatchesAFlippedByteInAnyFile) {
  BuildRich(2);
  const auto store = Store::Open(path()).value();
  for (const FileInfo& info : ReadManifest().files) {
    uint64_t bytes = 0;
    const auto scrub = [&] {
      bytes = 0;
      return ScrubFile(*store, info, [&](size_t piece) {
        bytes += piece;
        return true;
      });
    };
    EXPECT_EQ(scrub(), absl::OkStatus());
    EXPECT_EQ(bytes, info.bytes);
    const fs::path file = path() / info.path;
    std::string damaged = ReadFile(file, 1 << 20).value();
    damaged[damaged.size() - 1] ^= 1;
    std::ofstream(file) << damaged;
    const absl::Status status = scrub();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(FindDamagedFile(status), info.path);
  }
}

TEST_F(VerifyTest, ScrubbingCatchesMissingFilesAndStopsOnRequest) {
  BuildRich(2);
  const auto store = Store::Open(path()).value();
  const FileInfo info = ReadManifest().files.front();
  EXPECT_TRUE(
      absl::IsCancelled(ScrubFile(*store, info, [](size_t) { return false; })));
  fs::remove(path() / info.path);
  const absl::Status status =
      ScrubFile(*store, info, [](size_t) { return true; });
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(info.path));
}

TEST_F(VerifyTest, ScrubbingCatchesAFlippedByteOfAnyLoadedFile) {
  BuildRich(2);
  const auto store = Store::Open(path()).value();
  for (const auto content :
       {Store::Content::kGraph, Store::Content::kFeatures}) {
    ASSERT_EQ(store->LoadIntoMemory(content), absl::OkStatus());
  }
  for (const FileInfo& info : ReadManifest().files) {
    const Store::LoadedFile* loaded = store->FindLoaded(info.path);
    const bool mapped =
        !info.path.starts_with("part-") || info.path.ends_with("/weight.npy");
    ASSERT_EQ(loaded == nullptr, mapped) << info.path;
    if (mapped) continue;
    uint64_t bytes = 0;
    const auto scrub = [&] {
      bytes = 0;
      return ScrubLoadedFile(*store, info, [&](size_t piece) {
        bytes += piece;
        return true;
      });
    };
    fs::remove(path() / info.path);
    EXPECT_EQ(scrub(), absl::OkStatus());
    EXPECT_EQ(bytes, info.bytes);
    if (loaded->data.total_bytes() == 0) continue;
    auto* const last = const_cast<std::byte*>(loaded->data.data()) +
                       loaded->data.total_bytes() - 1;
    *last ^= std::byte{1};
    const absl::Status status = scrub();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(FindDamagedFile(status), info.path);
  }
}

TEST_F(VerifyTest, CatchesNamesThatTheFilesContradict) {
  ASSERT_TRUE(BuildDataset(RichGraph(), path()).ok());
  const Manifest good = ReadManifest();
  Manifest manifest = good;
  manifest.dataset_fingerprint = ComputeFingerprint(std::vector<FileInfo>());
  WriteManifest(manifest);
  ExpectViolation("store.json", "'dataset_fingerprint'");
  for (const char* uuid : {"", "me", "01234567-89ab-4cde-8f01-23456789abcg",
                           "01234567+89ab-4cde-8f01-23456789abcd"}) {
    manifest = good;
    manifest.uuid = uuid;
    WriteManifest(manifest);
    ExpectViolation("store.json", "'uuid'");
  }
}

TEST_F(VerifyTest, CatchesFilesThatAreNotListed) {
  BuildRich(2);
  std::ofstream(path() / "part-00001/stray.npy") << "x";
  ExpectViolation("part-00001/stray.npy", "not listed");
}

TEST_F(VerifyTest, ChecksFilesOfMappedPartitionsOnly) {
  BuildRich(2);
  fs::remove_all(path() / "part-00001");
  const auto store = Store::Open(path(), {0}).value();
  EXPECT_EQ(VerifyFiles(*store), absl::OkStatus());
  std::ofstream(path() / "part-00000/lookup/paper.npy", std::ios::app) << "x";
  EXPECT_EQ(VerifyFiles(*store).code(), absl::StatusCode::kDataLoss);
}

TEST_F(VerifyTest, CatchesCountsInTheManifest) {
  BuildRich(2);
  const Manifest good = ReadManifest();
  Manifest manifest = good;
  ++manifest.schema.relations[0].max_edge_id;
  WriteManifest(manifest);
  ExpectViolation("author__writes__paper", "up to 7");
  manifest = good;
  std::swap(manifest.splits[0].part_counts[0],
            manifest.splits[0].part_counts[1]);
  if (manifest.splits[0].part_counts != good.splits[0].part_counts) {
    WriteManifest(manifest);
    ExpectViolation("store.json", "part_counts");
  }
}

using Ids = std::vector<uint32_t>;
using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;
using Sums = std::vector<uint64_t>;
using Edit =
    std::variant<std::function<void(Ids&)>, std::function<void(Longs&)>,
                 std::function<void(Floats&)>, std::function<void(Sums&)>>;

// One file with wrong elements, and what verification must report.
struct Damage {
  std::string file;
  Edit edit;
  std::string place;  // part of the message: at least the file
  std::string what;
};

template <typename List>
Edit SwapFirstTwo() {
  return std::function<void(List&)>(
      [](List& list) { std::swap(list[0], list[1]); });
}

template <typename T>
Edit Put(size_t index, T value) {
  return std::function<void(std::vector<T>&)>(
      [index, value](std::vector<T>& list) { list.at(index) = value; });
}

TEST_F(VerifyTest, CatchesEachKindOfWrongContent) {
  const std::string paper = "part-00001/nodes/paper/";
  const std::string writes = "part-00001/edges/author__writes__paper/";
  const std::string cites = "part-00001/edges/paper__cites__paper/";
  const std::string knows = "part-00000/edges/author__knows__author/";
  const std::string out = "part-00000/edges/author__writes__paper/out/";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Damage> damages = {
      {paper + "original_id.npy", Put<uint32_t>(0, 7), "original_id.npy[0]",
       "out of range: there are 7 nodes"},
      {paper + "original_id.npy", Put<uint32_t>(0, 1), "original_id.npy[0]",
       "1 occurs twice"},
      {paper + "original_id.npy", SwapFirstTwo<Ids>(), "lookup/paper.npy",
       "original id"},
      {paper + "hotness.npy", Put<float>(3, 99), "hotness.npy[3]",
       "must not increase"},
      {paper + "hotness.npy", Put<float>(2, nan), "hotness.npy[2]",
       "not a number"},
      {"part-00001/lookup/paper.npy", Put<uint32_t>(1, 7), "paper.npy[1]",
       "out of range: there are 7 nodes"},
      {"part-00001/lookup/paper.npy", SwapFirstTwo<Ids>(), "paper.npy[0]",
       "has original id"},
      {writes + "in/indptr.npy", Put<int64_t>(1, 99), "in/indptr.npy[2]",
       "must not decrease"},
      {writes + "in/indptr.npy", Put<int64_t>(1, -1), "in/indptr.npy[1]",
       "must not decrease"},
      {writes + "in/indices.npy", Put<uint32_t>(2, 5), "in/indices.npy[2]",
       "out of range: there are 5 nodes"},
      {writes + "in/edge_id.npy", Put<int64_t>(0, -1), "in/edge_id.npy[0]",
       "not in the range 0 to 6"},
      {writes + "in/edge_id.npy", Put<int64_t>(0, 7), "in/edge_id.npy[0]",
       "not in the range 0 to 6"},
      {writes + "in/edge_id.npy", Put<int64_t>(1, 0), "in/edge_id.npy[1]",
       "0 occurs twice"},
      {writes + "in/edge_id.npy", SwapFirstTwo<Longs>(), "in/edge_id.npy[1]",
       "out of order"},
      {cites + "in/time.npy", SwapFirstTwo<Longs>(), "in/time.npy[1]",
       "out of order"},
      {cites + "in/time.npy", Put<int64_t>(0, -5), "in/time.npy[0]",
       "neighbour's time is 7"},
      {knows + "in/time.npy", Put<int64_t>(0, 99), "in/time.npy[1]",
       "out of order"},
      {out + "slot.npy", Put<int64_t>(0, 99), "out/slot.npy[0]",
       "partition 1 has 5 rows"},
      {out + "slot.npy", Put<int64_t>(0, -1), "out/slot.npy[0]",
       "-1 is negative"},
      {out + "slot.npy", SwapFirstTwo<Longs>(), "out/slot.npy[0]",
       "not of edge 0"},
      // Doubling all weights of a list gives the same integer weights.
      {out + "weight.npy", std::function<void(Floats&)>([](Floats& list) {
         list[0] = list[1] = 2;
       }),
       "edge 0 of author__writes", "not the same"},
      {out + "weight.npy", Put<float>(1, -1), "weight.npy[1]",
       "not a finite number"},
      {out + "weight.npy", Put<float>(1, nan), "weight.npy[1]",
       "not a finite number"},
      {out + "weight_sum.npy", Put<uint64_t>(1, 5), "weight_sum.npy[1]",
       "the weights give"},
      {cites + "in/neighbor_original_id.npy", Put<uint32_t>(1, 1),
       "neighbor_original_id.npy[1]", "has original id 6, not 1"},
      {"splits/paper/train/time.npy", Put<int64_t>(1, 77), "time.npy[1]",
       "the node's time is"},
      {cites + "in/indices.npy", SwapFirstTwo<Ids>(), "in/time.npy[0]",
       "neighbour's time"},
      {"splits/paper/train/original_id.npy", Put<int64_t>(1, 0),
       "original_id.npy[1]", "must be ascending"},
      {"splits/paper/train/original_id.npy", Put<int64_t>(2, 7),
       "original_id.npy[2]", "must be ascending"},
      {"splits/paper/train/id.npy", SwapFirstTwo<Ids>(), "id.npy[0]",
       "original id"},
      {"splits/paper/train/id.npy", Put<uint32_t>(1, 7), "id.npy[1]",
       "out of range: there are 7 nodes"},
  };
  std::vector<std::string> missed;
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.file + ": " + damage.what);
    fs::remove_all(path());
    BuildRich(2);
    std::visit([&](const auto& edit) { Change(damage.file, edit); },
               damage.edit);
    ExpectViolation(damage.place, damage.what);
    // A host that has only the partition of the file, or of the split's seeds.
    const int part = PartitionOfFile(damage.file).value_or(1);
    fs::remove_all(path() / PartName(1 - part));
    const absl::Status alone = VerifyStore(path(), {part});
    EXPECT_TRUE(alone.ok() || absl::IsDataLoss(alone)) << alone;
    if (alone.ok()) missed.push_back(damage.file);
  }
  // Only the other partition can show these: it has the edges' other ends, and
  // the seed.
  EXPECT_THAT(missed, ::testing::ElementsAre(out + "slot.npy", out + "slot.npy",
                                             out + "weight.npy",
                                             "splits/paper/train/time.npy"));
}

TEST_F(VerifyTest, AcceptsPartitionsWithoutTheOthers) {
  for (const std::vector<int>& kept :
       std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 2}, {1, 2}}) {
    fs::remove_all(path());
    BuildRich(3);
    for (int part = 0; part < 3; ++part) {
      if (std::count(kept.begin(), kept.end(), part) == 0) {
        fs::remove_all(path() / PartName(part));
      }
    }
    EXPECT_EQ(VerifyStore(path(), kept), absl::OkStatus());
    EXPECT_TRUE(absl::IsNotFound(VerifyStore(path())));
  }
}

// What a partition says of nodes that others own is compared with the tables
// of original ids that are here.
TEST_F(VerifyTest, CatchesWrongIdsOfNodesThatAreElsewhere) {
  // Owners of the original ids; partition 0 has the table of 0 to 3.
  using Owners = std::vector<int>;
  const Owners odd = {1, 0, 1, 0, 1, 0, 1, 0}, last = {1, 1, 1, 1, 0, 0, 0, 0};
  const std::string originals = NodePath(0, "node", "original_id");
  for (const auto& [owners, damage] : std::vector<std::pair<Owners, Damage>>{
           {odd,
            {LookupPath(0, "node"), Put<uint32_t>(0, 5), "node.npy[2]",
             "5 occurs twice"}},
           {odd,
            {originals, Put<uint32_t>(0, 2), "node.npy[1]",
             "id 0 has original id 2, not 1"}},
           {last,
            {originals, Put<uint32_t>(0, 2), "original_id.npy[0]",
             "original id 2 belongs to id 6, not 0"}},
           {odd,
            {ListPath(0, "node__to__node", Direction::kIn, "indices"),
             Put<uint32_t>(0, 8), "indices.npy[0]", "out of range"}}}) {
    SCOPED_TRACE(damage.file + ": " + damage.what);
    fs::remove_all(path());
    ASSERT_TRUE(BuildStore(SmallGraph(), 2, {owners}, path()).ok());
    fs::remove_all(path() / PartName(1));
    EXPECT_EQ(VerifyStore(path(), {0}), absl::OkStatus());
    // Clang 14 cannot capture a structured binding.
    std::visit(
        [&, &file = damage.file](const auto& edit) { Change(file, edit); },
        damage.edit);
    const absl::Status status = VerifyStore(path(), {0});
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(damage.place), HasSubstr(damage.what)));
  }
}

// Both ends of these edges are here, so their lists must be the same.
TEST_F(VerifyTest, ComparesTheListsOfOnePartition) {
  testing::TestGraph graph = SmallGraph();
  graph.relations[0].type.resize(graph.relations[0].edges.size());
  ASSERT_TRUE(BuildStore(graph, 2, {{0, 0, 0, 0, 0, 0, 0, 1}}, path()).ok());
  fs::remove_all(path() / PartName(1));
  EXPECT_EQ(VerifyStore(path(), {0}), absl::OkStatus());
  Change(ListPath(0, "node__to__node", Direction::kOut, "type"),
         std::function<void(std::vector<int32_t>&)>(
             [](std::vector<int32_t>& types) { ++types[0]; }));
  EXPECT_THAT(std::string(VerifyStore(path(), {0}).message()),
              HasSubstr("is not the same in the in-lists and the out-lists"));
}

TEST_F(VerifyTest, CatchesOutListsOfOtherEdges) {
  ASSERT_TRUE(BuildDataset(SmallGraph(), path()).ok());
  Change("part-00000/edges/node__to__node/out/indices.npy",
         std::function<void(Ids&)>([](Ids& ids) { ids.back() ^= 1; }));
  // The last edge of the last node, 7 -> 0.
  ExpectViolation("edge 8 of node__to__node", "not the same");
}

// The edges of both lists must have the same columns.
TEST_F(VerifyTest, CatchesOutListsOfOtherTypesAndTimes) {
  using Types = std::vector<int32_t>;
  testing::TestGraph graph = SmallGraph();
  for (int32_t i = 0; i < static_cast<int32_t>(graph.relations[0].edges.size());
       ++i) {
    graph.relations[0].type.push_back(i % 3);
    graph.relations[0].time.push_back(10 * i);
  }
  const std::string out = "part-00000/edges/node__to__node/out/";
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"type.npy",
       [&] {
         Change(out + "type.npy",
                std::function<void(Types&)>([](Types& t) { ++t.back(); }));
       }},
      {"time.npy", [&] {
         Change(out + "time.npy",
                std::function<void(Longs&)>([](Longs& t) { ++t.back(); }));
       }}};
  for (const auto& [file, change] : changes) {
    SCOPED_TRACE(file);
    fs::remove_all(path());
    ASSERT_TRUE(BuildDataset(graph, path()).ok());
    change();
    ExpectViolation("of node__to__node", "not the same");
  }
}

TEST_F(VerifyTest, CatchesADatasetWithOtherIds) {
  ASSERT_TRUE(BuildDataset(SmallGraph(), path()).ok());
  Change(
      "part-00000/nodes/node/original_id.npy",
      std::function<void(Ids&)>([](Ids& ids) { std::swap(ids[2], ids[3]); }));
  ExpectViolation("original_id.npy[2]", "in a dataset");
}

TEST(CountCutEdges, CountsEdgesBetweenPartitions) {
  testing::TestGraph graph = SmallGraph();
  for (const bool in : {true, false}) {
    graph.relations[0].in = in;
    // Separates even and odd nodes.
    int64_t expected = 0;
    for (const auto& [src, dst] : graph.relations[0].edges) {
      expected += (src + dst) % 2;
    }
    EXPECT_EQ(CountCutEdges(*testing::TestStore(graph, 2).Open()).value(),
              expected);
  }
}

TEST_F(VerifyTest, CatchesWrongIdsOfPairs) {
  testing::TestGraph graph = SmallGraph();
  EdgeSplitColumns& pairs = graph.edge_splits.emplace_back();
  pairs.name = "pairs";
  pairs.src = Array::Adopt(Longs{0, 1});
  pairs.dst = Array::Adopt(Longs{2, 3});
  pairs.negative = Array::Adopt(Longs{4, 5, 6, 7}, {2, 2});
  const std::string folder = "splits/node__to__node/pairs/";
  for (const auto& [column, index, original] :
       {std::tuple("src", 1, 1), std::tuple("dst", 1, 3),
        std::tuple("negative", 3, 7)}) {
    for (const uint32_t wrong : {8u, 0u}) {
      fs::remove_all(path());
      ASSERT_TRUE(BuildDataset(graph, path()).ok());
      EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
      const size_t at = index;
      Change(folder + column + ".npy",
             std::function<void(Ids&)>([&](Ids& ids) { ids[at] = wrong; }));
      ExpectViolation(folder + column + ".npy[" + std::to_string(index) + "]",
                      wrong == 8 ? "8 is out of range: there are 8 nodes"
                                 : "id 0 has original id 0, not " +
                                       std::to_string(original));
    }
  }
  fs::remove_all(path());
  ASSERT_TRUE(BuildStore(graph, 2, {{0, 0, 0, 0, 1, 1, 1, 1}}, path()).ok());
  EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
  Manifest manifest = ReadManifest();
  ASSERT_EQ(manifest.edge_splits[0].part_counts, (Longs{2, 0}));
  manifest.edge_splits[0].part_counts = {1, 1};
  WriteManifest(manifest);
  ExpectViolation("store.json: 'part_counts' of edge split 'pairs'",
                  "does not match the owners of its destinations");
}

TEST_F(VerifyTest, CatchesMissingRowsOfFeaturesWithoutInLists) {
  testing::TestGraph graph = SmallGraph();
  graph.relations[0].in = false;
  graph.relations[0].feature = testing::RampFeature(12, 2);
  ASSERT_TRUE(BuildDataset(graph, path()).ok());
  EXPECT_EQ(VerifyStore(path()), absl::OkStatus());
  const fs::path file = path() / EdgeFeaturePath(0, "node__to__node");
  fs::remove(file);
  const auto written = WriteNpy(file, testing::RampFeature(13, 2)).value();
  Manifest manifest = ReadManifest();
  for (FileInfo& info : manifest.files) {
    if (path() / info.path != file) continue;
    info.bytes = written.file_bytes;
    info.xxh3 = written.xxh3;
  }
  SetFingerprints(manifest);
  manifest.dataset_fingerprint = manifest.fingerprint;
  WriteManifest(manifest);
  ExpectViolation(path().string() + ": node__to__node has",
                  "13 rows of features for 12 edges");
}

TEST_F(VerifyTest, NamesCountsOfListsThatStoreJsonContradicts) {
  ASSERT_TRUE(BuildDataset(SmallGraph(), path()).ok());
  Manifest manifest = ReadManifest();
  manifest.schema.relations[0].max_edge_id = 12;
  WriteManifest(manifest);
  EXPECT_EQ(VerifyStore(path()).message(),
            path().string() +
                ": the in-lists of node__to__node have 12 edges up to edge id "
                "11, but store.json says 12 up to 12");
}

// Counting must not trust the lists, which nobody has verified.
TEST(CountCutEdges, NamesNeighborsThatDoNotExist) {
  const testing::TestStore built(SmallGraph(), 2);
  const std::string file = "part-00000/edges/node__to__node/in/indices.npy";
  const auto count = [&](uint32_t neighbor) {
    const fs::path path = built.path() / file;
    const Array old = MapNpy(path).value();
    const auto ids = old.As<uint32_t>();
    Ids changed(ids.begin(), ids.end());
    changed[0] = neighbor;
    fs::remove(path);
    EXPECT_TRUE(WriteNpy(path, Array::Adopt(std::move(changed))).ok());
    return CountCutEdges(*built.Open());
  };
  EXPECT_TRUE(count(7).ok());
  EXPECT_EQ(count(8).status(),
            absl::DataLossError((built.path() / file).string() +
                                "[0]: 8 is out of range: there are 8 nodes"));
}

}  // namespace
}  // namespace millrace
