// SPDX-License-Identifier: Apache-2.0
// Options of a run as texts, to be compared with those of another process.
#pragma once

#include <map>
#include <string>

#include "client/train/run/train_options.h"

namespace millrace {

// By the option's name; "" if it was not given.
using OptionTexts = std::map<std::string, std::string>;

// Begins the names of texts that are the fingerprints of splits.
inline constexpr char kSplitText[] = "split ";

// Returns the options that a run must have in common with the run that wrote
// the checkpoint from which it resumes.
OptionTexts TextsOfRun(const TrainOptions& options);
// Returns the options that all ranks of a group must have in common, because
// they determine what ranks compute and send. For files, only says whether they
// were given; their contents are compared when they are read.
OptionTexts TextsOfRanks(const TrainOptions& options);

std::string EvalNegativesText(const EvaluationOptions& evaluation);

}  // namespace millrace
