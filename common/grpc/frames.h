// SPDX-License-Identifier: Apache-2.0
// Converts frames to and from grpc::ByteBuffers without copying payloads.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/wire/frame.h"

namespace millrace {

// A slice that refers to memory kept alive by `owner` until gRPC is done with
// it.
::grpc::Slice BorrowedSlice(const void* data, size_t bytes,
                            std::shared_ptr<const void> owner);

// The message that consists of `header` and `payload`, whose bytes are not
// copied.
::grpc::ByteBuffer MakeFrame(const FrameHeader& header,
                             std::vector<::grpc::Slice> payload);

// A received message and its frame; the payload refers to the slices.
class ReceivedFrame {
 public:
  // INVALID_ARGUMENT: not a frame.
  static absl::StatusOr<ReceivedFrame> Parse(const ::grpc::ByteBuffer& message);
  const FrameHeader& header() const { return view_.header; }
  const std::vector<std::span<const std::byte>>& payload() const {
    return view_.payload;
  }
  size_t payload_bytes() const { return view_.payload_bytes; }

 private:
  std::vector<::grpc::Slice> slices_;
  FrameView view_;
};

}  // namespace millrace
