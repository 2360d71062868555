// SPDX-License-Identifier: Apache-2.0
#include "client/cli/fetch_one.h"

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/base/interrupt.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

// Shared with the source's callback, which may run after an interrupt.
struct Fetch {
  ResolvedJob job;
  absl::StatusOr<Batch> result = absl::UnknownError("no batch yet");
  Notification arrived;
};

}  // namespace

absl::StatusOr<Batch> FetchOne(BatchSource& source, const ResolvedJob& job,
                               BatchRequest request) {
  const auto fetch = std::make_shared<Fetch>();
  fetch->job = job;
  source.Fetch(fetch->job, std::move(request),
               [fetch](absl::StatusOr<Batch> batch) {
                 fetch->result = std::move(batch);
                 fetch->arrived.Notify();
               });
  // Needs no deadline: the source bounds the time of every fetch.
  while (
      !fetch->arrived.WaitForNotificationWithTimeout(absl::Milliseconds(200))) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  }
  return std::move(fetch->result);
}

}  // namespace millrace
