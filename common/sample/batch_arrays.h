// SPDX-License-Identifier: Apache-2.0
// The arrays of a batch, each described once. The layout of streams and its
// checks, where rows come from, sizes, names, digests and JSON follow from
// these descriptions, so that a new array is one member of Batch or its blocks,
// one ArrayKind and one description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/array.h"
#include "common/graph/manifest.h"
#include "common/sample/array_kind.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// Arrays that a stream carries together. Streams carry the groups in this
// order, and within a group all arrays of one node type or relation before
// those of the next. Topology and ids come first, since the receiver needs
// them to place the rows of the columns.
enum class ArrayGroup : uint8_t {
  kSeeds,         // one of each in a batch
  kNodes,         // one of each for a node type
  kEdges,         // one of each for a relation
  kNodeColumns,   // for a node type
  kNodeFeatures,  // for a node type
  kEdgeFeatures,  // for a relation
};

// How many rows an array has.
enum class ArrayLength : uint8_t {
  kOne,
  kSeeds,
  kWalks,  // JobSpec::walks for each seed
  kNegatives,
  kHopOffsets,  // hops + 2
  kNodes,
  kLists,  // expanded nodes + 1
  kEdges,
  // Columns: a stream has only the rows that its partition owns.
  kOwnedNodes,
  kLabelledNodes,  // owned nodes whose labels are asked for
  kUncachedNodes,  // owned nodes that the client has not cached
  kOwnedEdges,
};

// How the digest of a batch depends on an array; docs/determinism.md section 7.
enum class DigestRule : uint8_t {
  kNone,       // not at all
  kByHand,     // by code in digest.cc, as on all columns
  kAlways,     // on its values, or on its absence
  kEdgeSeeds,  // as kAlways, but only if the seeds are edges
  kIfPresent,  // on its values; absence leaves no trace
};

// What decides which arrays the stream of a batch carries. All must outlive
// it.
struct StreamContent {
  const Manifest& manifest;
  const ResolvedJob& job;
  const Columns& columns;
  // Whether the client knows the seeds and all their columns, which are then
  // not sent.
  bool explicit_seeds = false;
  // Whether the seeds are explicit edge seeds that come with negatives.
  bool given_negatives = false;
};

// Where an array is stored. Hop offsets are a vector, all others are Arrays.
using ArrayMember =
    std::variant<Array Batch::*, Array EdgeSeedBlock::*, Array NodeBlock::*,
                 std::vector<uint32_t> NodeBlock::*, Array EdgeBlock::*>;

struct BatchArray {
  ArrayKind kind = ArrayKind::kUnknown;
  std::string_view name;
  ArrayGroup group = ArrayGroup::kSeeds;
  ArrayMember member;
  ArrayLength length = ArrayLength::kOne;
  // Dtype of an element and shape of one row, as a stream carries them; absent
  // where the stream does not carry the array. `index` is a node type or
  // relation.
  ColumnSpec (*row)(const StreamContent& content, int index) = nullptr;
  DigestRule digest = DigestRule::kNone;
  // Its key in the JSON of a batch; empty if it is left out, or written by
  // hand.
  std::string_view json = {};
  // The column of nodes that has its rows, in batches of a direction. Null for
  // all arrays that are not columns of nodes.
  NodeColumn (*column)(Direction direction) = nullptr;

  // Whether its rows are columns of nodes or edges, of which a stream carries
  // only some.
  bool is_column() const { return length >= ArrayLength::kOwnedNodes; }

  // The array of a batch; absent if the batch lacks it. Shares memory; hop
  // offsets are borrowed from the batch. `index` is a node type or relation, or
  // 0 where the group has neither.
  Array Get(const Batch& batch, int index) const;
  // Puts an array into a batch whose blocks are there.
  void Set(Batch& batch, int index, Array array) const;
};

// All arrays, in the order of streams.
std::span<const BatchArray> BatchArrays();
std::span<const BatchArray> ArraysOf(ArrayGroup group);

// The description of a kind that batches have: not kUnknown and not kRows.
const BatchArray& Describe(ArrayKind kind);

// How often a batch has each array of a group.
int CountOf(ArrayGroup group, size_t node_types, size_t relations);

}  // namespace millrace
