// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_assembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/with_ids.h"
#include "common/sample/gather.h"
#include "common/sample/seeds/negatives.h"

namespace millrace {
namespace {

std::string Name(const ArrayInfo& info) {
  return StrCat(ArrayKindName(info.kind), " ", info.index);
}

absl::Status ArrayError(const ArrayInfo& info, std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat("array ", Name(info), " of the stream ", what));
}

bool MatchesSlot(const ArrayInfo& info, const ArraySlot& slot) {
  return info.kind == slot.kind && info.index == slot.index &&
         info.dtype == slot.row.dtype &&
         info.shape.size() == slot.row.row_shape.size() + 1 &&
         std::equal(info.shape.begin() + 1, info.shape.end(),
                    slot.row.row_shape.begin());
}

absl::Status CheckBelow32Bits(const ArrayInfo& info) {
  return info.shape[0] < int64_t{1} << 32 ? absl::OkStatus()
                                          : ArrayError(info, "is too long");
}

template <typename Id>
bool AllBelow(std::span<const Id> values, uint64_t limit) {
  // There is no early exit, so that the loop is vectorised; bad values are
  // rare.
  Id largest = 0;
  for (const Id value : values) largest = std::max(largest, value);
  return values.empty() || largest < limit;
}

bool IdsBelow(const Array& ids, uint64_t limit) {
  return WithIds(ids, [&](const auto& all) { return AllBelow(all, limit); });
}

absl::Status CheckBatchMemory(uint64_t bytes) {
  return WithReason(CheckMemory("a batch", bytes,
                                "use a smaller batch size or fanouts, or "
                                "prefetch fewer batches"),
                    Reason{"out_of_memory"});
}

Array AllocateRowArray(int64_t rows, const ArrayInfo& info,
                       ArrayMemory* memory) {
  std::vector<int64_t> shape = info.shape;
  shape[0] = rows;
  return Array::Allocate(info.dtype, std::move(shape), memory);
}

}  // namespace

absl::StatusOr<BatchAssembler> BatchAssembler::Create(
    const AssemblerRequest& request, StreamLayout layout) {
  MILLRACE_RETURN_IF_ERROR(CheckLayout(layout, request.max_bytes));
  MILLRACE_RETURN_IF_ERROR(CheckBatchMemory(layout.total_bytes));
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
    return absl::InvalidArgumentError(StrCat(
        "the stream has ", layout_.hops, " hops, seed type ", layout_.seed_type,
        " and partition ", layout_.partition, "; the request was for ",
        job.hops, ", ", job.seed_type, " and ", request_.home));
  }
  const std::vector<ArraySlot> slots =
      ComputeSlots({request_.manifest, job, request_.request.columns,
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
      return ArrayError(layout_.arrays[i],
                        "has a different dtype or shape than requested");
    }
  }
  // Lengths come last, since they are compared with those of other arrays.
  for (const ArrayInfo& info : layout_.arrays) {
    MILLRACE_RETURN_IF_ERROR(CheckLength(info));
  }
  return absl::OkStatus();
}

