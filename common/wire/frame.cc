// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

// (field number << 3) | wire type.
constexpr uint64_t kHeaderTag = 1 << 3 | 2;
constexpr uint64_t kPayloadTag = 15 << 3 | 2;
// Arrays of one stream: more than any schema needs, and small.
constexpr int kMaxArrays = 1 << 16;
constexpr int kMaxDimensions = 8;

void AppendVarint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

// Reads consecutive slices as one byte string.
class SliceCursor {
 public:
  explicit SliceCursor(std::span<const std::span<const std::byte>> slices)
      : slices_(slices) {
    for (const auto& slice : slices) remaining_ += slice.size();
  }

  size_t remaining() const { return remaining_; }
  size_t position() const { return position_; }

  bool Byte(uint8_t& out) {
    if (remaining_ == 0) return false;
    while (at_ == slices_[slice_].size()) NextSlice();
    out = static_cast<uint8_t>(slices_[slice_][at_++]);
    ++position_;
    --remaining_;
    return true;
  }

  bool Varint(uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      if (!Byte(byte)) return false;
      if (shift == 63 && byte > 1) return false;
      out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  // Calls `use` with each piece of the next `bytes` bytes.
  template <typename Use>
  bool Take(uint64_t bytes, Use use) {
    if (bytes > remaining_) return false;
    position_ += bytes;
    remaining_ -= bytes;
    while (bytes > 0) {
      while (at_ == slices_[slice_].size()) NextSlice();
      const size_t piece =
          std::min<uint64_t>(bytes, slices_[slice_].size() - at_);
      use(slices_[slice_].subspan(at_, piece));
      at_ += piece;
      bytes -= piece;
    }
    return true;
  }

 private:
  void NextSlice() {
    ++slice_;
    at_ = 0;
  }

  const std::span<const std::span<const std::byte>> slices_;
  size_t slice_ = 0;
  size_t at_ = 0;  // within the slice
  size_t position_ = 0;
  size_t remaining_ = 0;
};

absl::Status Malformed(const SliceCursor& cursor, std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat("not a frame: ", what, " at byte ", cursor.position()));
}

absl::Status SkipField(SliceCursor& cursor, uint64_t tag) {
  uint64_t length = 0;
  switch (tag & 7) {
    case 0:
      if (!cursor.Varint(length)) return Malformed(cursor, "bad varint");
      return absl::OkStatus();
    case 1:
      length = 8;
      break;
    case 2:
      if (!cursor.Varint(length)) return Malformed(cursor, "bad length");
      break;
    case 5:
      length = 4;
      break;
    default:
      return Malformed(cursor, "unknown wire type");
  }
  if (!cursor.Take(length, [](auto) {})) {
    return Malformed(cursor, "field longer than the message");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TakeHeader(SliceCursor& cursor) {
  uint64_t length = 0;
  if (!cursor.Varint(length) || length > cursor.remaining()) {
    return Malformed(cursor, "bad header length");
  }
  if (length > kMaxFrameHeaderBytes) {
    return Malformed(cursor,
                     StrCat("header of ", length, " bytes, the limit is ",
                            kMaxFrameHeaderBytes));
  }
  std::string bytes;
  bytes.reserve(length);
  cursor.Take(length, [&bytes](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
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
  head.reserve(bytes.size() + 16);
  AppendVarint(kHeaderTag, head);
  AppendVarint(bytes.size(), head);
  head += bytes;
  if (payload_bytes > 0) {
    AppendVarint(kPayloadTag, head);
    AppendVarint(payload_bytes, head);
  }
  return head;
}

absl::StatusOr<FrameView> ParseFrame(
    std::span<const std::span<const std::byte>> slices) {
  SliceCursor cursor(slices);
  FrameView view;
  bool seen_header = false;
  bool seen_payload = false;
  while (cursor.remaining() > 0) {
    uint64_t tag = 0;
    if (!cursor.Varint(tag) || tag >> 3 == 0) {
      return Malformed(cursor, "bad tag");
    }
    if (tag == kHeaderTag && !seen_header) {
      seen_header = true;
      MILLRACE_ASSIGN_OR_RETURN(std::string bytes, TakeHeader(cursor));
      MILLRACE_ASSIGN_OR_RETURN(view.header, HeaderFromBytes(bytes));
    } else if (tag == kPayloadTag && !seen_payload) {
      seen_payload = true;
      uint64_t length = 0;
      if (!cursor.Varint(length) ||
          !cursor.Take(length, [&view](std::span<const std::byte> piece) {
            view.payload.push_back(piece);
          })) {
        return Malformed(cursor, "bad payload length");
      }
      view.payload_bytes = length;
    } else if (tag == kHeaderTag || tag == kPayloadTag) {
      return Malformed(cursor, "second header or payload");
    } else {
      MILLRACE_RETURN_IF_ERROR(SkipField(cursor, tag));
    }
  }
  return view;
}

}  // namespace millrace
