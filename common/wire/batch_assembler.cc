// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_assembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/gather.h"
#include "common/sample/negatives.h"

namespace millrace {
namespace {

std::string Name(const ArrayInfo& info) {
  return StrCat(ArrayKindName(info.kind), " ", info.index);
}

absl::Status Wrong(const ArrayInfo& info, std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat("array ", Name(info), " of the stream ", what));
}

bool MatchesSlot(const ArrayInfo& info, const ArraySlot& slot) {
  return info.kind == slot.kind && info.index == slot.index &&
         info.dtype == slot.element.dtype &&
         info.shape.size() == slot.element.row_shape.size() + 1 &&
         std::equal(info.shape.begin() + 1, info.shape.end(),
                    slot.element.row_shape.begin());
}

absl::Status CheckBelow32Bits(const ArrayInfo& info) {
  return info.shape[0] < int64_t{1} << 32 ? absl::OkStatus()
                                          : Wrong(info, "is too long");
}

template <typename Id>
bool AllBelow(std::span<const Id> values, uint64_t limit) {
  // No early exit: vectorised, and bad values are not the usual case.
  Id largest = 0;
  for (const Id value : values) largest = std::max(largest, value);
  return values.empty() || largest < limit;
}

bool IdsBelow(const Array& ids, uint64_t limit) {
  return ids.dtype() == DType::kUint64 ? AllBelow(ids.As<uint64_t>(), limit)
                                       : AllBelow(ids.As<uint32_t>(), limit);
}

Array AllocateRowArray(int64_t rows, const ArrayInfo& info) {
  std::vector<int64_t> shape = info.shape;
  shape[0] = rows;
  return Array::Allocate(info.dtype, std::move(shape));
}

Array& RowArray(Batch& batch, const ArrayInfo& info) {
  if (info.kind == ArrayKind::kEdgeFeature) {
    return batch.edges[info.index].feature;
  }
  NodeBlock& block = batch.nodes[info.index];
  switch (info.kind) {
    case ArrayKind::kNodeFeature:
      return block.feature;
    case ArrayKind::kNodeLabel:
      return block.label;
    case ArrayKind::kOriginalId:
      return block.original_id;
    default:
      return block.degree;
  }
}

}  // namespace

absl::StatusOr<BatchAssembler> BatchAssembler::Create(
    const AssemblerRequest& request, StreamLayout layout) {
  MILLRACE_RETURN_IF_ERROR(CheckLayout(layout, request.max_bytes));
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory("a batch", layout.total_bytes,
                  "use a smaller --batch-size, --fanouts or "
                  "--prefetch-batches"));
  BatchAssembler assembler(request, std::move(layout));
  MILLRACE_RETURN_IF_ERROR(assembler.CheckArrays());
  assembler.AllocateTopology();
  if (assembler.topology_end_ == 0) {
    MILLRACE_RETURN_IF_ERROR(assembler.FinishTopology());
  }
  return assembler;
}

absl::Status BatchAssembler::CheckArrays() const {
  const ResolvedJob& job = request_.job;
  if (layout_.hops != job.hops || layout_.seed_type != job.seed_type ||
      layout_.partition != request_.home) {
    return absl::InvalidArgumentError(
        StrCat("the stream is of ", layout_.hops, " hops, seed type ",
               layout_.seed_type, " and partition ", layout_.partition,
               "; asked for were ", job.hops, ", ", job.seed_type, " and ",
               request_.home));
  }
  const std::vector<ArraySlot> slots =
      ArraysOf({request_.manifest, job, request_.request.columns,
                request_.request.explicit_seeds.has_value(),
                request_.request.explicit_seeds.has_value() &&
                    !request_.request.explicit_seeds->negatives.empty()});
  if (layout_.arrays.size() != slots.size()) {
    return absl::InvalidArgumentError(StrCat("the stream has ",
                                             layout_.arrays.size(),
                                             " arrays, not ", slots.size()));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!MatchesSlot(layout_.arrays[i], slots[i])) {
      return Wrong(layout_.arrays[i], "has another type or shape than asked");
    }
  }
  // Only now: lengths are compared with those of any other array.
  for (const ArrayInfo& info : layout_.arrays) {
    MILLRACE_RETURN_IF_ERROR(CheckArray(info));
  }
  return absl::OkStatus();
}

