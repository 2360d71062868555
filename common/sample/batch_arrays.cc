// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch_arrays.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

using Content = StreamContent;
using Kind = ArrayKind;
using Length = ArrayLength;
using Digest = DigestRule;

bool Always(const Content&) { return true; }

bool SeedsAreEdges(const Content& content) {
  return content.job.spec.seed_kind == SeedKind::kEdge;
}

// The split that edge seeds come from. Null for other kinds of seeds, for
// explicit seeds, and if there is no such split (then there is no such batch).
const EdgeSplitInfo* EdgeSplitOf(const Content& content) {
  if (!SeedsAreEdges(content) || content.explicit_seeds) return nullptr;
  const absl::StatusOr<size_t> index = content.manifest.FindEdgeSplit(
      content.job.seed_relation, content.job.spec.split);
  return index.ok() ? &content.manifest.edge_splits[*index] : nullptr;
}

bool SendsPairs(const Content& content) {
  return EdgeSplitOf(content) != nullptr;
}

bool SendsSeeds(const Content& content) {
  return SeedsAreEdges(content) ? SendsPairs(content) : !content.explicit_seeds;
}

bool SendsSeedTimes(const Content& content) {
  if (!SeedsAreEdges(content)) {
    return !content.explicit_seeds &&
           content.job.spec.temporal != TemporalStrategy::kNone;
  }
  const EdgeSplitInfo* split = EdgeSplitOf(content);
  return split != nullptr && split->has_time;
}

bool DrawsPairs(const Content& content) {
  return SeedsAreEdges(content) &&
         content.job.spec.negatives.mode == NegativeMode::kBinary;
}

bool HasDrawnNegatives(const Content& content) {
  return SeedsAreEdges(content) && DrawsNegatives(content.job.spec);
}

// Negatives that the client does not know.
bool SendsNegatives(const Content& content) {
  if (HasDrawnNegatives(content)) return true;
  const EdgeSplitInfo* split = EdgeSplitOf(content);
  return content.job.spec.negatives.mode == NegativeMode::kNone &&
         split != nullptr && split->negatives > 0;
}

bool HasNegatives(const Content& content) {
  return SendsNegatives(content) ||
         (SeedsAreEdges(content) && content.given_negatives &&
          content.job.spec.negatives.mode == NegativeMode::kNone);
}

bool HasSplitTypes(const Content& content) {
  const EdgeSplitInfo* split = EdgeSplitOf(content);
  return split != nullptr && split->has_edge_type;
}

bool HasMethod(const Content& content, SampleMethod method) {
  return content.job.spec.method == method;
}
bool Walks(const Content& content) {
  return HasMethod(content, SampleMethod::kWalk);
}
bool CountsVisits(const Content& content) {
  return HasMethod(content, SampleMethod::kPpr);
}
bool IsDisjoint(const Content& content) { return content.job.spec.disjoint; }
bool WantsEdgeIds(const Content& content) { return content.columns.edge_ids; }
bool WantsOriginalIds(const Content& content) {
  return content.columns.original_ids;
}
bool WantsDegrees(const Content& content) { return content.columns.degrees; }

// The functions for BatchArray::row. A single number per row, if the stream has
// the array:
template <DType dtype, bool (*wanted)(const Content&) = Always>
ColumnSpec Number(const Content& content, int) {
  return {wanted(content) ? dtype : DType::kNone, {}};
}

ColumnSpec SplitLabel(const Content& content, int) {
  const EdgeSplitInfo* split = EdgeSplitOf(content);
  return {split == nullptr ? DType::kNone : split->label.dtype, {}};
}

ColumnSpec Walk(const Content& content, int) {
  if (!Walks(content)) return {};
  return {DType::kInt32, {content.job.hops + 1}};
}

ColumnSpec NodeIdOf(const Content& content, int type) {
  return {content.manifest.schema.node_types[type].id_dtype(), {}};
}

