// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"

namespace millrace {

// Fetches one batch and waits for it. CANCELLED: the program was interrupted.
absl::StatusOr<Batch> FetchOne(BatchSource& source, const ResolvedJob& job,
                               BatchRequest request);

}  // namespace millrace
