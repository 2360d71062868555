// SPDX-License-Identifier: Apache-2.0
// The fields of JobSpec in one table: their names for users, in messages and in
// job.proto, and their allowed values. The options of the programs, the checks
// of a job (job_rules.h), its message on the wire and the identity of a
// training run (job_identity.h) are all derived from it. docs/extending.md says
// how to add a row.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/sample/job.h"

namespace millrace {

// A word for a value of an enum. The numbers are those of job.proto.
struct OptionWord {
  std::string_view word;
  int number;
  // False if users cannot write the word; it stands for an option that was not
  // given.
  bool offered = true;
};

// A field that is an enum.
struct WordField {
  std::span<const OptionWord> words;
  int (*get)(const JobSpec&);
  void (*set)(JobSpec&, int number);
};

// A field that users write in a syntax of its own (job_texts.h).
struct TextField {
  // Parses the values of the option, one for each time it is given.
  // INVALID_ARGUMENT (FieldError): they are malformed.
  absl::Status (*parse)(std::span<const std::string> texts, JobSpec&);
  std::string (*format)(const JobSpec&);
  bool repeatable = false;
  // The string field of job.proto with the same value. Null if the message
  // encodes it differently (job_proto.cc).
  std::string JobSpec::*on_wire = nullptr;
};

struct JobOption {
  using Field =
      std::variant<bool JobSpec::*, int JobSpec::*, int64_t JobSpec::*,
                   uint64_t JobSpec::*, double JobSpec::*,
                   std::string JobSpec::*, std::vector<std::string> JobSpec::*,
                   WordField, TextField>;
  // The section of --help that lists the option.
  enum class Group : uint8_t { kSeeds, kSampling, kEdgeSeeds };
  // Whether and how the field is part of the identity of a training run.
  enum class Identity : uint8_t {
    kAlways,
    kEdgeSeeds,  // for jobs with edge seeds
    kInMethod,   // as part of the text of `method`
    kIfChanged,  // unless it has the default
  };

  std::string_view name;    // in JobSpec, job.proto and FieldError
  std::string_view option;  // without "--"
  Group group;
  std::string_view help;
  // In --help; if empty, the default for the type of the field.
  std::string_view value_name = {};
  Field field;
  bool shows_default = true;  // in --help
  // Methods that read the field; all if empty. Other methods reject any value
  // but the default, unless `ignored_by_others`.
  std::span<const SampleMethod> methods = {};
  bool ignored_by_others = false;
  // Limits on a number, checked if the method reads the field.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  Identity identity = Identity::kAlways;
  // For fields added later: if the message lacks the field, it has the default;
  // a default value is not sent.
  bool optional_on_wire = false;
};

// All options, in the order of --help.
std::span<const JobOption> JobOptions();
// Null if no field has this name.
const JobOption* FindJobOption(std::string_view name);

// Whether a job with this method may set the field.
bool Reads(SampleMethod method, const JobOption& option);
// The error of a job that sets a field which its method does not read.
absl::Status NeedsMethod(const JobOption& option);
// Whether the field has the value of a default-constructed JobSpec.
bool HasDefault(const JobSpec& spec, const JobOption& option);

// The word with this number.
std::string WordOf(std::span<const OptionWord> words, int number);

}  // namespace millrace
