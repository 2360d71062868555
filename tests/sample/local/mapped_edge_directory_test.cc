// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/mapped_edge_directory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/test_store.h"

namespace millrace {
namespace {

// All pairs of nodes are looked up, in in-lists and in out-lists.
TEST(MappedEdgeDirectoryTest, FindsEdgesInWhicheverPartitionHasThem) {
  testing::TestGraph graph = testing::RichGraph();
  graph.relations.push_back(graph.relations[0]);
  graph.relations.back().name = "without_in_lists";
  graph.relations.back().in = false;
  graph.relations.back().out = true;
  for (const int parts : {1, 3}) {
    const std::unique_ptr<Store> store =
        testing::TestStore(graph, parts).Open();
    MappedEdgeDirectory directory(*store);
    const Schema& schema = store->schema();
    for (RelationIndex r = 0; r < std::ssize(graph.relations); ++r) {
      const Relation& relation = schema.relations[r];
      std::vector<int64_t> sources, targets;
      for (int64_t v = 0; v < graph.types[relation.src].count; ++v) {
        for (int64_t w = 0; w < graph.types[relation.dst].count; ++w) {
          sources.push_back(v);
          targets.push_back(w);
        }
      }
      const auto src = directory.Resolve(relation.src, sources);
      const auto dst = directory.Resolve(relation.dst, targets);
      ASSERT_TRUE(src.ok()) << src.status();
      ASSERT_TRUE(dst.ok()) << dst.status();
      const auto found = directory.HasEdges(r, *src, *dst);
      ASSERT_TRUE(found.ok()) << found.status();
      const std::set<std::pair<int64_t, int64_t>> edges(
          graph.relations[r].edges.begin(), graph.relations[r].edges.end());
      for (size_t i = 0; i < sources.size(); ++i) {
        EXPECT_EQ((*found)[i], edges.contains({sources[i], targets[i]}))
            << graph.relations[r].name << ": " << sources[i] << " to "
            << targets[i];
      }
    }
  }
}

}  // namespace
}  // namespace millrace
