// SPDX-License-Identifier: Apache-2.0
#include "client/cli/fetch_one.h"

#include <utility>

#include "common/base/mutex.h"

namespace millrace {

absl::StatusOr<Batch> FetchOne(BatchSource& source, const ResolvedJob& job,
                               BatchRequest request) {
  Notification arrived;
  absl::StatusOr<Batch> result = absl::UnknownError("no batch yet");
  source.Fetch(job, std::move(request), [&](absl::StatusOr<Batch> batch) {
    result = std::move(batch);
    arrived.Notify();
  });
  // The source bounds every fetch.
  arrived.WaitForNotification();
  return result;
}

}  // namespace millrace
