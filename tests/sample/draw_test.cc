// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using testing::BuildDataset;
using testing::TestDirectory;
using testing::TestGraph;

// What the program holds; 0 under the sanitizers, whose allocator does not
// tell.
size_t HeldBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(DrawNeighborsTest, KeepsNoLargeMemoryAfterAHugeDraw) {
  constexpr int64_t kDegree = 1000;
  TestGraph graph;
  graph.types = {{.count = kDegree + 1}};
  graph.relations = {{}};
  for (int64_t v = 1; v <= kDegree; ++v) {
    graph.relations[0].edges.push_back({v, 0});
  }
  const std::filesystem::path path = TestDirectory("draw") / "data";
  ASSERT_TRUE(BuildDataset(graph, path).ok());
  const auto store = Store::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  const size_t before = HeldBytes();
  {
    const std::vector<uint64_t> hub(10000, 0);
    const Frontier frontier{.relation = 0, .fanout = -1, .ids = hub};
    Picks picks;
    ASSERT_TRUE(DrawNeighbors(**store, 0, {}, frontier, picks).ok());
    EXPECT_EQ(picks.neighbors.size(), 10000 * kDegree);  // 80 MB
  }
  EXPECT_LT(HeldBytes(), before + (size_t{20} << 20));
  std::filesystem::remove_all(path.parent_path());
}

}  // namespace
}  // namespace millrace
