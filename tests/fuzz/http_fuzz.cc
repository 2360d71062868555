// SPDX-License-Identifier: Apache-2.0
// What a client sends to the HTTP server. Input: its bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/net/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request = millrace::ReadHttpRequest(bytes);
  MILLRACE_CHECK(request.has_value() || size < millrace::kMaxHttpHeadBytes);
  if (!request.has_value() || request->error != 0) return 0;
  MILLRACE_CHECK(!request->method.empty());
  MILLRACE_CHECK(request->path.find('?') == std::string::npos);
  return 0;
}
