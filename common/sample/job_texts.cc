// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_texts.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

struct NegativeWord {
  std::string_view word;
  NegativeMode mode;
};

// kNone has no word that users may give. All but kInBatch are written with an
// amount after a colon.
constexpr NegativeWord kNegativeWords[] = {
    {"binary", NegativeMode::kBinary},
    {"triplet", NegativeMode::kTriplet},
    {"shared", NegativeMode::kShared},
    {"in-batch", NegativeMode::kInBatch}};

constexpr std::string_view kInduced = "induced:";

std::string Trimmed(std::string_view text) {
  return std::string(absl::StripAsciiWhitespace(AbslView(text)));
}

}  // namespace

absl::StatusOr<Fanouts> ParseFanouts(std::string_view text,
                                     std::string_view field) {
  Fanouts fanouts;
  for (const absl::string_view item : absl::StrSplit(AbslView(text), ',')) {
    int32_t fanout = 0;
    // SimpleAtoi ignores blanks around the number.
    if (!absl::SimpleAtoi(item, &fanout) || fanout < kAllNeighbors) {
      return InvalidField({.field = std::string(field),
                           .value = StrCat("\"", text, "\""),
                           .limit = StrCat("\"", item,
                                           "\" is not a number of at least -1 "
                                           "(all neighbours); write e.g. "
                                           "15,10,5")});
    }
    fanouts.push_back(fanout);
  }
  return fanouts;
}

std::string FormatFanouts(const Fanouts& fanouts) {
  return absl::StrJoin(fanouts, ",");
}

absl::StatusOr<Negatives> ParseNegatives(std::string_view text,
                                         std::string_view field) {
  Negatives negatives;
  if (text.empty()) return negatives;
  const size_t colon = text.find(':');
  const std::string_view mode = text.substr(0, colon);
  const bool number =
      colon != text.npos &&
      absl::SimpleAtod(AbslView(text.substr(colon + 1)), &negatives.amount);
  for (const NegativeWord& word : kNegativeWords) {
    if (word.word != mode || number == (word.mode == NegativeMode::kInBatch)) {
      continue;
    }
    negatives.mode = word.mode;
    return negatives;
  }
  return InvalidField(
      {.field = std::string(field),
       .value = StrCat("\"", text, "\""),
       .limit = "is not one of binary:R, triplet:K, shared:K, in-batch"});
}

std::string FormatNegatives(const Negatives& negatives) {
  for (const NegativeWord& word : kNegativeWords) {
    if (word.mode != negatives.mode) continue;
    return word.mode == NegativeMode::kInBatch
               ? std::string(word.word)
               : StrCat(word.word, ":", negatives.amount);
  }
  return "none";
}

absl::Status ParseJobFanouts(std::span<const std::string> texts,
                             JobSpec& spec) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == text.npos) {
      if (!spec.fanouts.empty()) {
        return InvalidField({.field = "fanouts",
                             .value = text,
                             .limit =
                                 "given twice without a relation; write "
                                 "SRC__NAME__DST=15,10 for each relation"});
      }
      MILLRACE_ASSIGN_OR_RETURN(spec.fanouts, ParseFanouts(text));
      continue;
    }
    const std::string relation = Trimmed(text.substr(0, equals));
    MILLRACE_ASSIGN_OR_RETURN(Fanouts fanouts,
                              ParseFanouts(text.substr(equals + 1)));
    if (!spec.relation_fanouts.emplace(relation, std::move(fanouts)).second) {
      return InvalidField({.field = "fanouts",
                           .value = text,
                           .limit = StrCat("names ", relation, " twice")});
    }
  }
  return absl::OkStatus();
}

std::string FormatJobFanouts(const JobSpec& spec) {
  std::string text = FormatFanouts(spec.fanouts);
  for (const auto& [relation, fanouts] : spec.relation_fanouts) {
    absl::StrAppend(&text, " ", relation, "=", FormatFanouts(fanouts));
  }
  return text;
}

absl::Status ParseJobNegatives(std::span<const std::string> texts,
                               JobSpec& spec) {
  MILLRACE_ASSIGN_OR_RETURN(spec.negatives, ParseNegatives(texts.back()));
  return absl::OkStatus();
}

std::string FormatJobNegatives(const JobSpec& spec) {
  return FormatNegatives(spec.negatives);
}

absl::Status ParseTrainGraph(std::span<const std::string> texts,
                             JobSpec& spec) {
  const std::string& text = texts.back();
  spec.train_graph.clear();
  if (text == "full") return absl::OkStatus();
  if (text.starts_with(kInduced) && text.size() > kInduced.size()) {
    spec.train_graph = text.substr(kInduced.size());
    return absl::OkStatus();
  }
  return InvalidField(
      {.field = "train_graph",
       .value = StrCat("\"", text, "\""),
       .limit = "is neither full nor induced:SPLIT, e.g. induced:train"});
}

std::string FormatTrainGraph(const JobSpec& spec) {
  return spec.train_graph.empty() ? "full" : StrCat(kInduced, spec.train_graph);
}

}  // namespace millrace