// Lengths that can be told from the layout alone.
absl::Status BatchAssembler::CheckArray(const ArrayInfo& info) const {
  const int64_t length = info.shape[0];
  switch (info.kind) {
    case ArrayKind::kSeed:
    case ArrayKind::kSeedTime:
    case ArrayKind::kSeedDst:
    case ArrayKind::kSeedLabel:
    case ArrayKind::kSeedEdgeType:
    case ArrayKind::kDstLocal:
    case ArrayKind::kSeedToLocal: {
      const int64_t seeds = Find(ArrayKind::kSeedToLocal, 0)->shape[0];
      const auto& given = request_.request.explicit_seeds;
      if (length != seeds ||
          (given ? length != static_cast<int64_t>(given->size())
                 : length > request_.job.spec.batch_size)) {
        return Wrong(info, "has another number of seeds");
      }
      return absl::OkStatus();
    }
    case ArrayKind::kNegativeSrc:
    case ArrayKind::kNegativeDst:
    case ArrayKind::kNegativeSrcLocal:
    case ArrayKind::kNegativeLocal:
      return length == NegativeLength()
                 ? absl::OkStatus()
                 : Wrong(info, "has another number of negatives");
    case ArrayKind::kFalseNegatives:
      return length == 1 ? absl::OkStatus() : Wrong(info, "is not a number");
    case ArrayKind::kWalks:
      return length == Find(ArrayKind::kSeedToLocal, 0)->shape[0] *
                           request_.job.spec.walks
                 ? absl::OkStatus()
                 : Wrong(info, "has another number of walks");
    case ArrayKind::kHopOffsets:
      return length == layout_.hops + 2 ? absl::OkStatus()
                                        : Wrong(info, "has a wrong length");
    case ArrayKind::kNodeId:
      return request_.job.spec.disjoint || length <= NodesOf(info.index)
                 ? CheckBelow32Bits(info)
                 : Wrong(info, "has more nodes than there are");
    case ArrayKind::kTree:
      return length == Find(ArrayKind::kNodeId, info.index)->shape[0]
                 ? absl::OkStatus()
                 : Wrong(info, "is not as long as the ids");
    case ArrayKind::kIndptr:
      return length >= 1 ? absl::OkStatus() : Wrong(info, "is empty");
    case ArrayKind::kEdgeId:
    case ArrayKind::kEdgeHop:
    case ArrayKind::kVisits:
    case ArrayKind::kFeatureRow:
      return length == Find(ArrayKind::kNeighbor, info.index)->shape[0]
                 ? absl::OkStatus()
                 : Wrong(info, "is not as long as the neighbours");
    default:
      return CheckBelow32Bits(info);
  }
}

int64_t BatchAssembler::NodesOf(TypeIndex type) const {
  return request_.manifest.schema.node_types[type].count;
}

int64_t BatchAssembler::NegativeLength() const {
  const JobSpec& spec = request_.job.spec;
  const int64_t seeds = Find(ArrayKind::kSeedToLocal, 0)->shape[0];
  if (DrawsNegatives(spec)) {
    return NegativeCount(spec.negatives, static_cast<size_t>(seeds));
  }
  if (request_.request.explicit_seeds) {
    return static_cast<int64_t>(
        request_.request.explicit_seeds->negatives.size());
  }
  const Manifest& manifest = request_.manifest;
  const absl::StatusOr<size_t> split =
      manifest.FindEdgeSplit(request_.job.seed_relation, spec.split);
  return split.ok() ? seeds * manifest.edge_splits[*split].negatives : -1;
}

