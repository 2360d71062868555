// SPDX-License-Identifier: Apache-2.0
// What would otherwise be found out only after hours of training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/train/group/collectives.h"
#include "client/train/run/option_texts.h"
#include "common/graph/manifest.h"

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

// Whether `what`, a file, has rank 0's checksum here too. All ranks call it.
// FAILED_PRECONDITION: it has another; names the rank. Errors of Collectives.
absl::Status CheckSameOnAllRanks(Collectives& collectives,
                                 std::string_view what, uint64_t checksum);

// Whether the `fingerprint` (64 hex digits) of what this rank opened, a
// "dataset" or "store", is rank 0's too. All ranks call it.
// FAILED_PRECONDITION: it is another; names both. Errors of Collectives.
absl::Status CheckSameFingerprint(Collectives& collectives,
                                  std::string_view what,
                                  const std::string& fingerprint,
                                  std::string_view advice);

// Whether this rank reads rank 0's dataset, as one store. All ranks call it.
// Errors of CheckSameFingerprint.
absl::Status CheckSameSource(Collectives& collectives,
                             const Manifest& manifest);
// Whether the splits of RunPlan::splits are rank 0's. All ranks call it. Errors
// of CheckSameFingerprint.
absl::Status CheckSameSplits(Collectives& collectives,
                             const OptionTexts& splits);

// Whether the options of this rank are rank 0's too. All ranks call it.
// INVALID_ARGUMENT: one of them is another; names it and both values. Errors of
// Collectives.
absl::Status CheckSameTexts(Collectives& collectives, const OptionTexts& texts);

}  // namespace millrace
