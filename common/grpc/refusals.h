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
#include "common/grpc/fleet.h"

namespace millrace {

// Who has refused a request that another server may take (IsServedElsewhere),
// so that each replica is asked once and nobody waits when all have refused.
// Threads: any.
class Refusals {
 public:
  void Add(int partition, const FleetMember& member, const absl::Status& why);

  bool Include(int partition, const FleetMember& member) const;

  // When the first server refused; in the infinite past where none has.
  SteadyTime Start(int partition) const;

  // A server of the partition that has not refused; does not wait. Errors of
  // Fleet::Pick; where all have refused, also those that the list has named
  // since, and there is nobody to wait for, the first one's code, with the
  // reasons of all. A FAILED_PRECONDITION then tells the caller to ask another
  // server, which may know others.
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick(Fleet& fleet,
                                                    int partition);

 private:
  struct Refusal {
    const FleetMember* member;  // to be compared only
    std::string address;
    absl::Status why;
    SteadyTime time;
  };

  absl::Status Explain(int partition, const std::vector<Refusal>& refusals);

  mutable Mutex mutex_;
  std::map<int, std::vector<Refusal>> by_partition_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
