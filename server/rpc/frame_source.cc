// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/frame_source.h"

#include <algorithm>
#include <utility>

#include "common/base/block.h"
#include "common/base/check.h"
#include "common/base/float_cast.h"
#include "common/base/status_macros.h"
#include "common/grpc/frames.h"
#include "common/sample/gather.h"
#include "common/wire/frame.h"

namespace millrace {
namespace {

constexpr std::byte kZeros[8] = {};

// Rows to be cast are gathered in pieces small enough to stay in the cache.
constexpr size_t kUncastBytes = 64 << 10;

size_t RowBytes(const ArrayInfo& info) {
  size_t bytes = ItemBytes(info.dtype);
  for (size_t i = 1; i < info.shape.size(); ++i) bytes *= info.shape[i];
  return bytes;
}

// The elements, which keep the array's memory alive.
std::shared_ptr<const std::byte> BytesOf(Array array) {
  const auto owner = std::make_shared<const Array>(std::move(array));
  return {owner, owner->data()};
}

}  // namespace

FrameSource::FrameSource(const RowPlaces& places, StreamLayout layout,
                         std::vector<StreamPart> parts)
    : places_(places), layout_(std::move(layout)), parts_(std::move(parts)) {
  MILLRACE_CHECK(parts_.size() == layout_.arrays.size());
}

absl::StatusOr<std::optional<::grpc::ByteBuffer>> FrameSource::Next() {
  if (started_ && position_ == layout_.total_bytes) return std::nullopt;
  FrameHeader header{.offset = position_, .stream = std::nullopt};
  if (!started_) header.stream = layout_;
  started_ = true;
  std::vector<::grpc::Slice> slices;
  size_t room = kFramePayloadBytes;
  while (room > 0 && position_ < layout_.total_bytes) {
    MILLRACE_ASSIGN_OR_RETURN(const size_t added, Add(room, slices));
    room -= added;
    position_ += added;
    if (added == 0) break;
  }
  return MakeFrame(header, std::move(slices));
}

absl::StatusOr<size_t> FrameSource::Add(size_t room,
                                        std::vector<::grpc::Slice>& slices) {
  while (current_ < layout_.arrays.size() &&
         position_ >= layout_.arrays[current_].offset +
                          layout_.arrays[current_].total_bytes()) {
    ++current_;
  }
  const uint64_t next = current_ < layout_.arrays.size()
                            ? layout_.arrays[current_].offset
                            : layout_.total_bytes;
  if (position_ < next) {
    const size_t added =
        std::min<uint64_t>({room, next - position_, sizeof kZeros});
    slices.emplace_back(kZeros, added, ::grpc::Slice::STATIC_SLICE);
    return added;
  }
  const ArrayInfo& info = layout_.arrays[current_];
  const StreamPart& part = parts_[current_];
  const uint64_t at = position_ - info.offset;
  if (part.data != nullptr) {
    const size_t added = std::min<uint64_t>(room, info.total_bytes() - at);
    slices.push_back(BorrowedSlice(part.data + at, added, part.owner));
    return added;
  }
  if (gathered_.taken == gathered_.bytes) {
    // Only whole rows are added, unless one fills a frame.
    if (!slices.empty() && room < RowBytes(info)) return 0;
    MILLRACE_RETURN_IF_ERROR(GatherSome(info, part, at, room));
  }
  const size_t added = std::min(room, gathered_.bytes - gathered_.taken);
  slices.push_back(BorrowedSlice(gathered_.owner.get() + gathered_.taken, added,
                                 gathered_.owner));
  gathered_.taken += added;
  if (gathered_.taken == gathered_.bytes) gathered_ = {};
  return added;
}

absl::Status FrameSource::GatherSome(const ArrayInfo& info,
                                     const StreamPart& part, uint64_t at,
                                     size_t room) {
  const size_t row_bytes = RowBytes(info);
  const uint64_t first = at / row_bytes;
  const uint64_t left = static_cast<uint64_t>(info.shape[0]) - first;
  const auto count = static_cast<size_t>(
      std::min<uint64_t>(left, std::max<size_t>(1, room / row_bytes)));
  ids_.resize(count);
  part.ids(first, ids_);
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const std::byte> rows,
                            Gather(info, part));
  gathered_ = {std::move(rows), count * row_bytes, 0};
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const std::byte>> FrameSource::Gather(
    const ArrayInfo& info, const StreamPart& part) {
  const bool features =
      part.edge_relation >= 0 || part.column == NodeColumn::kFeature;
  if (features && places_.features != nullptr) {
    return GatherFeatures(info, part);
  }
  if (features) places_.cpu_rows += ids_.size();
  std::shared_ptr<std::byte> rows = AllocateBlock(ids_.size() * RowBytes(info));
  MILLRACE_RETURN_IF_ERROR(GatherInto(info, part, rows.get()));
  return rows;
}

absl::StatusOr<std::shared_ptr<const std::byte>> FrameSource::GatherFeatures(
    const ArrayInfo& info, const StreamPart& part) {
  FeatureRows& features = *places_.features;
  if (part.edge_relation >= 0) {
    const std::vector<uint32_t> parts(ids_.size(),
                                      static_cast<uint32_t>(part.edge_part));
    MILLRACE_ASSIGN_OR_RETURN(
        Array rows, features.GatherEdges(part.edge_relation, parts, ids_,
                                         /*memory=*/nullptr));
    return BytesOf(std::move(rows));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      Array rows, features.GatherNodes(part.type, ids_, /*memory=*/nullptr));
  if (rows.dtype() == info.dtype) return BytesOf(std::move(rows));
  std::shared_ptr<std::byte> cast = AllocateBlock(ids_.size() * RowBytes(info));
  CastFloats(rows.dtype(), rows.data(), info.dtype, cast.get(),
             static_cast<size_t>(rows.element_count()));
  return cast;
}

absl::Status FrameSource::GatherInto(const ArrayInfo& info,
                                     const StreamPart& part, std::byte* out) {
  if (part.edge_relation >= 0) {
    return GatherEdgeRows(places_.store, part.edge_relation, part.edge_part,
                          ids_, out);
  }
  const ColumnSpec stored =
      ColumnOf(places_.store.schema(), part.type, part.column);
  if (stored.dtype == info.dtype) {
    return GatherRows(places_.store, part.type, part.column, ids_, out);
  }
  const size_t row_bytes = stored.row_bytes();
  const size_t row_items = row_bytes / ItemBytes(stored.dtype);
  const size_t rows = std::max<size_t>(1, kUncastBytes / row_bytes);
  uncast_.resize(rows * row_bytes);
  for (size_t at = 0; at < ids_.size(); at += rows) {
    const size_t count = std::min(rows, ids_.size() - at);
    MILLRACE_RETURN_IF_ERROR(GatherRows(places_.store, part.type, part.column,
                                        std::span(ids_).subspan(at, count),
                                        uncast_.data()));
    CastFloats(stored.dtype, uncast_.data(), info.dtype,
               out + at * RowBytes(info), count * row_items);
  }
  return absl::OkStatus();
}

}  // namespace millrace
