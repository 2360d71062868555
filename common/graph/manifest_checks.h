// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/graph/manifest.h"

namespace millrace {

// Whether the parts of a manifest agree with each other: the schema, the
// partition books, the splits and the list of files (relative paths inside
// the store, none twice). INVALID_ARGUMENT says what does not.
absl::Status ValidateManifest(const Manifest& manifest);

// The same of one edge split of a manifest whose schema and books are there.
absl::Status ValidateEdgeSplit(const Manifest& manifest,
                               const EdgeSplitInfo& split);

}  // namespace millrace
