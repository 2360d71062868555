// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/net/host_port.h"

namespace millrace {

// --metrics HOST:PORT, where a program serves its metrics and status page over
// HTTP, and --metrics-plaintext, without which only this host may read them.
class MetricsFlags {
 public:
  // Adds them to an option group. `pages` and `plaintext` are their help.
  void AddTo(CLI::App& group, const std::string& pages,
             const std::string& plaintext);

  bool given() const { return !metrics_.empty(); }
  // The address as given; empty if it was not.
  const std::string& text() const { return metrics_; }
  // The address, if one was given. INVALID_ARGUMENT: other hosts could read it,
  // and neither --metrics-plaintext nor `for_others` allows that.
  absl::StatusOr<HostPort> Address(bool for_others = false) const;

 private:
  std::string metrics_;
  bool plaintext_ = false;
};

}  // namespace millrace
