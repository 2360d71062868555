// SPDX-License-Identifier: Apache-2.0
// What identifies a run, to be compared with another process.
#pragma once

#include <map>
#include <string>

#include "client/train/run/train_options.h"

namespace millrace {

// Values of options by the option's name, "" if it was not given, and
// fingerprints of splits.
using RunIdentity = std::map<std::string, std::string>;

// Begins the names of the fingerprints of splits.
inline constexpr char kSplitPrefix[] = "split ";

// Returns the options that a run must have in common with the run that wrote
// the checkpoint from which it resumes.
RunIdentity IdentifyRun(const TrainOptions& options);
// Returns the options that all ranks of a group must have in common, because
// they determine what ranks compute and send. For files, only says whether they
// were given; their contents are compared when they are read.
RunIdentity IdentifyGroup(const TrainOptions& options);

std::string EvalNegativesText(const EvaluationOptions& evaluation);

}  // namespace millrace
