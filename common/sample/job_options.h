// SPDX-License-Identifier: Apache-2.0
// The fields of JobSpec in one table: how users, messages and job.proto call
// them, and what values they take. The options of the programs, the checks of a
// job, its message on the wire and the identity of a training run all come from
// it. docs/extending.md says how to add a row.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sample/job.h"

namespace millrace {

// A word for a value of an enum. The numbers are those of job.proto.
struct OptionWord {
  std::string_view word;
  int number;
  bool offered = true;  // false: the value of an option that is not given
};

// A field that is an enum.
struct WordField {
  std::span<const OptionWord> words;
  int (*get)(const JobSpec&);
  void (*set)(JobSpec&, int number);
};

// A field that users write in a syntax of its own.
struct TextField {
  // The values of all times that the option is given. INVALID_ARGUMENT
  // (FieldError): they cannot be read.
  absl::Status (*parse)(std::span<const std::string> texts, JobSpec&);
  std::string (*format)(const JobSpec&);
  bool repeatable = false;
  // The string field of job.proto with the same value; null: the message has
  // another form (job_proto.cc).
  std::string JobSpec::*on_wire = nullptr;
};

struct JobOption {
  using Field =
      std::variant<bool JobSpec::*, int JobSpec::*, int64_t JobSpec::*,
                   uint64_t JobSpec::*, double JobSpec::*,
                   std::string JobSpec::*, std::vector<std::string> JobSpec::*,
                   WordField, TextField>;
  // The part of --help where the option is.
  enum class Group : uint8_t { kSeeds, kSampling, kEdgeSeeds };
  // How the identity of a training run has the field.
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
  std::string_view value_name = {};  // in --help; empty: that of the type
  Field field;
  bool shows_default = true;  // in --help
  // Methods that read the field; empty: all. Others refuse a value that is not
  // the default, unless `ignored_by_others`.
  std::span<const SampleMethod> methods = {};
  bool ignored_by_others = false;
  // Of numbers, where the method reads them.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  Identity identity = Identity::kAlways;
  // For fields that came later: a message without it has the default, and one
  // with the default goes without it.
  bool optional_on_wire = false;
};

// All of them, in the order of --help.
std::span<const JobOption> JobOptions();
// Null if no field has this name.
const JobOption* FindJobOption(std::string_view name);

// Whether a job with this method may set the field.
bool Reads(SampleMethod method, const JobOption& option);
// The error of a job that sets a field which its method does not read.
absl::Status NeedsMethod(const JobOption& option);
// Whether the field has the value of a default-made JobSpec.
bool HasDefault(const JobSpec& spec, const JobOption& option);

// Checks what needs no graph: limits, fields of other methods, and choices that
// exclude each other or need another. INVALID_ARGUMENT (FieldError).
absl::Status CheckJobOptions(const JobSpec& spec);

// Texts of the fields, by option, that two runs must share to be one.
std::map<std::string_view, std::string> JobIdentity(const JobSpec& spec);

// "15,10,5", also with blanks around the numbers.
// INVALID_ARGUMENT (FieldError of `field`): anything else.
absl::StatusOr<Fanouts> ParseFanouts(std::string_view text,
                                     std::string_view field = "fanouts");
std::string FormatFanouts(const Fanouts& fanouts);

// "binary:R", "triplet:K", "shared:K" or "in-batch"; empty: no negatives.
// INVALID_ARGUMENT (FieldError of `field`): anything else.
absl::StatusOr<Negatives> ParseNegatives(std::string_view text,
                                         std::string_view field = "negatives");
// "none" if there are none.
std::string FormatNegatives(const Negatives& negatives);

}  // namespace millrace