const ArrayInfo* BatchAssembler::Find(ArrayKind kind, int index) const {
  for (const ArrayInfo& info : layout_.arrays) {
    if (info.kind == kind && info.index == index) return &info;
  }
  return nullptr;
}

void BatchAssembler::AllocateTopology() {
  const ResolvedJob& job = request_.job;
  batch_.epoch = request_.request.epoch;
  batch_.index = request_.request.batch;
  batch_.seed_kind = job.spec.seed_kind;
  batch_.seed_type = job.seed_type;
  batch_.direction = job.spec.direction;
  batch_.method = job.spec.method;
  batch_.hops = job.hops;
  batch_.disjoint = job.spec.disjoint;
  batch_.edge_seeds.relation = std::max(job.seed_relation, 0);
  batch_.nodes.resize(request_.manifest.schema.node_types.size());
  batch_.edges.resize(request_.manifest.schema.relations.size());
  hop_offsets_.resize(batch_.nodes.size());
  if (request_.request.explicit_seeds) {
    const SeedList& seeds = *request_.request.explicit_seeds;
    batch_.seed = Array::Adopt(seeds.ids);
    if (!seeds.times.empty()) batch_.seed_time = Array::Adopt(seeds.times);
    TakeExplicitPairs(seeds);
  }
  for (const ArrayInfo& info : layout_.arrays) {
    if (IsRowKind(info.kind)) continue;
    PlaceOf(info) = Array::Allocate(info.dtype, info.shape);
    topology_end_ = info.offset + info.total_bytes();
  }
}

void BatchAssembler::TakeExplicitPairs(const SeedList& seeds) {
  if (request_.job.spec.seed_kind != SeedKind::kEdge) return;
  EdgeSeedBlock& block = batch_.edge_seeds;
  block.dst = Array::Adopt(seeds.dst);
  block.label = seeds.labels;
  if (!seeds.edge_types.empty()) {
    block.edge_type = Array::Adopt(seeds.edge_types);
  }
  if (!seeds.negatives.empty() &&
      request_.job.spec.negatives.mode == NegativeMode::kNone) {
    block.negative_dst = Array::Adopt(seeds.negatives);
  }
}

Array& BatchAssembler::PlaceOf(const ArrayInfo& info) {
  Array* array = TopologyArray(batch_, info.kind, info.index);
  return array != nullptr ? *array : hop_offsets_[info.index];
}

absl::Status BatchAssembler::Write(std::span<const std::byte> bytes) {
  if (bytes.size() > layout_.total_bytes - position_) {
    return absl::InvalidArgumentError(StrCat(
        "the stream announced ", layout_.total_bytes, " bytes and has more"));
  }
  while (!bytes.empty()) {
    const ArrayInfo* info =
        current_ < layout_.arrays.size() ? &layout_.arrays[current_] : nullptr;
    uint64_t piece = bytes.size();
    if (info != nullptr && position_ < info->offset) {
      piece = std::min(piece, info->offset - position_);  // padding
    } else if (info != nullptr) {
      const uint64_t at = position_ - info->offset;
      piece = std::min(piece, info->total_bytes() - at);
      WriteArray(*info, at, bytes.first(piece));
      if (at + piece == info->total_bytes()) ++current_;
    }
    position_ += piece;
    bytes = bytes.subspan(piece);
    if (!topology_done_ && position_ >= topology_end_) {
      MILLRACE_RETURN_IF_ERROR(FinishTopology());
    }
  }
  return absl::OkStatus();
}

void BatchAssembler::WriteArray(const ArrayInfo& info, uint64_t at,
                                std::span<const std::byte> bytes) {
  if (IsRowKind(info.kind)) {
    WriteRows(info, at, bytes);
  } else if (!bytes.empty()) {
    std::memcpy(PlaceOf(info).mutable_data() + at, bytes.data(), bytes.size());
  }
}

