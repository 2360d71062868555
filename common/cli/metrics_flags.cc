// SPDX-License-Identifier: Apache-2.0
#include "common/cli/metrics_flags.h"

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/addresses.h"

namespace millrace {

void MetricsFlags::AddTo(CLI::App& group, const std::string& pages,
                         const std::string& plaintext) {
  group.add_option("--metrics", metrics_, pages)
      ->type_name("HOST:PORT")
      ->check(HostPortText(/*min_port=*/0));
  group.add_flag("--metrics-plaintext", plaintext_, plaintext);
}

absl::StatusOr<HostPort> MetricsFlags::Address(bool for_others) const {
  MILLRACE_ASSIGN_OR_RETURN(HostPort address,
                            ParseHostPort(metrics_, /*min_port=*/0));
  if (for_others || plaintext_ || IsLoopback(address.host)) return address;
  return UsageError(
      StrCat("--metrics ", metrics_,
             " can be reached from other hosts, but metrics are not "
             "encrypted\nadd --metrics-plaintext if everyone in the network "
             "may read them"));
}

}  // namespace millrace
