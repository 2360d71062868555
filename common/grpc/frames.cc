// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/frames.h"

#include <span>
#include <utility>

#include "common/base/status_macros.h"

namespace millrace {

::grpc::Slice BorrowedSlice(const void* data, size_t bytes,
                            std::shared_ptr<const void> owner) {
  // gRPC takes a plain function and one pointer, which points to a copy of
  // `owner` here. gRPC never writes through the slice.
  auto* holder = new std::shared_ptr<const void>(std::move(owner));
  return ::grpc::Slice(
      const_cast<void*>(data), bytes,
      [](void* user) {
        delete static_cast<std::shared_ptr<const void>*>(user);
      },
      holder);
}

::grpc::ByteBuffer MakeFrame(const FrameHeader& header,
                             std::vector<::grpc::Slice> payload) {
  size_t bytes = 0;
  for (const ::grpc::Slice& slice : payload) bytes += slice.size();
  payload.insert(payload.begin(),
                 ::grpc::Slice(EncodeFrameHead(header, bytes)));
  return ::grpc::ByteBuffer(payload.data(), payload.size());
}

absl::StatusOr<ReceivedFrame> ReceivedFrame::Parse(
    const ::grpc::ByteBuffer& message) {
  ReceivedFrame frame;
  const ::grpc::Status dumped = message.Dump(&frame.slices_);
  if (!dumped.ok()) {
    return absl::InvalidArgumentError("not a frame: compressed or empty");
  }
  // Small slices hold their bytes inside the object, so the elements of
  // `slices_` must not move from now on; moving the vector does not move them.
  std::vector<std::span<const std::byte>> spans;
  spans.reserve(frame.slices_.size());
  for (const ::grpc::Slice& slice : frame.slices_) {
    spans.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()),
                       slice.size());
  }
  MILLRACE_ASSIGN_OR_RETURN(frame.view_, ParseFrame(spans));
  return frame;
}

}  // namespace millrace
