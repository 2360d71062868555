// SPDX-License-Identifier: Apache-2.0
// The gRPC metadata that follows a batch from its client to its home server and
// on to the owners of other partitions, so that their logs can be compared (see
// docs/protocol.md).
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

inline constexpr char kRequestIdKey[] = "x-request-id";

// Whether servers accept `id`: 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'.
bool IsRequestId(std::string_view id);

// Makes the ids of one client or server: they begin with 8 random hexadecimal
// digits, which differ from those of others.
// Threads: any.
class RequestIds {
 public:
  RequestIds();

  // "1f0c9a2b-3-1234-57": epoch 3, batch 1234, the 57th request. An attempt to
  // fetch it appends ".1", ".2", ...
  std::string OfBatch(uint64_t epoch, uint64_t batch);
  // "1f0c9a2b-WORD-57"
  std::string Of(std::string_view word);

 private:
  const std::string run_;
  std::atomic<uint32_t> requests_ = 0;
};

// Adds the id to a call.
void SetRequestId(const std::string& id, ::grpc::ClientContext& context);

// The id that the client of a call gave it; a new one, "1f0c9a2b-own-57", if it
// gave none that IsRequestId().
std::string RequestIdOf(const ::grpc::ServerContextBase& context);

}  // namespace millrace
