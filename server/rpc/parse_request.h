// SPDX-License-Identifier: Apache-2.0
// Reading requests, for the RPCs whose size depends on the client.
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

// Upper bound on the memory that a request of type `type` takes: as received,
// as a message of many small fields, and with its ids as 64-bit integers. Must
// be reserved before the request is parsed, because parsing may take 100 times
// the bytes received if each field is a byte or two.
// INVALID_ARGUMENT: the bytes are not such a message, or have too many fields.
absl::StatusOr<uint64_t> RequestMemory(
    const ::grpc::ByteBuffer& bytes,
    const ::google::protobuf::Descriptor& type);

// Parses and clears `bytes`. INVALID_ARGUMENT: they are not such a message.
absl::Status ParseRequest(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::Message& request);

// Checks that the number of a "node type" or "relation" is below `count`.
// INVALID_ARGUMENT: it is not; names both.
absl::Status CheckNumber(std::string_view what, uint64_t number, size_t count);

}  // namespace millrace
