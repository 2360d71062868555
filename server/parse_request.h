// SPDX-License-Identifier: Apache-2.0
// What reading requests of several RPCs shares.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace millrace {

// Memory that a request of type `type` takes at most: as it came, as a message
// of many small fields, and with its ids in 64 bits. To be asked, and promised
// to the call, before the request is parsed: that may cost 100 times the bytes
// sent where each field is a byte or two.
// INVALID_ARGUMENT: the bytes are no such message, or one of too many fields.
absl::StatusOr<uint64_t> RequestMemory(
    const ::grpc::ByteBuffer& bytes,
    const ::google::protobuf::Descriptor& type);

// INVALID_ARGUMENT: the bytes are no such message. Clears them.
absl::Status ParseRequest(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::Message& request);

// That the number of a "node type" or "relation" is below their count.
// INVALID_ARGUMENT names both.
absl::Status CheckNumber(std::string_view what, uint64_t number, size_t count);

}  // namespace millrace