void BatchAssembler::WriteRows(const ArrayInfo& info, uint64_t at,
                               std::span<const std::byte> bytes) {
  const std::vector<uint32_t>& rows = RowsOf(rows_, info.kind, info.index);
  Array& array = RowArray(batch_, info);
  const size_t row_bytes = array.row_bytes();
  std::byte* base = array.mutable_data();
  while (!bytes.empty()) {
    size_t row = at / row_bytes;
    const size_t within = at % row_bytes;
    // Rows that stay neighbours are copied in one go.
    size_t run = row_bytes - within;
    while (run < bytes.size() && row + 1 < rows.size() &&
           rows[row + 1] == rows[row] + 1) {
      run += row_bytes;
      ++row;
    }
    run = std::min(run, bytes.size());
    std::memcpy(base + rows[at / row_bytes] * row_bytes + within, bytes.data(),
                run);
    at += run;
    bytes = bytes.subspan(run);
  }
}

absl::Status BatchAssembler::FinishTopology() {
  for (size_t t = 0; t < batch_.nodes.size(); ++t) {
    const auto offsets = hop_offsets_[t].As<uint32_t>();
    batch_.nodes[t].hop_offsets.assign(offsets.begin(), offsets.end());
  }
  MILLRACE_RETURN_IF_ERROR(CheckTopology());
  rows_ = SelectRows(batch_, request_.manifest, request_.request.columns,
                     request_.home, request_.cached_rows);
  MILLRACE_RETURN_IF_ERROR(AllocateRows());
  topology_done_ = true;
  // Arrays without bytes are done as soon as they are reached.
  return absl::OkStatus();
}

absl::Status BatchAssembler::CheckTopology() const {
  for (size_t t = 0; t < batch_.nodes.size(); ++t) {
    const NodeBlock& block = batch_.nodes[t];
    const NodeType& type = request_.manifest.schema.node_types[t];
    if (!std::is_sorted(block.hop_offsets.begin(), block.hop_offsets.end()) ||
        block.hop_offsets.front() != 0 || block.count() != block.id.rows() ||
        (!IsSeedType(request_.job, request_.manifest.schema,
                     static_cast<TypeIndex>(t)) &&
         block.hop_offsets[1] != 0) ||
        !IdsBelow(block.id, static_cast<uint64_t>(type.count)) ||
        !AllBelow(block.tree.As<uint32_t>(), TreeCount())) {
      return absl::InvalidArgumentError(
          StrCat("the nodes of type ", type.name, " contradict themselves"));
    }
  }
  MILLRACE_RETURN_IF_ERROR(CheckSeedRows());
  for (size_t r = 0; r < batch_.edges.size(); ++r) {
    MILLRACE_RETURN_IF_ERROR(CheckRelation(static_cast<int>(r)));
  }
  return CheckWalks();
}

uint64_t BatchAssembler::TreeCount() const {
  const auto seeds = static_cast<uint64_t>(batch_.seed_to_local.rows());
  return seeds +
         static_cast<uint64_t>(batch_.edge_seeds.negative_src_local.rows());
}

