// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/fake.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/graph/schema.h"
#include "common/random/philox.h"
#include "common/table/computed_rows.h"

namespace millrace {
namespace {

constexpr int64_t kMaxEdges = int64_t{1} << 40;

// The column that random words are for, as the last word of the counter.
enum Column : uint32_t { kEndpoints = 0, kFeatures = 1 };

PhiloxWords Words(const FakeInput& input, Column column, int64_t row,
                  int64_t block) {
  const auto number = static_cast<uint64_t>(row);
  return Philox(
      {static_cast<uint32_t>(input.seed),
       static_cast<uint32_t>(input.seed >> 32)},
      {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
       static_cast<uint32_t>(block), column});
}

// Maps 64 random bits to [0, limit) with a bias below limit / 2^64.
int64_t Scale(uint32_t high, uint32_t low, int64_t limit) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t word = uint64_t{high} << 32 | low;
  return static_cast<int64_t>(Wide{word} * static_cast<uint64_t>(limit) >> 64);
}

void FillEndpoints(const FakeInput& input, int64_t row, int64_t* out) {
  const PhiloxWords first = Words(input, kEndpoints, row, 0);
  const PhiloxWords second = Words(input, kEndpoints, row, 1);
  out[0] = Scale(first[0], first[1], input.nodes);
  out[1] = Scale(first[2], first[3], input.nodes);
  if (second[0] % 2 == 0) return;
  // Replace the destination by a node of the source's class.
  const int64_t of_class = out[0] % input.classes;
  const int64_t members =
      (input.nodes - of_class + input.classes - 1) / input.classes;
  out[1] = of_class + input.classes * Scale(first[2], first[3], members);
}

void FillFeatures(const FakeInput& input, int64_t row, float* out) {
  for (int64_t first = 0; first < input.features; first += 4) {
    const PhiloxWords words = Words(input, kFeatures, row, first / 4);
    const int64_t last = std::min(first + 4, input.features);
    for (int64_t j = first; j < last; ++j) {
      const auto random = static_cast<float>(words[j - first] >> 8);
      const bool own = j % input.classes == row % input.classes;
      out[j] = random / (1 << 23) - 1 + (own ? 0.5f : 0.0f);
    }
  }
}

absl::Status CheckInput(const FakeInput& input) {
  using enum FieldError::Problem;
  if (input.nodes < 1) {
    return InvalidField({.problem = kOutOfRange,
                         .field = "nodes",
                         .value = StrCat(input.nodes),
                         .limit = "at least 1"});
  }
  if (input.classes < 1 || input.classes > input.nodes) {
    return InvalidField(
        {.problem = kOutOfRange,
         .field = "classes",
         .value = StrCat(input.classes),
         .limit = StrCat("1 to the number of nodes, ", input.nodes)});
  }
  if (input.features < 0) {
    return InvalidField({.problem = kOutOfRange,
                         .field = "features",
                         .value = StrCat(input.features),
                         .limit = "at least 0"});
  }
  const double edges = input.average_degree * static_cast<double>(input.nodes);
  if (edges >= 0 && edges <= static_cast<double>(kMaxEdges)) {
    return absl::OkStatus();
  }
  return InvalidField(
      {.field = "average_degree",
       .value = StrCat(input.average_degree),
       .limit = StrCat(edges, " edges are not between 0 and 2^40")});
}

}  // namespace

absl::StatusOr<RawGraph> MakeFake(const FakeInput& input) {
  if (absl::Status valid = CheckInput(input); !valid.ok()) return valid;
  RawGraph graph;
  RawNodes& nodes = graph.nodes.emplace_back();
  nodes.name = kHomogeneousType;
  nodes.count = input.nodes;
  nodes.count_is_chosen = true;
  if (input.features > 0) {
    nodes.feature = std::make_shared<ComputedRows<float>>(
        "fake features", input.features, input.nodes,
        [input](int64_t row, float* out) { FillFeatures(input, row, out); });
  }
  nodes.label = std::make_shared<ComputedRows<int64_t>>(
      "fake labels", 1, input.nodes,
      [classes = input.classes](int64_t row, int64_t* out) {
        *out = row % classes;
      });
  RawEdges& edges = graph.edges.emplace_back();
  edges.name = "to";
  edges.endpoints = std::make_shared<ComputedRows<int64_t>>(
      "fake edges", 2,
      std::llround(input.average_degree * static_cast<double>(input.nodes)),
      [input](int64_t row, int64_t* out) { FillEndpoints(input, row, out); });
  return graph;
}

}  // namespace millrace
