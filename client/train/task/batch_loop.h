// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

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
// empty. A batch stays until the current stream of `device` has done what `use`
// has started.
absl::Status ForEachBatch(std::shared_ptr<BatchSource> source,
                          const JobSpec& job, LoaderOptions options,
                          const std::string& what, c10::Device device,
                          const std::function<absl::Status(const Batch&)>& use);

}  // namespace millrace