absl::Status BatchAssembler::CheckSeedRows() const {
  const auto of_seeds = [&](const Array& rows, TypeIndex type) {
    return AllBelow(rows.As<uint32_t>(), batch_.nodes[type].hop_offsets[1]);
  };
  const EdgeSeedBlock& pairs = batch_.edge_seeds;
  TypeIndex src = batch_.seed_type;
  if (batch_.seed_kind == SeedKind::kEdge) {
    src = request_.manifest.schema.relations[pairs.relation].src;
  }
  if (of_seeds(batch_.seed_to_local, src) &&
      of_seeds(pairs.dst_local, batch_.seed_type) &&
      of_seeds(pairs.negative_src_local, src) &&
      of_seeds(pairs.negative_local, batch_.seed_type)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a seed has a row that is no seed's");
}

absl::Status BatchAssembler::CheckWalks() const {
  if (!batch_.walks.present()) return absl::OkStatus();
  const std::vector<Relation>& relations = request_.manifest.schema.relations;
  const std::vector<RelationIndex>& path = request_.job.metapath;
  const std::span<const int32_t> walks = batch_.walks.As<int32_t>();
  const auto columns = static_cast<size_t>(batch_.hops) + 1;
  std::vector<uint32_t> limits = {batch_.nodes[batch_.seed_type].count()};
  for (size_t step = 0; step + 1 < columns; ++step) {
    const Relation& relation = relations[path[step % path.size()]];
    limits.push_back(
        batch_.nodes[NeighborType(relation, batch_.direction)].count());
  }
  for (size_t i = 0; i < walks.size(); ++i) {
    if (walks[i] < -1 ||
        walks[i] >= static_cast<int64_t>(limits[i % columns])) {
      return absl::InvalidArgumentError(StrCat("a walk is at local id ",
                                               walks[i], " of ",
                                               limits[i % columns], " nodes"));
    }
  }
  return absl::OkStatus();
}

absl::Status BatchAssembler::CheckRelation(RelationIndex relation) const {
  const Schema& schema = request_.manifest.schema;
  const Relation& info = schema.relations[relation];
  const EdgeBlock& block = batch_.edges[relation];
  const NodeBlock& lists = batch_.nodes[ListType(info, batch_.direction)];
  const NodeBlock& neighbors =
      batch_.nodes[NeighborType(info, batch_.direction)];
  const auto indptr = block.indptr.As<uint32_t>();
  const size_t expanded = EdgesOfAllNodes(batch_.method)
                              ? lists.count()
                              : lists.hop_offsets[batch_.hops];
  if (indptr.size() != expanded + 1 || indptr.front() != 0 ||
      indptr.back() != block.neighbor.rows() ||
      !std::is_sorted(indptr.begin(), indptr.end()) ||
      !AllBelow(block.neighbor.As<uint32_t>(), neighbors.count()) ||
      !AllBelow(block.hop.As<uint8_t>(), static_cast<uint64_t>(batch_.hops))) {
    return absl::InvalidArgumentError(StrCat("the edges of ",
                                             schema.RelationName(relation),
                                             " contradict themselves"));
  }
  return absl::OkStatus();
}

int64_t BatchAssembler::WholeLength(const ArrayInfo& info) const {
  if (info.kind == ArrayKind::kEdgeFeature) {
    return batch_.edges[info.index].edge_count();
  }
  const NodeBlock& block = batch_.nodes[info.index];
  if (info.kind != ArrayKind::kNodeLabel) return block.count();
  const Columns& columns = request_.request.columns;
  if (!WantsLabels(columns, LabelsSeeds(request_.job, info.index))) return -1;
  return LabelRowCount(columns, block);
}

absl::Status BatchAssembler::AllocateRows() {
  uint64_t bytes = topology_end_;
  for (const ArrayInfo& info : layout_.arrays) {
    if (!IsRowKind(info.kind)) continue;
    const auto sent = RowsOf(rows_, info.kind, info.index).size();
    if (info.shape[0] != static_cast<int64_t>(sent)) {
      return Wrong(info, StrCat("has ", info.shape[0], " rows, not ", sent));
    }
    ArrayInfo whole = info;
    whole.shape[0] = std::max<int64_t>(WholeLength(info), 0);
    bytes += whole.total_bytes();
    if (bytes > request_.max_bytes) {
      return absl::FailedPreconditionError(
          StrCat("the batch has more than ", bytes, " bytes, the limit is ",
                 request_.max_bytes));
    }
  }
  for (const ArrayInfo& info : layout_.arrays) {
    const int64_t length = IsRowKind(info.kind) ? WholeLength(info) : -1;
    if (length >= 0) RowArray(batch_, info) = AllocateRowArray(length, info);
  }
  return absl::OkStatus();
}

}  // namespace millrace
