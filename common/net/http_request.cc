// SPDX-License-Identifier: Apache-2.0
#include "common/net/http_request.h"

namespace millrace {
namespace {

HttpRequest Refusal(int error) {
  return {.error = error, .method = "", .path = ""};
}

// "/path?query", or with a scheme and a host before it, as proxies send it.
std::string PathOf(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) {
    target.remove_prefix(kScheme.size());
    const size_t slash = target.find('/');
    target = slash == target.npos ? "/" : target.substr(slash);
  }
  return std::string(target.substr(0, target.find('?')));
}

HttpRequest ReadFirstLine(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == line.npos || first == 0 || last <= first + 1) {
    return Refusal(400);
  }
  const std::string_view version = line.substr(last + 1);
  if (!version.starts_with("HTTP/")) return Refusal(400);
  if (!version.starts_with("HTTP/1.")) return Refusal(505);
  return {.error = 0,
          .method = std::string(line.substr(0, first)),
          .path = PathOf(line.substr(first + 1, last - first - 1))};
}

}  // namespace

std::optional<HttpRequest> ReadHttpRequest(std::string_view bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == bytes.npos) {
    if (bytes.size() < kMaxHttpHeadBytes) return std::nullopt;
    return Refusal(431);
  }
  return ReadFirstLine(bytes.substr(0, bytes.find("\r\n")));
}

}  // namespace millrace
