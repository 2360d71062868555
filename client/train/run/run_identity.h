// SPDX-License-Identifier: Apache-2.0
// What of its options identifies a run, to be compared with another process.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "client/train/run/train_options.h"

namespace millrace {

// Values of fields of TrainOptions by IdentityKey(), "" for a field that was
// not set, and other things by their names, such as fingerprints of splits.
using RunIdentity = std::map<std::string, std::string>;

// The name of the field in checkpoints; must not change as long as old
// checkpoints are read.
std::string IdentityKey(std::string_view field);
// The field with this key; empty if it is the key of something else.
std::string IdentityField(std::string_view key);

// Begins the names of the fingerprints of splits.
inline constexpr char kSplitPrefix[] = "split ";

// Returns the options that a run must have in common with the run that wrote
// the checkpoint from which it resumes; CheckpointIdentity() adds data and
// model.
RunIdentity IdentifyRun(const TrainOptions& options);
// Returns the options that all ranks of a group must have in common because
// they determine what ranks compute and send. Of files it says only whether
// they were given; their contents are compared when they are read.
RunIdentity IdentifyGroup(const TrainOptions& options);

std::string EvalNegativesText(const EvaluationOptions& evaluation);

}  // namespace millrace
