// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Bytes of a request's first line and headers; more are refused.
inline constexpr size_t kMaxHttpHeadBytes = 8192;

// What the head of an HTTP/1 request asks for. Headers are not looked at.
struct HttpRequest {
  // The status to answer with at once; 0: the request can be read. 400 (not
  // HTTP), 431 (longer than kMaxHttpHeadBytes), 505 (another version).
  int error = 0;

  std::string method;  // such as "GET"
  std::string path;    // such as "/metrics", without what follows a '?'
};

// Reads what a client sent so far; nothing while its head is not complete.
std::optional<HttpRequest> ReadHttpRequest(std::string_view bytes);

}  // namespace millrace
