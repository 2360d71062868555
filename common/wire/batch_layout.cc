// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

constexpr DType kU32 = DType::kUint32;

// Local ids of the nodes with begin <= id < end, ascending.
template <typename Id>
std::vector<uint32_t> RowsInRange(std::span<const Id> ids, uint64_t begin,
                                  uint64_t end) {
  std::vector<uint32_t> rows(ids.size());
  size_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows[count] = static_cast<uint32_t>(i);
    count += static_cast<uint64_t>(ids[i]) - begin < end - begin ? 1 : 0;
  }
  rows.resize(count);
  return rows;
}

std::vector<uint32_t> SelectIds(const Array& ids, uint64_t begin,
                                uint64_t end) {
  return ids.dtype() == DType::kUint64
             ? RowsInRange(ids.As<uint64_t>(), begin, end)
             : RowsInRange(ids.As<uint32_t>(), begin, end);
}

uint64_t Cached(std::span<const uint64_t> cached_rows, size_t type,
                uint64_t owned) {
  return type < cached_rows.size() ? std::min(cached_rows[type], owned) : 0;
}

// The first dimension of an array.
int64_t LengthOf(const Batch& batch, const SentRows& rows,
                 const ArraySlot& slot) {
  switch (slot.kind) {
    case ArrayKind::kSeed:
    case ArrayKind::kSeedTime:
    case ArrayKind::kSeedDst:
    case ArrayKind::kSeedLabel:
    case ArrayKind::kSeedEdgeType:
    case ArrayKind::kDstLocal:
      return batch.seed.rows();
    case ArrayKind::kNegativeSrc:
    case ArrayKind::kNegativeDst:
    case ArrayKind::kNegativeSrcLocal:
    case ArrayKind::kNegativeLocal:
      return batch.edge_seeds.negative_local.rows();
    case ArrayKind::kFalseNegatives:
      return 1;
    case ArrayKind::kWalks:
      return batch.walks.rows();
    case ArrayKind::kSeedToLocal:
      return batch.seed_to_local.rows();
    case ArrayKind::kHopOffsets:
      return static_cast<int64_t>(batch.nodes[slot.index].hop_offsets.size());
    case ArrayKind::kNodeId:
    case ArrayKind::kTree:
      return batch.nodes[slot.index].id.rows();
    case ArrayKind::kIndptr:
      return batch.edges[slot.index].indptr.rows();
    case ArrayKind::kNeighbor:
    case ArrayKind::kEdgeId:
    case ArrayKind::kEdgeHop:
    case ArrayKind::kVisits:
    case ArrayKind::kFeatureRow:
      return batch.edges[slot.index].neighbor.rows();
    default:
      return static_cast<int64_t>(RowsOf(rows, slot.kind, slot.index).size());
  }
}

// The pairs and their negatives.
void AddEdgeSeeds(const StreamContent& content, const EdgeSplitInfo* split,
                  std::vector<ArraySlot>& slots) {
  const JobSpec& spec = content.job.spec;
  const auto add = [&](bool wanted, ArrayKind kind, DType dtype) {
    if (wanted) slots.push_back({kind, 0, {dtype, {}}});
  };
  if (split != nullptr) {
    add(true, ArrayKind::kSeed, DType::kInt64);
    add(true, ArrayKind::kSeedDst, DType::kInt64);
    add(split->has_time, ArrayKind::kSeedTime, DType::kInt64);
    add(split->label.present(), ArrayKind::kSeedLabel, split->label.dtype);
    add(split->has_edge_type, ArrayKind::kSeedEdgeType, DType::kInt32);
  }
  const bool drawn = DrawsNegatives(spec);
  const bool pairs = spec.negatives.mode == NegativeMode::kBinary;
  const bool from_split = spec.negatives.mode == NegativeMode::kNone &&
                          split != nullptr && split->negatives > 0;
  const bool given =
      spec.negatives.mode == NegativeMode::kNone && content.given_negatives;
  add(pairs, ArrayKind::kNegativeSrc, DType::kInt64);
  add(drawn || from_split, ArrayKind::kNegativeDst, DType::kInt64);
  add(true, ArrayKind::kSeedToLocal, kU32);
  add(true, ArrayKind::kDstLocal, kU32);
  add(pairs, ArrayKind::kNegativeSrcLocal, kU32);
  add(drawn || from_split || given, ArrayKind::kNegativeLocal, kU32);
  add(drawn, ArrayKind::kFalseNegatives, kU32);
}