// Checks the length of an array as far as the layout alone allows.
absl::Status BatchAssembler::CheckLength(const ArrayInfo& info) const {
  const auto check = [&](bool right, std::string_view what) {
    return right ? absl::OkStatus() : ArrayError(info, what);
  };
  const int64_t length = info.shape[0];
  switch (Describe(info.kind).length) {
    case ArrayLength::kOne:
      return check(length == 1, "is not a number");
    case ArrayLength::kSeeds:
      return CheckSeedCount(info);
    case ArrayLength::kWalks:
      return check(length == RowCount(ArrayKind::kSeedToLocal, 0) *
                                 request_.job.spec.walks,
                   "has the wrong number of walks");
    case ArrayLength::kNegatives:
      return check(length == NegativeLength(),
                   "has the wrong number of negatives");
    case ArrayLength::kHopOffsets:
      return check(length == layout_.hops + 2, "has the wrong length");
    case ArrayLength::kNodes:
      MILLRACE_RETURN_IF_ERROR(
          check(request_.job.spec.disjoint || length <= NodesOf(info.index),
                "has more nodes than there are"));
      MILLRACE_RETURN_IF_ERROR(CheckBelow32Bits(info));
      return check(length == RowCount(ArrayKind::kNodeId, info.index),
                   "is not as long as the ids");
    case ArrayLength::kLists:
      return check(length >= 1, "is empty");
    case ArrayLength::kEdges:
      MILLRACE_RETURN_IF_ERROR(
          check(length == RowCount(ArrayKind::kNeighbor, info.index),
                "is not as long as the neighbours"));
      return CheckBelow32Bits(info);
    case ArrayLength::kOwnedNodes:
    case ArrayLength::kLabelledNodes:
    case ArrayLength::kUncachedNodes:
    case ArrayLength::kOwnedEdges:
      return CheckBelow32Bits(info);
  }
  return ArrayError(info, "has no length");
}

absl::Status BatchAssembler::CheckSeedCount(const ArrayInfo& info) const {
  const int64_t length = info.shape[0];
  const std::optional<ExplicitSeeds>& given = request_.request.explicit_seeds;
  const bool possible = given ? length == static_cast<int64_t>(given->size())
                              : length <= request_.job.spec.batch_size;
  if (possible && length == RowCount(ArrayKind::kSeedToLocal, 0)) {
    return absl::OkStatus();
  }
  return ArrayError(info, "has the wrong number of seeds");
}

int64_t BatchAssembler::NodesOf(TypeIndex type) const {
  return request_.manifest.schema.node_types[type].count;
}

int64_t BatchAssembler::NegativeLength() const {
  const JobSpec& spec = request_.job.spec;
  const int64_t seeds = RowCount(ArrayKind::kSeedToLocal, 0);
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

int64_t BatchAssembler::RowCount(ArrayKind kind, int index) const {
  const auto info =
      std::ranges::find_if(layout_.arrays, [&](const ArrayInfo& array) {
        return array.kind == kind && array.index == index;
      });
  MILLRACE_CHECK(info != layout_.arrays.end());
  return info->shape[0];
}

void BatchAssembler::AllocateTopology() {
  batch_ =
      Batch::For(request_.job, request_.request.epoch, request_.request.batch);
  batch_.nodes.resize(request_.manifest.schema.node_types.size());
  batch_.edges.resize(request_.manifest.schema.relations.size());
  if (request_.request.explicit_seeds) {
    const ExplicitSeeds& seeds = *request_.request.explicit_seeds;
    batch_.seed = Array::Adopt(seeds.ids);
    if (!seeds.times.empty()) batch_.seed_time = Array::Adopt(seeds.times);
    TakeExplicitPairs(seeds);
  }
  for (const ArrayInfo& info : layout_.arrays) {
    Array& array = topology_.emplace_back();
    if (Describe(info.kind).is_column()) continue;
    array =
        Array::Allocate(info.dtype, info.shape, request_.request.memory.get());
    topology_end_ = info.offset + info.total_bytes();
  }
}

void BatchAssembler::TakeExplicitPairs(const ExplicitSeeds& seeds) {
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

absl::Status BatchAssembler::Write(std::span<const std::byte> bytes) {
  if (bytes.size() > layout_.total_bytes - position_) {
    return absl::InvalidArgumentError(
        StrCat("the stream has more than the announced ", layout_.total_bytes,
               " bytes"));
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
      WriteArray(at, bytes.first(piece));
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

void BatchAssembler::WriteArray(uint64_t at, std::span<const std::byte> bytes) {
  if (Describe(layout_.arrays[current_].kind).is_column()) {
    WriteRows(at, bytes);
  } else if (!bytes.empty()) {
    std::memcpy(topology_[current_].mutable_data() + at, bytes.data(),
                bytes.size());
  }
}

void BatchAssembler::WriteRows(uint64_t at, std::span<const std::byte> bytes) {
  const ArrayInfo& info = layout_.arrays[current_];
  const BatchArray& column = Describe(info.kind);
  const std::vector<uint32_t>& rows = rows_.Of(column, info.index);
  Array array = column.Get(batch_, info.index);
  const size_t row_bytes = array.row_bytes();
  std::byte* base = array.mutable_data();
  while (!bytes.empty()) {
    size_t row = at / row_bytes;
    const size_t within = at % row_bytes;
    // Rows that are adjacent in the batch too are copied in one go.
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
  for (size_t i = 0; i < topology_.size(); ++i) {
    const ArrayInfo& info = layout_.arrays[i];
    const BatchArray& array = Describe(info.kind);
    if (array.is_column()) continue;
    array.Set(batch_, info.index, std::move(topology_[i]));
  }
  MILLRACE_RETURN_IF_ERROR(CheckTopology());
  rows_ = SelectRows(batch_, request_.manifest, request_.request.columns,
                     request_.home, request_.cached_rows);
  MILLRACE_RETURN_IF_ERROR(AllocateRows());
  topology_done_ = true;
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
          StrCat("the nodes of type ", type.name, " are inconsistent"));
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
  return absl::InvalidArgumentError("a seed's local id is not that of a seed");
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
                                               walks[i], ", but there are ",
                                               limits[i % columns], " nodes"));
    }
  }
  return absl::OkStatus();
}

