// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/graph/manifest.h"

namespace millrace {

// Whether the parts of a manifest agree with each other: the schema, the
// partition books, the splits and the list of files (relative paths inside
// the store, none twice). INVALID_ARGUMENT says what does not.
absl::Status ValidateManifest(const Manifest& manifest);

}  // namespace millrace