// Null for explicit seeds, and where there is no such split: then there is no
// such batch either.
const EdgeSplitInfo* SplitOf(const StreamContent& content) {
  if (content.explicit_seeds) return nullptr;
  const absl::StatusOr<size_t> index = content.manifest.FindEdgeSplit(
      content.job.seed_relation, content.job.spec.split);
  return index.ok() ? &content.manifest.edge_splits[*index] : nullptr;
}

void AddSeeds(const StreamContent& content, std::vector<ArraySlot>& slots) {
  const JobSpec& spec = content.job.spec;
  if (spec.seed_kind == SeedKind::kEdge) {
    return AddEdgeSeeds(content, SplitOf(content), slots);
  }
  if (!content.explicit_seeds) {
    slots.push_back({ArrayKind::kSeed, 0, {DType::kInt64, {}}});
    if (spec.temporal != TemporalStrategy::kNone) {
      slots.push_back({ArrayKind::kSeedTime, 0, {DType::kInt64, {}}});
    }
  }
  slots.push_back({ArrayKind::kSeedToLocal, 0, {kU32, {}}});
  if (spec.method == SampleMethod::kWalk) {
    slots.push_back(
        {ArrayKind::kWalks, 0, {DType::kInt32, {content.job.hops + 1}}});
  }
}

void AddTopology(const StreamContent& content, std::vector<ArraySlot>& slots) {
  const Schema& schema = content.manifest.schema;
  const JobSpec& spec = content.job.spec;
  for (int t = 0; t < static_cast<int>(schema.node_types.size()); ++t) {
    slots.push_back({ArrayKind::kHopOffsets, t, {kU32, {}}});
    slots.push_back(
        {ArrayKind::kNodeId, t, {schema.node_types[t].id_dtype(), {}}});
    if (spec.disjoint) slots.push_back({ArrayKind::kTree, t, {kU32, {}}});
  }
  for (int r = 0; r < static_cast<int>(schema.relations.size()); ++r) {
    const auto add = [&](bool wanted, ArrayKind kind, DType dtype) {
      if (wanted) slots.push_back({kind, r, {dtype, {}}});
    };
    add(true, ArrayKind::kIndptr, kU32);
    add(true, ArrayKind::kNeighbor, kU32);
    add(content.columns.edge_ids, ArrayKind::kEdgeId, DType::kInt64);
    add(spec.method == SampleMethod::kWalk, ArrayKind::kEdgeHop, DType::kUint8);
    add(spec.method == SampleMethod::kPpr, ArrayKind::kVisits, kU32);
    add(content.columns.edge_features && schema.relations[r].feature.present(),
        ArrayKind::kFeatureRow, DType::kUint64);
  }
}

void AddRows(const StreamContent& content, std::vector<ArraySlot>& slots) {
  const Schema& schema = content.manifest.schema;
  const Columns& columns = content.columns;
  const int types = static_cast<int>(schema.node_types.size());
  for (int t = 0; t < types; ++t) {
    const ColumnSpec& label = schema.node_types[t].label;
    if (columns.labels != LabelRows::kNone && label.present()) {
      slots.push_back({ArrayKind::kNodeLabel, t, label});
    }
    if (columns.original_ids) {
      slots.push_back({ArrayKind::kOriginalId, t, {DType::kInt64, {}}});
    }
    if (columns.degrees) slots.push_back({ArrayKind::kDegree, t, {kU32, {}}});
  }
  for (int t = 0; columns.features && t < types; ++t) {
    ColumnSpec feature = WireFeature(schema, t, columns.feature_dtype);
    if (feature.present()) {
      slots.push_back({ArrayKind::kNodeFeature, t, std::move(feature)});
    }
  }
  const int relations = static_cast<int>(schema.relations.size());
  for (int r = 0; columns.edge_features && r < relations; ++r) {
    const ColumnSpec& feature = schema.relations[r].feature;
    if (feature.present()) {
      slots.push_back({ArrayKind::kEdgeFeature, r, feature});
    }
  }
}