ColumnSpec EdgeFeature(const Content& content, int relation) {
  if (!content.columns.edge_features) return {};
  return content.manifest.schema.relations[relation].feature;
}

ColumnSpec FeatureRow(const Content& content, int relation) {
  const bool sent = EdgeFeature(content, relation).present();
  return {sent ? DType::kUint64 : DType::kNone, {}};
}

ColumnSpec NodeLabel(const Content& content, int type) {
  if (content.columns.labels == LabelRows::kNone) return {};
  return content.manifest.schema.node_types[type].label;
}

ColumnSpec NodeFeature(const Content& content, int type) {
  if (!content.columns.features) return {};
  return WireFeature(content.manifest.schema, type,
                     content.columns.feature_dtype);
}

template <NodeColumn column>
NodeColumn Fixed(Direction) {
  return column;
}

// The columns are the fields of BatchArray; the rows are in stream order.
constexpr BatchArray kArrays[] = {
    {Kind::kSeed, "SEED", ArrayGroup::kSeeds, &Batch::seed, Length::kSeeds,
     Number<DType::kInt64, SendsSeeds>, Digest::kAlways},
    {Kind::kSeedDst, "SEED_DST", ArrayGroup::kSeeds, &EdgeSeedBlock::dst,
     Length::kSeeds, Number<DType::kInt64, SendsPairs>, Digest::kEdgeSeeds},
    {Kind::kSeedTime, "SEED_TIME", ArrayGroup::kSeeds, &Batch::seed_time,
     Length::kSeeds, Number<DType::kInt64, SendsSeedTimes>, Digest::kAlways},
    {Kind::kSeedLabel, "SEED_LABEL", ArrayGroup::kSeeds, &EdgeSeedBlock::label,
     Length::kSeeds, SplitLabel, Digest::kEdgeSeeds},
    {Kind::kSeedEdgeType, "SEED_EDGE_TYPE", ArrayGroup::kSeeds,
     &EdgeSeedBlock::edge_type, Length::kSeeds,
     Number<DType::kInt32, HasSplitTypes>, Digest::kEdgeSeeds},
    {Kind::kNegativeSrc, "NEGATIVE_SRC", ArrayGroup::kSeeds,
     &EdgeSeedBlock::negative_src, Length::kNegatives,
     Number<DType::kInt64, DrawsPairs>, Digest::kEdgeSeeds},
    {Kind::kNegativeDst, "NEGATIVE_DST", ArrayGroup::kSeeds,
     &EdgeSeedBlock::negative_dst, Length::kNegatives,
     Number<DType::kInt64, SendsNegatives>, Digest::kAlways},
    {Kind::kSeedToLocal, "SEED_TO_LOCAL", ArrayGroup::kSeeds,
     &Batch::seed_to_local, Length::kSeeds, Number<DType::kUint32>,
     Digest::kAlways},
    {Kind::kWalks, "WALKS", ArrayGroup::kSeeds, &Batch::walks, Length::kWalks,
     Walk, Digest::kIfPresent, "walks"},
    {Kind::kDstLocal, "DST_LOCAL", ArrayGroup::kSeeds,
     &EdgeSeedBlock::dst_local, Length::kSeeds,
     Number<DType::kUint32, SeedsAreEdges>, Digest::kEdgeSeeds},
    {Kind::kNegativeSrcLocal, "NEGATIVE_SRC_LOCAL", ArrayGroup::kSeeds,
     &EdgeSeedBlock::negative_src_local, Length::kNegatives,
     Number<DType::kUint32, DrawsPairs>, Digest::kEdgeSeeds},
    {Kind::kNegativeLocal, "NEGATIVE_LOCAL", ArrayGroup::kSeeds,
     &EdgeSeedBlock::negative_local, Length::kNegatives,
     Number<DType::kUint32, HasNegatives>, Digest::kEdgeSeeds},
    {Kind::kFalseNegatives, "FALSE_NEGATIVES", ArrayGroup::kSeeds,
     &EdgeSeedBlock::false_negatives, Length::kOne,
     Number<DType::kUint32, HasDrawnNegatives>, Digest::kNone},

    {Kind::kHopOffsets, "HOP_OFFSETS", ArrayGroup::kNodes,
     &NodeBlock::hop_offsets, Length::kHopOffsets, Number<DType::kUint32>,
     Digest::kByHand},
    {Kind::kNodeId, "NODE_ID", ArrayGroup::kNodes, &NodeBlock::id,
     Length::kNodes, NodeIdOf, Digest::kNone},
    {Kind::kTree, "TREE", ArrayGroup::kNodes, &NodeBlock::tree, Length::kNodes,
     Number<DType::kUint32, IsDisjoint>, Digest::kAlways, "trees"},

    {Kind::kIndptr, "INDPTR", ArrayGroup::kEdges, &EdgeBlock::indptr,
     Length::kLists, Number<DType::kUint32>, Digest::kByHand},
    {Kind::kNeighbor, "NEIGHBOR", ArrayGroup::kEdges, &EdgeBlock::neighbor,
     Length::kEdges, Number<DType::kUint32>, Digest::kByHand},
    {Kind::kEdgeId, "EDGE_ID", ArrayGroup::kEdges, &EdgeBlock::edge_id,
     Length::kEdges, Number<DType::kInt64, WantsEdgeIds>, Digest::kAlways,
     "edge_id"},
    {Kind::kEdgeHop, "EDGE_HOP", ArrayGroup::kEdges, &EdgeBlock::hop,
     Length::kEdges, Number<DType::kUint8, Walks>, Digest::kByHand},
    {Kind::kVisits, "VISITS", ArrayGroup::kEdges, &EdgeBlock::visits,
     Length::kEdges, Number<DType::kUint32, CountsVisits>, Digest::kIfPresent,
     "visits"},
    {Kind::kFeatureRow, "FEATURE_ROW", ArrayGroup::kEdges,
     &EdgeBlock::feature_row, Length::kEdges, FeatureRow, Digest::kNone},

    {Kind::kNodeLabel, "NODE_LABEL", ArrayGroup::kNodeColumns,
     &NodeBlock::label, Length::kLabelledNodes, NodeLabel, Digest::kByHand, "y",
     Fixed<NodeColumn::kLabel>},
    {Kind::kOriginalId, "ORIGINAL_ID", ArrayGroup::kNodeColumns,
     &NodeBlock::original_id, Length::kOwnedNodes,
     Number<DType::kInt64, WantsOriginalIds>, Digest::kByHand, "nodes",
     Fixed<NodeColumn::kOriginalId>},
    {Kind::kDegree,
     "DEGREE",
     ArrayGroup::kNodeColumns,
     &NodeBlock::degree,
     Length::kOwnedNodes,
     Number<DType::kUint32, WantsDegrees>,
     Digest::kNone,
     {},
     DegreeColumn},

    {Kind::kNodeFeature, "NODE_FEATURE", ArrayGroup::kNodeFeatures,
     &NodeBlock::feature, Length::kUncachedNodes, NodeFeature, Digest::kByHand,
     "x", Fixed<NodeColumn::kFeature>},

    {Kind::kEdgeFeature, "EDGE_FEATURE", ArrayGroup::kEdgeFeatures,
     &EdgeBlock::feature, Length::kOwnedEdges, EdgeFeature, Digest::kByHand,
     "x"},
};

