// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

namespace io = ::google::protobuf::io;
using ::google::protobuf::internal::WireFormatLite;

// (field number << 3) | wire type.
constexpr uint32_t kHeaderTag = 1 << 3 | 2;
constexpr uint32_t kPayloadTag = 15 << 3 | 2;
// Limit on the arrays of a stream: more than any schema needs, yet small.
constexpr int kMaxArrays = 1 << 16;
constexpr int kMaxDimensions = 8;

class SliceInput {
 public:
  explicit SliceInput(std::span<const std::span<const std::byte>> slices) {
    for (const std::span<const std::byte> slice : slices) {
      streams_.push_back(
          &arrays_.emplace_back(slice.data(), static_cast<int>(slice.size())));
    }
    all_.emplace(streams_.data(), static_cast<int>(streams_.size()));
  }

  io::ZeroCopyInputStream* get() { return &*all_; }

 private:
  std::deque<io::ArrayInputStream> arrays_;
  std::vector<io::ZeroCopyInputStream*> streams_;
  std::optional<io::ConcatenatingInputStream> all_;
};

absl::Status Malformed(const io::CodedInputStream& input,
                       std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat("not a frame: ", what, " at byte ", input.CurrentPosition()));
}

absl::StatusOr<std::string> TakeHeader(io::CodedInputStream& input) {
  int length = 0;
  if (!input.ReadVarintSizeAsInt(&length)) {
    return Malformed(input, "bad header length");
  }
  if (static_cast<size_t>(length) > kMaxFrameHeaderBytes) {
    return Malformed(input,
                     StrCat("header of ", length, " bytes; the limit is ",
                            kMaxFrameHeaderBytes));
  }
  std::string bytes;
  if (!input.ReadString(&bytes, length)) {
    return Malformed(input, "bad header length");
  }
  return bytes;
}

// Borrows the payload from the input's memory.
absl::Status TakePayload(io::CodedInputStream& input, FrameView& view) {
  int left = 0;
  if (!input.ReadVarintSizeAsInt(&left)) {
    return Malformed(input, "bad payload length");
  }
  view.payload_bytes = static_cast<size_t>(left);
  while (left > 0) {
    const void* data = nullptr;
    int size = 0;
    if (!input.GetDirectBufferPointer(&data, &size)) {
      return Malformed(input, "bad payload length");
    }
    size = std::min(size, left);
    view.payload.emplace_back(static_cast<const std::byte*>(data),
                              static_cast<size_t>(size));
    input.Skip(size);
    left -= size;
  }
  return absl::OkStatus();
}

void LayoutToProto(const StreamLayout& layout, v1::Stream& out) {
  out.set_total_bytes(layout.total_bytes);
  out.set_hops(layout.hops);
  out.set_seed_type(layout.seed_type);
  out.set_partition(layout.partition);
  for (const ArrayInfo& info : layout.arrays) {
    v1::ArrayInfo& array = *out.add_arrays();
    array.set_kind(static_cast<v1::ArrayInfo::Kind>(info.kind));
    array.set_index(info.index);
    array.set_dtype(static_cast<v1::DType>(info.dtype));
    for (int64_t dimension : info.shape) array.add_shape(dimension);
    array.set_offset(info.offset);
  }
}

absl::StatusOr<ArrayInfo> ArrayFromProto(const v1::ArrayInfo& in) {
  if (!v1::DType_IsValid(in.dtype()) ||
      !v1::ArrayInfo::Kind_IsValid(in.kind()) || in.index() > (1 << 16) ||
      in.shape_size() > kMaxDimensions) {
    return absl::InvalidArgumentError(
        StrCat("unreadable array description: ", in.ShortDebugString()));
  }
  ArrayInfo info{static_cast<ArrayKind>(in.kind()),
                 static_cast<int>(in.index()),
                 static_cast<DType>(in.dtype()),
                 {},
                 in.offset()};
  // A dimension beyond int64 becomes negative, which CheckLayout refuses.
  for (uint64_t dimension : in.shape()) {
    info.shape.push_back(static_cast<int64_t>(dimension));
  }
  return info;
}

absl::StatusOr<StreamLayout> LayoutFromProto(const v1::Stream& in) {
  if (in.arrays_size() > kMaxArrays || in.hops() > (1 << 16) ||
      in.seed_type() > (1 << 16) || in.partition() > (1 << 30)) {
    return absl::InvalidArgumentError("unreadable stream description");
  }
  StreamLayout layout;
  layout.total_bytes = in.total_bytes();
  layout.hops = static_cast<int>(in.hops());
  layout.seed_type = static_cast<int>(in.seed_type());
  layout.partition = static_cast<int>(in.partition());
  for (const v1::ArrayInfo& array : in.arrays()) {
    MILLRACE_ASSIGN_OR_RETURN(ArrayInfo info, ArrayFromProto(array));
    layout.arrays.push_back(std::move(info));
  }
  return layout;
}

absl::StatusOr<FrameHeader> HeaderFromBytes(const std::string& bytes) {
  v1::FrameHeader proto;
  if (!proto.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("not a frame: unreadable header");
  }
  FrameHeader header;
  header.offset = proto.offset();
  if (proto.has_stream()) {
    MILLRACE_ASSIGN_OR_RETURN(header.stream, LayoutFromProto(proto.stream()));
  }
  return header;
}

}  // namespace

std::string EncodeFrameHead(const FrameHeader& header, size_t payload_bytes) {
  v1::FrameHeader proto;
  proto.set_offset(header.offset);
  if (header.stream) LayoutToProto(*header.stream, *proto.mutable_stream());
  const std::string bytes = proto.SerializeAsString();
  std::string head;
  {
    io::StringOutputStream sink(&head);
    io::CodedOutputStream out(&sink);
    out.WriteTag(kHeaderTag);
    out.WriteVarint64(bytes.size());
    out.WriteString(bytes);
    if (payload_bytes > 0) {
      out.WriteTag(kPayloadTag);
      out.WriteVarint64(payload_bytes);
    }
  }  // the destructors flush
  return head;
}

absl::StatusOr<FrameView> ParseFrame(
    std::span<const std::span<const std::byte>> slices) {
  SliceInput bytes(slices);
  io::CodedInputStream input(bytes.get());
  FrameView view;
  bool seen_header = false;
  bool seen_payload = false;
  while (const uint32_t tag = input.ReadTag()) {
    if (tag == kHeaderTag && !seen_header) {
      seen_header = true;
      MILLRACE_ASSIGN_OR_RETURN(const std::string header, TakeHeader(input));
      MILLRACE_ASSIGN_OR_RETURN(view.header, HeaderFromBytes(header));
    } else if (tag == kPayloadTag && !seen_payload) {
      seen_payload = true;
      MILLRACE_RETURN_IF_ERROR(TakePayload(input, view));
    } else if (tag == kHeaderTag || tag == kPayloadTag) {
      return Malformed(input, "second header or payload");
    } else if (!WireFormatLite::SkipField(&input, tag)) {
      return Malformed(input, "unreadable field");
    }
  }
  if (!input.ConsumedEntireMessage()) return Malformed(input, "bad tag");
  return view;
}

absl::Status CheckOffset(const FrameHeader& header, uint64_t position) {
  if (header.offset == position) return absl::OkStatus();
  return absl::InternalError(StrCat("a frame begins at byte ", header.offset,
                                    " of its stream, not at byte ", position));
}

}  // namespace millrace
