// SPDX-License-Identifier: Apache-2.0
// Checks for mistakes that would otherwise show only after hours of training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/train/group/collectives.h"
#include "client/train/run/run_identity.h"
#include "common/base/field_error.h"
#include "common/graph/manifest.h"

namespace millrace {

// INVALID_ARGUMENT: a model of `layers` layers does not fit batches of `hops`
// hops; `fanouts` is the field that gave these.
absl::Status CheckLayers(int layers, int hops, const std::string& fanouts);

// Checks that `path`, the value of `field`, can be written later. Leaves
// nothing behind. Returns errors of the file system, with the field.
absl::Status CheckWritableFile(const std::string& field,
                               const std::string& path);
// The same for files in the folder `path`, which is made.
absl::Status CheckWritableFolder(const std::string& field,
                                 const std::string& path);

// Checks that the file `what` has the same checksum as on rank 0. All ranks
// call it. FAILED_PRECONDITION: it differs (names the rank). Fails like
// Collectives.
absl::Status CheckSameOnAllRanks(Collectives& collectives,
                                 std::string_view what, uint64_t checksum);

// Checks that the fingerprint of what this rank opened ("dataset", "store" or
// "splits") is the same as on rank 0. All ranks call it. FAILED_PRECONDITION:
// it differs (names both). Fails like Collectives.
absl::Status CheckSameFingerprint(Collectives& collectives,
                                  std::string_view what,
                                  const std::string& fingerprint,
                                  Reason reason);

// Checks that this rank reads the same store as rank 0. All ranks call it.
// Fails like CheckSameFingerprint.
absl::Status CheckSameSource(Collectives& collectives,
                             const Manifest& manifest);
// Checks that RunPlan::splits are the same as on rank 0. All ranks call it.
// Fails like CheckSameFingerprint.
absl::Status CheckSameSplits(Collectives& collectives,
                             const RunIdentity& splits);

// Checks that the fields of this rank are the same as on rank 0. All ranks
// call it. INVALID_ARGUMENT: one of them differs (names it and both values),
// for which there is a reason if they are not simply options. Fails like
// Collectives.
absl::Status CheckSameInGroup(Collectives& collectives,
                              const RunIdentity& texts, Reason reason = {});

}  // namespace millrace
