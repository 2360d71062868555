// SPDX-License-Identifier: Apache-2.0
// The options that say where a program listens.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

// For CLI::Option::check: HOST:PORT with a port of at least `min_port`, which
// is 0 where a free one may be picked.
CLI::Validator HostPortText(int min_port);

// How a server is to be reached.
struct Exposure {
  std::string_view option;  // that has the address: "--listen"
  std::string address;      // HOST:PORT
  bool tls = false;         // whether there are TLS options
  bool plaintext = false;   // whether --plaintext was given
};

// A usage error: other hosts could read the graph in plaintext, and nobody
// agreed to that; or TLS and --plaintext are wanted at the same time.
absl::Status CheckExposure(const Exposure& exposure);

}  // namespace millrace