template <typename Member>
constexpr size_t CountMembers() {
  size_t count = 0;
  for (const BatchArray& array : kArrays) {
    count += std::holds_alternative<Member>(array.member) ? 1 : 0;
  }
  return count;
}

// A member that is added to a block does not compile until it is described.
static_assert(sizeof(NodeBlock) ==
              sizeof(NodeBlock::hop_offsets) +
                  CountMembers<Array NodeBlock::*>() * sizeof(Array));
static_assert(sizeof(EdgeBlock) ==
              sizeof(EdgeBlock::list_ends) + sizeof(EdgeBlock::feature_parts) +
                  CountMembers<Array EdgeBlock::*>() * sizeof(Array));
static_assert(sizeof(EdgeSeedBlock) ==
              sizeof(size_t) +
                  CountMembers<Array EdgeSeedBlock::*>() * sizeof(Array));

constexpr bool IsOfNodeColumn(const BatchArray& array) {
  return array.group == ArrayGroup::kNodeColumns ||
         array.group == ArrayGroup::kNodeFeatures;
}
static_assert(std::ranges::all_of(kArrays, [](const BatchArray& array) {
  return IsOfNodeColumn(array) == (array.column != nullptr);
}));

struct Getter {
  const Batch& batch;
  const int index;

  Array operator()(Array Batch::*member) const { return batch.*member; }
  Array operator()(Array EdgeSeedBlock::*member) const {
    return batch.edge_seeds.*member;
  }
  Array operator()(Array NodeBlock::*member) const {
    return batch.nodes[index].*member;
  }
  Array operator()(std::vector<uint32_t> NodeBlock::*member) const {
    const std::vector<uint32_t>& values = batch.nodes[index].*member;
    return Array::Borrow(DType::kUint32, {static_cast<int64_t>(values.size())},
                         values.data(), nullptr);
  }
  Array operator()(Array EdgeBlock::*member) const {
    return batch.edges[index].*member;
  }
};

