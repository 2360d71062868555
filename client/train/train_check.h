// SPDX-License-Identifier: Apache-2.0
// What would otherwise be found out only after hours of training.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace millrace {

// INVALID_ARGUMENT: a model of `layers` layers does not fit batches of `hops`
// hops; `fanouts` is the option that gave these.
absl::Status CheckLayers(int layers, int hops, const std::string& fanouts);

// Whether `path`, the value of `option`, can be written later; leaves nothing
// behind. Errors of the file system, naming the option.
absl::Status CheckWritableFile(const std::string& option,
                               const std::string& path);
// The same of files in the folder `path`, which is made.
absl::Status CheckWritableFolder(const std::string& option,
                                 const std::string& path);

}  // namespace millrace
