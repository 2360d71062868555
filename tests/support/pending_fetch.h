// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/sample/batch_source.h"

namespace millrace::testing {

// A batch being fetched. The destructor waits until nothing holds the fetch's
// callback any more.
class PendingFetch {
 public:
  PendingFetch(BatchSource& source, const ResolvedJob& job,
               BatchRequest request) {
    auto held =
        std::shared_ptr<void>(nullptr, [this](void*) { released_.Notify(); });
    source.Fetch(job, std::move(request),
                 [this, held = std::move(held)](absl::StatusOr<Batch> batch) {
                   batch_ = std::move(batch);
                   done_.Notify();
                 });
  }
  ~PendingFetch() { released_.WaitForNotification(); }

  bool done() const { return done_.HasBeenNotified(); }
  const absl::StatusOr<Batch>& Wait() {
    done_.WaitForNotification();
    return batch_;
  }

 private:
  Notification done_, released_;
  absl::StatusOr<Batch> batch_ = Batch();
};

}  // namespace millrace::testing
