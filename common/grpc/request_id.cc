// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/request_id.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/random_hex.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kMaxIdBytes = 64;

}  // namespace

bool IsRequestId(std::string_view id) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
           c == '_' || c == '-';
  };
  return !id.empty() && id.size() <= kMaxIdBytes &&
         std::all_of(id.begin(), id.end(), allowed);
}

RequestIds::RequestIds() : run_(RandomHex(8)) {}

std::string RequestIds::OfBatch(uint64_t epoch, uint64_t batch) {
  return absl::StrCat(run_, "-", epoch, "-", batch, "-", ++requests_);
}

std::string RequestIds::Of(std::string_view word) {
  return StrCat(run_, "-", word, "-", ++requests_);
}

void SetRequestId(const std::string& id, ::grpc::ClientContext& context) {
  // Longer ones, of huge batch numbers, would not be accepted.
  if (IsRequestId(id)) context.AddMetadata(kRequestIdKey, id);
}

std::string RequestIdOf(const ::grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find(kRequestIdKey);
  if (found != context.client_metadata().end()) {
    const std::string_view id(found->second.data(), found->second.size());
    if (IsRequestId(id)) return std::string(id);
  }
  static RequestIds& own = *new RequestIds;  // outlives all servers
  return own.Of("own");
}

}  // namespace millrace
