// SPDX-License-Identifier: Apache-2.0
// Options of a run in words, to be compared with those of another process.
#pragma once

#include <map>
#include <string>

#include "client/train/run/train_options.h"

namespace millrace {

// By the option's name; "": not given.
using OptionTexts = std::map<std::string, std::string>;

// Begins the names of texts that are the fingerprints of splits.
inline constexpr char kSplitText[] = "split ";

// What a run that goes on from a checkpoint must share with the one that wrote
// it, as far as the options say it.
OptionTexts TextsOfRun(const TrainOptions& options);
// What all ranks of a group must share: it decides what they compute, and what
// they say to each other. Of files, whether they are given: they are compared
// when they are read.
OptionTexts TextsOfRanks(const TrainOptions& options);

std::string EvalNegativesText(const EvaluationOptions& evaluation);

}  // namespace millrace
