// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/array.h"
#include "common/wire/frame.h"

namespace millrace {

// Writes the rows of a Gather stream to their targets; rows may straddle
// frames.
// Not thread-safe.
class RowScatter {
 public:
  // Row i of the stream is written to row `rows[i]` of `target`.
  RowScatter(std::vector<uint32_t> rows, Array target);

  // Takes the next frame. INTERNAL: it is not what was requested.
  absl::Status Take(const FrameHeader& header,
                    std::span<const std::span<const std::byte>> payload);

  // INTERNAL: rows are missing.
  absl::Status CheckComplete() const;

 private:
  absl::Status CheckLayout(const FrameHeader& header) const;
  void Write(std::span<const std::byte> piece);

  const std::vector<uint32_t> rows_;
  Array target_;
  const size_t row_bytes_;
  const size_t total_bytes_;
  size_t position_ = 0;  // bytes received
};

}  // namespace millrace
