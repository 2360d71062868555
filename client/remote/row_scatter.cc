// SPDX-License-Identifier: Apache-2.0
#include "client/remote/row_scatter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/stream_layout.h"

namespace millrace {

RowScatter::RowScatter(std::vector<uint32_t> rows, Array target)
    : rows_(std::move(rows)),
      target_(std::move(target)),
      row_bytes_(target_.row_bytes()),
      total_bytes_(rows_.size() * row_bytes_) {}

absl::Status RowScatter::Take(
    const FrameHeader& header,
    std::span<const std::span<const std::byte>> payload) {
  if (position_ == 0) MILLRACE_RETURN_IF_ERROR(CheckLayout(header));
  MILLRACE_RETURN_IF_ERROR(CheckOffset(header, position_));
  for (const std::span<const std::byte> piece : payload) {
    if (piece.size() > total_bytes_ - position_) {
      return absl::InternalError("more rows than requested");
    }
    Write(piece);
  }
  return absl::OkStatus();
}

absl::Status RowScatter::CheckComplete() const {
  if (position_ == total_bytes_) return absl::OkStatus();
  return absl::InternalError(
      StrCat("rows end after ", position_, " of ", total_bytes_, " bytes"));
}

absl::Status RowScatter::CheckLayout(const FrameHeader& header) const {
  const std::optional<StreamLayout>& layout = header.stream;
  if (!layout.has_value() || layout->arrays.size() != 1 ||
      layout->arrays[0].kind != ArrayKind::kRows ||
      layout->arrays[0].dtype != target_.dtype() ||
      layout->total_bytes != total_bytes_) {
    return absl::InternalError(
        "rows of a different dtype or number than requested");
  }
  return absl::OkStatus();
}

void RowScatter::Write(std::span<const std::byte> piece) {
  while (!piece.empty()) {
    const size_t within = position_ % row_bytes_;
    const size_t bytes = std::min(piece.size(), row_bytes_ - within);
    std::byte* row =
        target_.mutable_data() + rows_[position_ / row_bytes_] * row_bytes_;
    std::memcpy(row + within, piece.data(), bytes);
    position_ += bytes;
    piece = piece.subspan(bytes);
  }
}

}  // namespace millrace
