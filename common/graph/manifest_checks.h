// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/graph/manifest.h"

namespace millrace {

// Checks that the parts of a manifest are consistent: the schema, the partition
// books, the splits and the list of files (distinct relative paths inside the
// store). INVALID_ARGUMENT: they are not; the message says what is wrong.
absl::Status ValidateManifest(const Manifest& manifest);

// The same for one edge split; of `manifest`, it reads the schema and the
// books.
absl::Status ValidateEdgeSplit(const Manifest& manifest,
                               const EdgeSplitInfo& split);

}  // namespace millrace
