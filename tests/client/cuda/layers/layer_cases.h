// SPDX-License-Identifier: Apache-2.0
// Lists and numbers for tests of client/cuda/layers/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "client/cuda/layers/operands.h"

namespace millrace::testing {

struct TestLists {
  // Adds a list.
  void Add(const std::vector<int32_t>& list) {
    index.insert(index.end(), list.begin(), list.end());
    indptr.push_back(static_cast<int32_t>(index.size()));
  }
  // Adds up to two entries of `index` that belong to no list, of which the
  // first looks like a source.
  void AddRest(size_t count) {
    const int32_t rest[] = {0, 0x7FFFFFFF};
    index.insert(index.end(), rest, rest + count);
  }

  int64_t rows() const { return static_cast<int64_t>(indptr.size()) - 1; }
  int64_t edges() const { return indptr.back(); }
  cuda::layers::LayerLists view() const {
    return {indptr.data(), index.data(), rows(),
            static_cast<int64_t>(index.size())};
  }

  std::string name = "";
  int64_t sources = 0;
  std::vector<int32_t> indptr = {0};
  std::vector<int32_t> index = {};
};

// Lists of up to `most` edges each to any of the sources, with equal ones.
inline TestLists RandomLists(int64_t rows, int64_t sources, unsigned most,
                             unsigned seed) {
  std::mt19937 random(seed);
  TestLists lists{.name = "random", .sources = sources};
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<int32_t> list(random() % (most + 1));
    for (int32_t& source : list)
      source = static_cast<int32_t>(random() % sources);
    lists.Add(list);
  }
  return lists;
}

// Lists whose rows are sources too: odd ones, and random ones at the end.
inline std::vector<TestLists> OddLists() {
  std::vector<TestLists> all;
  all.push_back({.name = "no rows", .sources = 2});
  all.push_back({.name = "empty lists", .sources = 3});
  for (int i = 0; i < 3; ++i) all.back().Add({});
  all.push_back({.name = "one node", .sources = 1});
  all.back().Add({0});
  all.push_back({.name = "equal edges", .sources = 4});
  all.back().Add({1, 1, 1, 1});
  all.back().Add({});
  all.back().Add({2, 0, 2, 0});
  // A list of more than two warps, and a source of many edges.
  all.push_back({.name = "hubs", .sources = 40});
  std::vector<int32_t> hub;
  for (int32_t i = 0; i < 70; ++i) hub.push_back(i * 7 % 40);
  all.back().Add({3});
  all.back().Add(hub);
  for (int32_t i = 2; i < 12; ++i) all.back().Add({i, 5});
  all.push_back(RandomLists(9, 12, 6, 1));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].AddRest((i + 2) % 3);
  }
  return all;
}

// The odd lists as those of one graph, and one without rows.
inline std::vector<TestLists> JoinedLists() {
  TestLists joined{.name = "joined"};
  for (const TestLists& lists : OddLists()) {
    for (int64_t i = 0; i < lists.rows(); ++i) {
      std::vector<int32_t> list(lists.index.begin() + lists.indptr[i],
                                lists.index.begin() + lists.indptr[i + 1]);
      for (int32_t& source : list) {
        source += static_cast<int32_t>(joined.sources);
      }
      joined.Add(list);
    }
    joined.sources += lists.sources;
  }
  joined.AddRest(2);
  return {joined, OddLists().front()};
}

// Numbers in [-2, 2).
inline std::vector<float> RandomFloats(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    number = static_cast<float>(random() >> 8) * 0x1p-22f - 2.0f;
  }
  return numbers;
}

// Expects differences of no more than `tolerance` times the largest element, or
// 1, the size of what such numbers are computed from.
inline void ExpectNear(const std::vector<float>& actual,
                       const std::vector<double>& expected,
                       const std::string& what, double tolerance = 1e-5) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const double value : expected) {
    largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest)
        << what << ", element " << i;
  }
}

}  // namespace millrace::testing
