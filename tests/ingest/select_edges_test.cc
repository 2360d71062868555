// SPDX-License-Identifier: Apache-2.0
// Splits of edges that the user provides to `import npy`.
#include "common/ingest/select_edges.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/ingest/formats/npy_graph.h"
#include "common/ingest/importer.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class SelectEdgesTest : public testing::DirectoryTest {
 protected:
  // Users 0 to 3, items 0 to 4; edge i goes from i % 4 to i % 5, at time 100 -
  // i, with type i % 3.
  void SetUp() override {
    DirectoryTest::SetUp();
    std::vector<int64_t> pairs, times, types;
    for (int64_t i = 0; i < 18; ++i) {
      pairs.insert(pairs.end(), {i % 4, i % 5});
      times.push_back(100 - i);
      types.push_back(i % 3);
    }
    input_.edges = {{"user__buys__item", Save("e.npy", pairs, {18, 2})}};
    input_.edge_times[""] = Save("times.npy", times, {18});
    input_.edge_types[""] = Save("types.npy", types, {18});
  }

  std::string Save(const char* name, std::vector<int64_t> values,
                   std::vector<int64_t> shape) {
    std::filesystem::remove(directory_ / name);
    const auto written = WriteNpy(
        directory_ / name, Array::Adopt(std::move(values), std::move(shape)));
    EXPECT_TRUE(written.ok()) << written.status();
    return (directory_ / name).string();
  }

  absl::StatusOr<std::unique_ptr<Store>> Import() {
    const auto graph = OpenNpy(input_);
    if (!graph.ok()) return graph.status();
    const auto manifest = ImportGraph(*graph, {}, directory_ / "out");
    if (!manifest.ok()) return manifest.status();
    const auto verified = VerifyStore(directory_ / "out");
    EXPECT_TRUE(verified.ok()) << verified;
    return Store::Open(directory_ / "out");
  }

  void ExpectRefusal(const std::string& file, const char* what) {
    input_.train = {{"user__buys__item", file}};
    const auto store = Import();
    ASSERT_FALSE(store.ok()) << what;
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(what));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
  }

  NpyInput input_;
};

TEST_F(SelectEdgesTest, KeepsTheOrderOfIds) {
  const std::vector<int64_t> ids = {17, 3, 3, 0, 12};
  input_.train["user__buys__item"] = Save("ids.npy", ids, {5});
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_EQ((*store)->manifest().edge_splits.size(), 1);
  EXPECT_EQ((*store)->manifest().edge_splits[0].name, "train");
  const EdgeSplit& split = (*store)->edge_split(0);
  EXPECT_THAT(split.edge_id.As<int64_t>(), ElementsAreArray(ids));
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(split.src_original_id.As<int64_t>()[i], ids[i] % 4);
    EXPECT_EQ(split.dst_original_id.As<int64_t>()[i], ids[i] % 5);
    EXPECT_EQ(split.time.As<int64_t>()[i], 100 - ids[i]);
    EXPECT_EQ(split.edge_type.As<int32_t>()[i], ids[i] % 3);
  }
}

// Edges are read in chunks, the ids in the order of the split.
TEST_F(SelectEdgesTest, FindsIdsInAnyOrderInManyEdges) {
  constexpr int64_t kEdges = 50'000;
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < kEdges; ++i) {
    pairs.insert(pairs.end(), {i % 4, i % 5});
  }
  input_.edges = {{"user__buys__item", Save("e.npy", pairs, {kEdges, 2})}};
  input_.edge_times.clear();
  input_.edge_types.clear();
  const std::vector<int64_t> ids = {kEdges - 1, 0, 40'000, 17, 20'000, 17};
  input_.train["user__buys__item"] = Save("ids.npy", ids, {6});
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  const EdgeSplit& split = (*store)->edge_split(0);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(split.src_original_id.As<int64_t>()[i], ids[i] % 4);
    EXPECT_EQ(split.dst_original_id.As<int64_t>()[i], ids[i] % 5);
  }
}

TEST_F(SelectEdgesTest, ReadsMasksOfEdges) {
  std::string mask = FormatNpyHeader(DType::kUint8, {18});
  mask.replace(mask.find("|u1"), 3, "|b1");
  std::string values(18, '\0');
  values[2] = values[9] = 1;
  std::ofstream(directory_ / "mask.npy", std::ios::binary) << mask << values;
  input_.valid["user__buys__item"] = directory_ / "mask.npy";
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT((*store)->edge_split(0).edge_id.As<int64_t>(), ElementsAre(2, 9));
}

TEST_F(SelectEdgesTest, TakesPairsAsTheyAre) {
  // There is no edge from 0 to 3; the second pair occurs twice.
  input_.test["user__buys__item"] =
      Save("pairs.npy", {0, 3, 1, 1, 1, 1}, {3, 2});
  input_.train["user"] = Save("users.npy", {2, 1}, {2});
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->FindSplit(0, "train").ok());
  const EdgeSplit& split = (*store)->edge_split(0);
  EXPECT_THAT(split.src_original_id.As<int64_t>(), ElementsAre(0, 1, 1));
  EXPECT_THAT(split.dst_original_id.As<int64_t>(), ElementsAre(3, 1, 1));
  EXPECT_FALSE(split.edge_id.present());
  EXPECT_FALSE(split.time.present());
}

TEST_F(SelectEdgesTest, NamesThePositionOfBadSeeds) {
  ExpectRefusal(Save("seeds.npy", {4, 18}, {2}),
                "seeds.npy: row 1: edge id 18 is out of range: "
                "user__buys__item has 18 edges, ids are 0 to 17");
  ExpectRefusal(Save("seeds.npy", {4, -1, 3}, {3}),
                "seeds.npy: row 1: edge id -1 is out of range");
  ExpectRefusal(Save("seeds.npy", {3, 4, 0, 5}, {2, 2}),
                "seeds.npy: row 1: node 5 is out of range: node type item");
  ExpectRefusal(Save("seeds.npy", {4, 0}, {1, 2}),
                "seeds.npy: row 0: node 4 is out of range: node type user");
  ExpectRefusal(Save("seeds.npy", {4, 0, 1}, {1, 3}),
                "seeds.npy: shape [1, 3], but edges are given by pairs");
  input_.train.clear();
  input_.test["user__sells__item"] = Save("seeds.npy", {0}, {1});
  EXPECT_THAT(std::string(Import().status().message()),
              HasSubstr("test: no relation \"user__sells__item\""));
}

}  // namespace
}  // namespace millrace
