// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/parse_request.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <limits>
#include <string>

#include "common/base/strings.h"
#include "common/grpc/call/unary_call.h"
#include "server/load/memory_model.h"
#include "server/load/request_limits.h"

namespace millrace {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::io::CodedInputStream;
using Wire = ::google::protobuf::internal::WireFormatLite;

absl::Status NoSuchMessage(const Descriptor& type) {
  return absl::InvalidArgumentError(StrCat("the request is not a ", type.name(),
                                           "\nrun the same version "
                                           "everywhere"));
}

// Reads the tags of a message and skips the rest.
class FieldScan {
 public:
  explicit FieldScan(CodedInputStream& in) : in_(in) {}

  // Returns false if the bytes are not such a message, or have too many fields.
  bool Scan(const Descriptor& type) {
    bytes_ += kBytesPerRequestMessage;
    int groups = 0;  // depth of nested groups of unknown fields
    while (const uint32_t tag = in_.ReadTag()) {
      if (++fields_ > kMaxRequestFields) return false;
      bytes_ += kBytesPerRequestField;
      const Wire::WireType wire = Wire::GetTagWireType(tag);
      if (wire == Wire::WIRETYPE_START_GROUP) {
        ++groups;
      } else if (wire == Wire::WIRETYPE_END_GROUP) {
        if (--groups < 0) return false;
      } else {
        const int number = Wire::GetTagFieldNumber(tag);
        const bool known = groups == 0;
        if (!SkipValue(wire, known ? type.FindFieldByNumber(number) : nullptr))
          return false;
      }
    }
    return groups == 0 && in_.ConsumedEntireMessage();
  }

  uint64_t bytes() const { return bytes_; }
  bool too_many() const { return fields_ > kMaxRequestFields; }

 private:
  // `field` is null for an unknown field.
  bool SkipValue(Wire::WireType wire, const FieldDescriptor* field) {
    uint64_t number = 0;
    switch (wire) {
      case Wire::WIRETYPE_VARINT:
        return in_.ReadVarint64(&number);
      case Wire::WIRETYPE_FIXED64:
        return in_.Skip(8);
      case Wire::WIRETYPE_FIXED32:
        return in_.Skip(4);
      case Wire::WIRETYPE_LENGTH_DELIMITED:
        return SkipBytes(field);
      default:
        return false;
    }
  }

  bool SkipBytes(const FieldDescriptor* field) {
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length) ||
        length > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
      return false;
    }
    if (field != nullptr && field->message_type() != nullptr) {
      const CodedInputStream::Limit limit =
          in_.PushLimit(static_cast<int>(length));
      const bool whole =
          Scan(*field->message_type()) && in_.BytesUntilLimit() == 0;
      in_.PopLimit(limit);
      return whole;
    }
    if (field != nullptr && field->is_packable()) {
      bytes_ += kBytesPerPackedByte * length;
    }
    return in_.Skip(static_cast<int>(length));
  }

  CodedInputStream& in_;
  uint64_t fields_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<uint64_t> RequestMemory(const ::grpc::ByteBuffer& bytes,
                                       const Descriptor& type) {
  ::grpc::ByteBuffer shared = bytes;
  if (!shared.Valid()) return NoSuchMessage(type);
  ::grpc::ProtoBufferReader reader(&shared);
  CodedInputStream in(&reader);
  FieldScan scan(in);
  if (scan.Scan(type))
    return kBytesPerRequestByte * bytes.Length() + scan.bytes();
  if (!scan.too_many()) return NoSuchMessage(type);
  return absl::InvalidArgumentError(
      StrCat("the request has more than ", kMaxRequestFields,
             " fields\nsend only the fields that the method has"));
}

absl::Status ParseRequest(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::Message& request) {
  return ParseMessage(bytes, request).ok()
             ? absl::OkStatus()
             : NoSuchMessage(*request.GetDescriptor());
}

absl::Status CheckNumber(std::string_view what, uint64_t number, size_t count) {
  if (number < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(std::string(what), " ", number, ": the graph has ", count,
             "\nnumber them from 0, in the order of Describe"));
}

}  // namespace millrace
