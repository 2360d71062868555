// SPDX-License-Identifier: Apache-2.0
// What reading requests of several RPCs shares.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/strings.h"

namespace millrace {

// INVALID_ARGUMENT: the bytes are no such message.
template <typename Request>
absl::Status ParseRequest(::grpc::ByteBuffer& bytes, Request& request) {
  if (::grpc::SerializationTraits<Request>::Deserialize(&bytes, &request)
          .ok()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("the request is no ", Request::descriptor()->name(),
             "\nrun the same version everywhere"));
}

// That the number of a "node type" or "relation" is below their count.
// INVALID_ARGUMENT names both.
inline absl::Status CheckNumber(std::string_view what, uint64_t number,
                                size_t count) {
  if (number < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(std::string(what), " ", number, ": the graph has ", count,
             "\nnumber them from 0, in the order of Describe"));
}

}  // namespace millrace
