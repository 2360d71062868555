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

// Parses "15,10,5"; blanks around the numbers are allowed.
// INVALID_ARGUMENT (FieldError of `field`): anything else.
absl::StatusOr<Fanouts> ParseFanouts(std::string_view text,
                                     std::string_view field = "fanouts");
std::string FormatFanouts(const Fanouts& fanouts);

// Parses "binary:R", "triplet:K", "shared:K" or "in-batch"; empty means no
// negatives.
// INVALID_ARGUMENT (FieldError of `field`): anything else.
absl::StatusOr<Negatives> ParseNegatives(std::string_view text,
                                         std::string_view field = "negatives");
// "none" if there are none.
std::string FormatNegatives(const Negatives& negatives);

// The fields as the table of options (TextField) reads and writes them. `texts`
// holds the values of the option, one for each time it is given, at least one.
// Of an option that is not repeatable, the last value counts.
// INVALID_ARGUMENT (FieldError): a text is malformed.

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