std::vector<uint32_t> EdgesOfHome(const Batch& batch, const Manifest& manifest,
                                  RelationIndex index, int home) {
  const Relation& relation = manifest.schema.relations[index];
  const std::vector<uint32_t> owners = FeatureOwners(
      batch, relation, batch.edges[index], manifest.books[relation.dst]);
  std::vector<uint32_t> edges;
  for (size_t e = 0; e < owners.size(); ++e) {
    if (owners[e] == static_cast<uint32_t>(home)) {
      edges.push_back(static_cast<uint32_t>(e));
    }
  }
  return edges;
}

}  // namespace

SentRows SelectRows(const Batch& batch, const Manifest& manifest,
                    const Columns& columns, int home,
                    std::span<const uint64_t> cached_rows) {
  const size_t types = batch.nodes.size();
  SentRows rows{std::vector<std::vector<uint32_t>>(types),
                std::vector<std::vector<uint32_t>>(types),
                std::vector<std::vector<uint32_t>>(types),
                std::vector<std::vector<uint32_t>>(batch.edges.size())};
  for (size_t t = 0; t < types; ++t) {
    const NodeBlock& block = batch.nodes[t];
    const uint64_t begin = manifest.books[t].begin(home);
    const uint64_t end = manifest.books[t].end(home);
    rows.home[t] = SelectIds(block.id, begin, end);
    const uint64_t cached = Cached(cached_rows, t, end - begin);
    if (columns.features && manifest.schema.node_types[t].feature.present()) {
      rows.feature[t] =
          cached == 0 ? rows.home[t] : SelectIds(block.id, begin + cached, end);
    }
    if (WantsLabels(columns, batch.seed_kind != SeedKind::kEdge &&
                                 static_cast<int>(t) == batch.seed_type) &&
        manifest.schema.node_types[t].label.present()) {
      const auto last =
          std::lower_bound(rows.home[t].begin(), rows.home[t].end(),
                           LabelRowCount(columns, block));
      rows.label[t].assign(rows.home[t].begin(), last);
    }
  }
  for (size_t r = 0; columns.edge_features && r < rows.edge.size(); ++r) {
    if (manifest.schema.relations[r].feature.present()) {
      rows.edge[r] =
          EdgesOfHome(batch, manifest, static_cast<RelationIndex>(r), home);
    }
  }
  return rows;
}

std::vector<ArraySlot> ArraysOf(const StreamContent& content) {
  std::vector<ArraySlot> slots;
  AddSeeds(content, slots);
  AddTopology(content, slots);
  AddRows(content, slots);
  return slots;
}

StreamLayout LayoutBatch(const Batch& batch, const StreamContent& content,
                         const SentRows& rows) {
  StreamLayout layout;
  layout.hops = batch.hops;
  layout.seed_type = batch.seed_type;
  for (const ArraySlot& slot : ArraysOf(content)) {
    std::vector<int64_t> shape = {LengthOf(batch, rows, slot)};
    shape.insert(shape.end(), slot.element.row_shape.begin(),
                 slot.element.row_shape.end());
    layout.Append(slot.kind, slot.index, slot.element.dtype, std::move(shape));
  }
  return layout;
}