absl::Status BatchAssembler::CheckRelation(RelationIndex relation) const {
  const Schema& schema = request_.manifest.schema;
  const Relation& info = schema.relations[relation];
  const EdgeBlock& block = batch_.edges[relation];
  const NodeBlock& lists = batch_.nodes[ListOwnerType(info, batch_.direction)];
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
    return absl::InvalidArgumentError(StrCat(
        "the edges of ", schema.RelationName(relation), " are inconsistent"));
  }
  return absl::OkStatus();
}

int64_t BatchAssembler::WholeLength(const ArrayInfo& info) const {
  const ArrayLength length = Describe(info.kind).length;
  if (length == ArrayLength::kOwnedEdges) {
    return batch_.edges[info.index].edge_count();
  }
  const NodeBlock& block = batch_.nodes[info.index];
  if (length != ArrayLength::kLabelledNodes) return block.count();
  const Columns& columns = request_.request.columns;
  if (!WantsLabels(columns, LabelsSeeds(request_.job, info.index))) return -1;
  return LabelRowCount(columns, block);
}

absl::Status BatchAssembler::AllocateRows() {
  uint64_t bytes = topology_end_;
  for (const ArrayInfo& info : layout_.arrays) {
    const BatchArray& array = Describe(info.kind);
    if (!array.is_column()) continue;
    const auto sent = rows_.Of(array, info.index).size();
    if (info.shape[0] != static_cast<int64_t>(sent)) {
      return ArrayError(info,
                        StrCat("has ", info.shape[0], " rows, not ", sent));
    }
    ArrayInfo whole = info;
    whole.shape[0] = std::max<int64_t>(WholeLength(info), 0);
    bytes += whole.total_bytes();
    if (bytes > request_.max_bytes) {
      return FieldStatus(
          absl::StatusCode::kOutOfRange,
          {.problem = FieldError::Problem::kTooMuch,
           .field = "batch_size",
           .value = StrCat("the batch has more than ", bytes, " bytes"),
           .limit = StrCat(request_.max_bytes)});
    }
  }
  // More than the stream announced, if other servers have rows of the batch.
  MILLRACE_RETURN_IF_ERROR(CheckBatchMemory(bytes - topology_end_));
  for (const ArrayInfo& info : layout_.arrays) {
    const BatchArray& array = Describe(info.kind);
    const int64_t length = array.is_column() ? WholeLength(info) : -1;
    if (length < 0) continue;
    array.Set(batch_, info.index,
              AllocateRowArray(length, info, request_.request.memory.get()));
  }
  return absl::OkStatus();
}

}  // namespace millrace
