// SPDX-License-Identifier: Apache-2.0
#include "common/cli/addresses.h"

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/net/host_port.h"

namespace millrace {

CLI::Validator HostPortText(int min_port) {
  return CLI::Validator(
      [min_port](const std::string& text) -> std::string {
        const auto address = ParseHostPort(text, min_port);
        return address.ok() ? "" : std::string(address.status().message());
      },
      "");
}

absl::Status CheckExposure(const Exposure& exposure) {
  if (exposure.plaintext && exposure.tls) {
    return UsageError(
        "--plaintext and TLS options cannot be used together; leave one out");
  }
  const auto address = ParseHostPort(exposure.address, /*min_port=*/0);
  if (exposure.tls || exposure.plaintext || !address.ok() ||
      IsLoopback(address->host)) {
    return absl::OkStatus();
  }
  return UsageError(
      StrCat(exposure.option, " ", exposure.address,
             " can be reached from other hosts, but there is no "
             "--tls-cert\ngive --tls-cert, --tls-key and --tls-ca, or "
             "--plaintext if everyone in the network may read the graph"));
}

}  // namespace millrace
