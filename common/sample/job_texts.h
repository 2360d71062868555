// SPDX-License-Identifier: Apache-2.0
// Fields of a job that users write in a syntax of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sample/job.h"

namespace millrace {

// "15,10,5", also with blanks around the numbers.
// INVALID_ARGUMENT (FieldError of `field`): anything else.
absl::StatusOr<Fanouts> ParseFanouts(std::string_view text,
                                     std::string_view field = "fanouts");
std::string FormatFanouts(const Fanouts& fanouts);

// "binary:R", "triplet:K", "shared:K" or "in-batch"; empty for no negatives.
// INVALID_ARGUMENT (FieldError of `field`): anything else.
absl::StatusOr<Negatives> ParseNegatives(std::string_view text,
                                         std::string_view field = "negatives");
// "none" if there are none.
std::string FormatNegatives(const Negatives& negatives);

// The fields as the table of options (TextField) reads and writes them. `texts`
// are the values of all times that the option is given, at least one; where
// only one may be given, the last counts.
// INVALID_ARGUMENT (FieldError): a text cannot be read.

// "15,10", at most once, and "SRC__NAME__DST=15,10", once for each relation.
absl::Status ParseJobFanouts(std::span<const std::string> texts, JobSpec& spec);
std::string FormatJobFanouts(const JobSpec& spec);

absl::Status ParseJobNegatives(std::span<const std::string> texts,
                               JobSpec& spec);
std::string FormatJobNegatives(const JobSpec& spec);

// "full" or "induced:SPLIT".
absl::Status ParseTrainGraph(std::span<const std::string> texts, JobSpec& spec);
std::string FormatTrainGraph(const JobSpec& spec);

}  // namespace millrace
