// SPDX-License-Identifier: Apache-2.0
#include "client/flags/option_errors.h"

#include <optional>
#include <span>
#include <string>

#include "client/field_words.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using Problem = FieldError::Problem;

struct Advice {
  std::string_view field;
  absl::StatusCode code;
  Problem problem;
  std::string_view text;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kLacking = absl::StatusCode::kFailedPrecondition;

constexpr std::string_view kSmallerBatch =
    "use a smaller --batch-size or smaller --fanouts";
constexpr std::string_view kImportWeights =
    "import the dataset with --edge-weights SRC__NAME__DST=F.npy and "
    "partition it again";
constexpr std::string_view kStoreNeighborIds =
    "make a store that has them: millrace partition DATASET "
    "--neighbor-original-ids ...";

// What to do about errors that do not say it themselves.
constexpr Advice kAdvice[] = {
    {"fanouts", kInvalid, Problem::kOutOfRange,
     "give a number for each hop; -1 takes each neighbour once, even with "
     "--replace"},
    {"fanouts", absl::StatusCode::kOutOfRange, Problem::kTooMuch,
     kSmallerBatch},
    {"batch_size", absl::StatusCode::kOutOfRange, Problem::kTooMuch,
     kSmallerBatch},
    {"negatives", absl::StatusCode::kOutOfRange, Problem::kTooMuch,
     "use a smaller --batch-size or --negatives"},
    {"walks", absl::StatusCode::kOutOfRange, Problem::kTooMuch,
     "use a smaller --batch-size or --walks"},
    {"direction", kLacking, Problem::kInvalid,
     "make a store that has them: millrace partition DATASET --directions "
     "both ..."},
    {"weighted", kLacking, Problem::kInvalid, kImportWeights},
    {"temporal", kLacking, Problem::kInvalid,
     "import the dataset with --edge-times F.npy or --node-times F.npy and "
     "partition it again"},
    {"temporal", kInvalid, Problem::kInvalid,
     "give them in --seeds-file [n, 2] (for edges, [n, 3]), with `sample "
     "--seed-times`, in the split (`split --pairs F.npy --times F.npy`), or "
     "import the dataset with --node-times F.npy"},
    {"temporal", kInvalid, Problem::kMissing,
     "give --temporal uniform or last, or leave the times out"},
    {"method", kLacking, Problem::kInvalid, kStoreNeighborIds},
    {"method", kInvalid, Problem::kInvalid,
     "name it: --metapath SRC__NAME__DST"},
    {"metapath", kInvalid, Problem::kMissing,
     "name the relations that a walk follows, in turn: --metapath "
     "SRC__NAME__DST,..."},
    {"metapath", kInvalid, Problem::kInvalid,
     "name relations that connect end to end (--direction says which way)"},
    {"seed_type", kInvalid, Problem::kMissing,
     "name the seeds' type: --type TYPE, or --type SRC__NAME__DST for edge "
     "seeds"},
    {"seed_kind", kInvalid, Problem::kInvalid,
     "import a collection of graphs: millrace import tu"},
    {"seed_order", kInvalid, Problem::kInvalid,
     "make one with `millrace split`, or use --seed-order global"},
    {"train_graph", absl::StatusCode::kNotFound, Problem::kInvalid,
     "name one of these, or leave --train-graph out"},
    {"train_graph", kInvalid, Problem::kInvalid,
     "sample a relation that does, name another split, or leave --train-graph "
     "out"},
    {"edge_features", kLacking, Problem::kInvalid,
     "import the dataset with --edge-features F.npy and partition it again"},
    {"split", absl::StatusCode::kNotFound, Problem::kInvalid,
     "name one with --split, make one with `millrace split`, or give "
     "--seeds-file"},
    {"store", kInvalid, Problem::kMissing, "give --store or --servers"},
    {"cache_ratio", kInvalid, Problem::kInvalid, "leave it out"},
    {"cache_ratio", kLacking, Problem::kInvalid,
     "use a smaller --cache-ratio, fewer processes on this host, or "
     "--feature-dtype float16"},
    {"gpus", kInvalid, Problem::kInvalid,
     "name GPUs, such as 0,1, for --graph-memory cuda, --feature-memory cuda "
     "or --cache-ratio, or leave --gpus out"},
    {"device_fallback", kLacking, Problem::kInvalid,
     "leave --device-fallback out, here or at the servers, so that the CPU "
     "makes such batches"},
    {"device_fallback", kInvalid, Problem::kInvalid,
     "use --graph-memory cuda, or leave --device-fallback out"},
    {"max_inflight_bytes", kLacking, Problem::kTooMuch,
     "use a smaller --batch-size or smaller --fanouts, or start the servers "
     "with a larger --max-inflight-bytes"},
    {"peers", kLacking, Problem::kMissing,
     "start that server with --peers LIST"},
};

constexpr ReasonAdvice kReasonAdvice[] = {
    {{"no_weights"}, kImportWeights},
    {{"no_neighbor_ids"}, kStoreNeighborIds},
    {{"partition_lost"},
     "start a server for that partition (see `millrace status --servers "
     "LIST`), or wait longer with --partition-wait"},
    {{"server_breaks_off"},
     "see the messages of that server, or `millrace status --servers LIST`"},
    {{"servers_overloaded"},
     "add servers, raise their --max-inflight-bytes, or use a smaller "
     "--prefetch-batches"},
};

std::string AdviceFor(const FieldError& error, absl::StatusCode code) {
  for (const Advice& advice : kAdvice) {
    if (advice.field == error.field && advice.code == code &&
        advice.problem == error.problem) {
      return std::string(advice.text);
    }
  }
  switch (error.problem) {
    case Problem::kConflict:
      return "leave one out";
    case Problem::kNeeds:
      return StrCat("give both, or leave ", OptionOfField(error.field), " out");
    default:
      return "";
  }
}

std::string_view AdviceOn(std::string_view reason,
                          std::span<const ReasonAdvice> own) {
  for (const std::span<const ReasonAdvice> table :
       {own, std::span<const ReasonAdvice>(kReasonAdvice)}) {
    for (const ReasonAdvice& advice : table) {
      if (advice.reason.word == reason) return advice.text;
    }
  }
  return "";
}

}  // namespace

std::string OptionOfField(std::string_view field) {
  return StrCat("--", WordOfField(field));
}

absl::Status InTermsOfOptions(const absl::Status& status,
                              std::span<const ReasonAdvice> own) {
  const std::optional<FieldError> error = GetFieldError(status);
  const std::string reason = ReasonOf(status);
  if (!error.has_value() && reason.empty()) return status;
  if (error.has_value() && error->problem == Problem::kUsage) return status;
  absl::Status named = WithNames(status, OptionOfField);
  const std::string advice = reason.empty()
                                 ? AdviceFor(*error, status.code())
                                 : std::string(AdviceOn(reason, own));
  if (!advice.empty() && !HasAdvice(named)) named = WithAdvice(named, advice);
  const absl::Status said(named.code(), named.message());
  return error.has_value() ? AsUsageError(said) : said;
}

}  // namespace millrace