struct Setter {
  Batch& batch;
  const int index;
  Array& array;

  void operator()(Array Batch::*member) const {
    batch.*member = std::move(array);
  }
  void operator()(Array EdgeSeedBlock::*member) const {
    batch.edge_seeds.*member = std::move(array);
  }
  void operator()(Array NodeBlock::*member) const {
    batch.nodes[index].*member = std::move(array);
  }
  void operator()(std::vector<uint32_t> NodeBlock::*member) const {
    const std::span<const uint32_t> values = array.As<uint32_t>();
    (batch.nodes[index].*member).assign(values.begin(), values.end());
  }
  void operator()(Array EdgeBlock::*member) const {
    batch.edges[index].*member = std::move(array);
  }
};

}  // namespace

std::string_view ArrayKindName(ArrayKind kind) {
  if (kind == ArrayKind::kRows) return "ROWS";
  for (const BatchArray& array : kArrays) {
    if (array.kind == kind) return array.name;
  }
  return "UNKNOWN";
}

Array BatchArray::Get(const Batch& batch, int index) const {
  return std::visit(Getter{batch, index}, member);
}

void BatchArray::Set(Batch& batch, int index, Array array) const {
  std::visit(Setter{batch, index, array}, member);
}

std::span<const BatchArray> BatchArrays() { return kArrays; }

std::span<const BatchArray> ArraysOf(ArrayGroup group) {
  const auto* begin = std::ranges::find(kArrays, group, &BatchArray::group);
  const auto* end = std::find_if(
      begin, std::end(kArrays),
      [&](const BatchArray& array) { return array.group != group; });
  return {begin, end};
}

const BatchArray& Describe(ArrayKind kind) {
  const auto* array = std::ranges::find(kArrays, kind, &BatchArray::kind);
  MILLRACE_CHECK(array != std::end(kArrays));
  return *array;
}

int CountOf(ArrayGroup group, size_t node_types, size_t relations) {
  switch (group) {
    case ArrayGroup::kSeeds:
      return 1;
    case ArrayGroup::kNodes:
    case ArrayGroup::kNodeColumns:
    case ArrayGroup::kNodeFeatures:
      return static_cast<int>(node_types);
    case ArrayGroup::kEdges:
    case ArrayGroup::kEdgeFeatures:
      return static_cast<int>(relations);
  }
  return 0;
}

}  // namespace millrace
