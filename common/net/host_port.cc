// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_port.h"

#include <charconv>

#include "common/base/strings.h"

namespace millrace {

std::string HostPort::WithPort(int other) const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? StrCat("[", host, "]:", other) : StrCat(host, ":", other);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text, int min_port) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  const std::string_view port =
      colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const bool bracketed =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  int number = 0;
  const auto [end, error] =
      std::from_chars(port.data(), port.data() + port.size(), number);
  const bool bad_host = host.empty() ||
                        (!bracketed && host.find(':') != host.npos) ||
                        host.find_first_of(" \t/@[]") != host.npos;
  if (bad_host || error != std::errc() || end != port.data() + port.size() ||
      number < min_port || number > 65535) {
    return absl::InvalidArgumentError(
        StrCat("\"", text, "\" is not HOST:PORT (or [IPV6]:PORT) with a port ",
               "of ", min_port, " to 65535"));
  }
  return HostPort{std::string(host), static_cast<uint16_t>(number)};
}

bool IsLoopback(const std::string& host) {
  const bool address = host.find_first_not_of("0123456789.") == host.npos;
  return host == "localhost" || host == "::1" ||
         (address && host.rfind("127.", 0) == 0);
}

}  // namespace millrace
