// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/run_view.h"

namespace millrace {

FleetUse UseOf(const RemoteBatchSource& source) {
  return {.calls = source.calls(),
          .hedged_calls = source.hedged_calls(),
          .retries = source.retries(),
          .received_bytes = source.received_bytes(),
          .cached_rows = source.cached_rows(),
          .servers = source.servers()};
}

}  // namespace millrace
