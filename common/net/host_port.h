// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace millrace {

// An address that a program listens on or can be reached at, "host:port" or
// "[v6]:port".
struct HostPort {
  std::string host;  // as given, but without brackets
  uint16_t port = 0;

  // The address with another port, and with brackets if the host needs them.
  std::string WithPort(int other) const;
};

// INVALID_ARGUMENT: `text` is not an address, or its port is not in
// [min_port, 65535]. The message quotes `text`.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text, int min_port = 1);

// Whether only programs on this host can reach a server that listens on `host`.
bool IsLoopback(const std::string& host);

}  // namespace millrace
