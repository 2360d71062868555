// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace millrace {

// A millrace-server that lives as long as this object: a thread starts it,
// starts it again whenever it ends, and copies its log to stderr (see
// ChildLog), in text each line after "[server] ". It never outlives this
// process, however that ends.
//   starting -> ready -> (ended -> starting again) -> stopped by the destructor
//   starting -> failed, if it ends before it has been ready once
// Threads: one at a time.
class ColocatedServer {
 public:
  // Starts the program, which is beside this one, with these arguments.
  // `what` names it in messages: "the server of --partition 0". INTERNAL: the
  // system has no file descriptor left for it.
  static absl::StatusOr<std::unique_ptr<ColocatedServer>> Start(
      const std::string& what, std::vector<std::string> arguments);
  // Lets the server finish running calls, for 5 s, and waits until it has
  // ended; kills it after 10 s.
  ~ColocatedServer();
  ColocatedServer(const ColocatedServer&) = delete;
  ColocatedServer& operator=(const ColocatedServer&) = delete;

  // Waits until the server can be called. UNAVAILABLE: it ended instead (gives
  // its own reason). INVALID_ARGUMENT (a UsageError): it refused its options.
  // DEADLINE_EXCEEDED: it was not ready within `limit`. CANCELLED: interrupted.
  absl::Status WaitUntilReady(absl::Duration limit);

 private:
  class Keeper;
  ColocatedServer(std::string what, std::unique_ptr<Keeper> keeper);

  const std::string what_;
  const std::unique_ptr<Keeper> keeper_;
};

}  // namespace millrace
