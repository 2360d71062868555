// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/train/eval/seed_table.h"

namespace millrace {

// More classes than kUnquestionedClasses are refused without --classes if fewer
// than one in kClassesPerOccurring occurs: a label such as 65535 may stand for
// "none".
inline constexpr int64_t kUnquestionedClasses = 4096;
inline constexpr int64_t kClassesPerOccurring = 16;

// Returns how many classes a model of --task single must distinguish: `chosen`
// (--classes) or, if that is 0, one more than the largest label of `tables`
// (skipping null ones), or 0 if nothing is labelled. INVALID_ARGUMENT: a label
// of `chosen` or more. FAILED_PRECONDITION: too few of the classes occur. Both
// name the label, its node and the limit.
absl::StatusOr<int64_t> CountClasses(
    const std::vector<const SeedTable*>& tables, int64_t chosen);

}  // namespace millrace
