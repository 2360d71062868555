// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/loader.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// Calls `use` with the batches of a loader, in order. Returns the first error
// of either. CANCELLED: interrupted. Shows progress of `what` unless that is
// empty.
absl::Status ForEachBatch(std::shared_ptr<BatchSource> source,
                          const JobSpec& job, LoaderOptions options,
                          const std::string& what,
                          const std::function<absl::Status(const Batch&)>& use);

}  // namespace millrace