const Array* TopologyArray(const Batch& batch, ArrayKind kind, int index) {
  switch (kind) {
    case ArrayKind::kSeed:
      return &batch.seed;
    case ArrayKind::kSeedToLocal:
      return &batch.seed_to_local;
    case ArrayKind::kHopOffsets:
      return nullptr;
    case ArrayKind::kNodeId:
      return &batch.nodes[index].id;
    case ArrayKind::kTree:
      return &batch.nodes[index].tree;
    case ArrayKind::kIndptr:
      return &batch.edges[index].indptr;
    case ArrayKind::kNeighbor:
      return &batch.edges[index].neighbor;
    case ArrayKind::kEdgeId:
      return &batch.edges[index].edge_id;
    case ArrayKind::kSeedTime:
      return &batch.seed_time;
    case ArrayKind::kWalks:
      return &batch.walks;
    case ArrayKind::kSeedDst:
      return &batch.edge_seeds.dst;
    case ArrayKind::kSeedLabel:
      return &batch.edge_seeds.label;
    case ArrayKind::kSeedEdgeType:
      return &batch.edge_seeds.edge_type;
    case ArrayKind::kNegativeSrc:
      return &batch.edge_seeds.negative_src;
    case ArrayKind::kNegativeDst:
      return &batch.edge_seeds.negative_dst;
    case ArrayKind::kDstLocal:
      return &batch.edge_seeds.dst_local;
    case ArrayKind::kNegativeSrcLocal:
      return &batch.edge_seeds.negative_src_local;
    case ArrayKind::kNegativeLocal:
      return &batch.edge_seeds.negative_local;
    case ArrayKind::kFalseNegatives:
      return &batch.edge_seeds.false_negatives;
    case ArrayKind::kEdgeHop:
      return &batch.edges[index].hop;
    case ArrayKind::kVisits:
      return &batch.edges[index].visits;
    case ArrayKind::kFeatureRow:
      return &batch.edges[index].feature_row;
    case ArrayKind::kUnknown:
    case ArrayKind::kNodeFeature:
    case ArrayKind::kNodeLabel:
    case ArrayKind::kOriginalId:
    case ArrayKind::kDegree:
    case ArrayKind::kEdgeFeature:
    case ArrayKind::kRows:
      break;
  }
  CheckFailed(__FILE__, __LINE__, "the array is of topology");
}

Array* TopologyArray(Batch& batch, ArrayKind kind, int index) {
  return const_cast<Array*>(TopologyArray(std::as_const(batch), kind, index));
}

bool IsRowKind(ArrayKind kind) {
  return kind == ArrayKind::kNodeFeature || kind == ArrayKind::kNodeLabel ||
         kind == ArrayKind::kOriginalId || kind == ArrayKind::kDegree ||
         kind == ArrayKind::kEdgeFeature;
}

NodeColumn RowColumn(ArrayKind kind, Direction direction) {
  MILLRACE_CHECK(IsRowKind(kind) && kind != ArrayKind::kEdgeFeature);
  switch (kind) {
    case ArrayKind::kNodeFeature:
      return NodeColumn::kFeature;
    case ArrayKind::kNodeLabel:
      return NodeColumn::kLabel;
    case ArrayKind::kOriginalId:
      return NodeColumn::kOriginalId;
    default:
      return DegreeColumn(direction);
  }
}

const std::vector<uint32_t>& RowsOf(const SentRows& rows, ArrayKind kind,
                                    int index) {
  MILLRACE_CHECK(IsRowKind(kind));
  if (kind == ArrayKind::kEdgeFeature) return rows.edge[index];
  if (kind == ArrayKind::kNodeFeature) return rows.feature[index];
  if (kind == ArrayKind::kNodeLabel) return rows.label[index];
  return rows.home[index];
}

ColumnSpec WireFeature(const Schema& schema, TypeIndex type, DType cast) {
  ColumnSpec feature = schema.node_types[type].feature;
  if (feature.present() && cast != DType::kNone) feature.dtype = cast;
  return feature;
}

}  // namespace millrace
