// SPDX-License-Identifier: Apache-2.0
// `message Frame { header = 1; padding = 2; payload = 15; }`, encoded and
// decoded by hand so that payloads are never copied. The bytes are always valid
// protobuf; docs/protocol.md has an example byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/wire/stream_layout.h"

namespace millrace {

// Payload bytes of one frame, a measured optimum. Readers accept any size.
inline constexpr size_t kFramePayloadBytes = 512 << 10;
// Readers refuse frames whose header is larger.
inline constexpr size_t kMaxFrameHeaderBytes = 1 << 20;

// `message FrameHeader` as a value.
struct FrameHeader {
  // Position of the payload in the stream's byte string.
  uint64_t offset = 0;
  // Only in the first frame of a stream.
  std::optional<StreamLayout> stream;
};

// The bytes of a frame that precede a payload of `payload_bytes`. The payload
// itself is the end of the frame.
std::string EncodeFrameHead(const FrameHeader& header, size_t payload_bytes);

// A received frame. `payload` is valid as long as the memory that was parsed.
struct FrameView {
  FrameHeader header;
  std::vector<std::span<const std::byte>> payload;  // pieces, in order
  size_t payload_bytes = 0;
};

// Parses a frame that consists of `slices`, one after the other. Unknown fields
// are skipped. INVALID_ARGUMENT: not a frame; the message says what is wrong at
// which byte.
absl::StatusOr<FrameView> ParseFrame(
    std::span<const std::span<const std::byte>> slices);

// INTERNAL: the frame does not begin at byte `position` of its stream, so that
// a frame before it is missing or was sent twice.
absl::Status CheckOffset(const FrameHeader& header, uint64_t position);

}  // namespace millrace
