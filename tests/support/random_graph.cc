// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/sampled.h"

namespace millrace::testing {
namespace {

constexpr int64_t kUsers = 25;
constexpr int64_t kItems = 31;
constexpr int64_t kTimes = 10;

class RandomRelation {
 public:
  RandomRelation(uint32_t seed, std::string src, std::string name,
                 std::string dst)
      : random_(seed) {
    relation_.src = std::move(src);
    relation_.name = std::move(name);
    relation_.dst = std::move(dst);
  }

  RandomRelation& Edges(int64_t sources, int64_t destinations, int count) {
    for (int i = 0; i < count; ++i) {
      // These are separate statements, because the arguments of a call are
      // evaluated in any order.
      const int64_t dst = random_() % destinations;
      const int64_t src = random_() % sources;
      relation_.edges.emplace_back(src, dst);
    }
    return *this;
  }
  RandomRelation& Weights() {
    for (size_t i = 0; i < relation_.edges.size(); ++i) {
      // A fifth of the weights are 0.
      relation_.weight.push_back(static_cast<float>(random_() % 5) / 4);
    }
    return *this;
  }
  // Gives the edges times that are never earlier than their destination's.
  RandomRelation& Times(const std::vector<int64_t>& destinations) {
    for (const auto& [src, dst] : relation_.edges) {
      relation_.time.push_back(
          std::max<int64_t>(random_() % kTimes, destinations[dst]));
    }
    return *this;
  }
  RandomRelation& Features(int64_t dims) {
    relation_.feature =
        RampFeature(static_cast<int64_t>(relation_.edges.size()), dims);
    return *this;
  }
  TestRelation Take() { return std::move(relation_); }

 private:
  std::mt19937 random_;
  TestRelation relation_;
};

}  // namespace

TestGraph RandomGraph(uint32_t seed) {
  std::mt19937 random(seed);
  TestGraph graph;
  graph.types = {{.name = "user", .count = kUsers},
                 {.name = "item",
                  .count = kItems,
                  .feature = RampFeature(kItems, 3),
                  .label = Array::Adopt(std::vector<int64_t>(kItems, 4))}};
  TestSplit split = {.type = "item"};
  for (int64_t v = 0; v < kItems; ++v) {
    graph.types[1].time.push_back(random() % kTimes);
    if (v % 3 != 0) split.ids.push_back(v);
  }
  graph.splits = {split};
  graph.relations = {RandomRelation(seed + 1, "user", "buys", "item")
                         .Edges(kUsers, kItems, 260)
                         .Weights()
                         .Times(graph.types[1].time)
                         .Features(3)
                         .Take(),
                     RandomRelation(seed + 2, "item", "likes", "user")
                         .Edges(kItems, kUsers, 220)
                         .Weights()
                         .Take(),
                     RandomRelation(seed + 3, "item", "cites", "item")
                         .Edges(kItems, kItems, 200)
                         .Weights()
                         .Features(2)
                         .Take()};
  return graph;
}

}  // namespace millrace::testing
