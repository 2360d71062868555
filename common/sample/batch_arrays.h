// SPDX-License-Identifier: Apache-2.0
// The arrays of a batch, each described once. Stream layouts and their checks,
// where rows come from, sizes, names, digests and JSON are derived from these
// descriptions, so adding an array takes one member of Batch or its blocks, one
// ArrayKind and one description.
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
  kSeeds,         // one of each per batch
  kNodes,         // one of each per node type
  kEdges,         // one of each per relation
  kNodeColumns,   // per node type
  kNodeFeatures,  // per node type
  kEdgeFeatures,  // per relation
};

// How many rows an array has.
enum class ArrayLength : uint8_t {
  kOne,
  kSeeds,
  kWalks,  // JobSpec::walks per seed
  kNegatives,
  kHopOffsets,  // hops + 2
  kNodes,
  kLists,  // expanded nodes + 1
  kEdges,
  // Columns: a stream has only the rows that its partition owns.
  kOwnedNodes,
  kLabelledNodes,  // owned nodes whose labels are requested
  kUncachedNodes,  // owned nodes that the client has not cached
  kOwnedEdges,
};

// How the digest of a batch depends on an array; docs/determinism.md section 7.
enum class DigestRule : uint8_t {
  kNone,       // does not depend on it
  kByHand,     // hashed by code in digest.cc, like all columns
  kAlways,     // its values or its absence are hashed
  kEdgeSeeds,  // like kAlways, but only if the seeds are edges
  kIfPresent,  // its values are hashed; if absent, nothing is
};

// Determines which arrays the stream of a batch carries. Everything that it
// refers to must outlive it.
struct StreamContent {
  const Manifest& manifest;
  const ResolvedJob& job;
  const Columns& columns;
  // The client already has the seeds with all their columns, so they are not
  // sent.
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
  // Returns the dtype and the shape of one row in the stream; absent if the
  // stream does not carry the array. `index` is the node type or relation.
  ColumnSpec (*row)(const StreamContent& content, int index) = nullptr;
  DigestRule digest = DigestRule::kNone;
  // Key in the JSON of a batch. If empty, the array is left out or written by
  // separate code.
  std::string_view json = {};
  // The column of nodes that has its rows, in batches of a direction. Null for
  // all arrays that are not columns of nodes.
  NodeColumn (*column)(Direction direction) = nullptr;

  // Whether its rows are columns of nodes or edges, of which a stream carries
  // only some.
  bool is_column() const { return length >= ArrayLength::kOwnedNodes; }

  // The array of a batch; absent if the batch lacks it. Shares memory; hop
  // offsets are borrowed from the batch. `index` is the node type or relation,
  // or 0 if the group has neither.
  Array Get(const Batch& batch, int index) const;
  // Stores an array in a batch whose blocks already exist.
  void Set(Batch& batch, int index, Array array) const;
};

// All arrays, in stream order.
std::span<const BatchArray> BatchArrays();
std::span<const BatchArray> ArraysOf(ArrayGroup group);

// The description of a kind that occurs in batches, so neither kUnknown nor
// kRows.
const BatchArray& Describe(ArrayKind kind);

// How many times a batch has each array of a group.
int CountOf(ArrayGroup group, size_t node_types, size_t relations);

}  // namespace millrace
