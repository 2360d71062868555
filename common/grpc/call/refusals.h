// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/fleet/fleet.h"

namespace millrace {

// Records the servers that have refused a request which another server may
// accept (IsServedElsewhere), so that each replica is asked only once, and
// nobody waits once all have refused.
// Threads: any thread may call any method.
class Refusals {
 public:
  void Add(int partition, const FleetMember& member, const absl::Status& why);

  bool Include(int partition, const FleetMember& member) const;

  // When the first server refused; InfinitePast() if none has.
  SteadyTime Start(int partition) const;

  // Picks a server of the partition that has not refused; does not wait.
  // Returns the errors of Fleet::Pick. If all have refused, including those
  // that the list has named since, and there is nobody to wait for, returns the
  // code of the first refusal with the reasons of all. If that is
  // FAILED_PRECONDITION, the caller should ask another server, which may know
  // other servers.
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(Fleet& fleet,
                                                    int partition);

 private:
  struct Refusal {
    const FleetMember* member;  // only compared, never dereferenced
    std::string address;
    absl::Status why;
    SteadyTime time;
  };

  absl::Status Explain(int partition, const std::vector<Refusal>& refusals);

  mutable Mutex mutex_;
  std::map<int, std::vector<Refusal>> by_partition_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
