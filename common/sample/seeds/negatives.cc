// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/negatives.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw/word_stream.h"

namespace millrace {
namespace {

// Positions of a pair's draws in its stream, with room for 64 bits each.
constexpr uint32_t kSourceDraw = 0;
constexpr uint32_t kDestinationDraw = 2;

class NegativeDraw {
 public:
  NegativeDraw(const ResolvedJob& job, const Manifest& manifest, uint32_t epoch,
               uint32_t batch, EdgeDirectory& directory, ResolvedSeeds& seeds)
      : job_(job),
        manifest_(manifest),
        relation_(manifest.schema.relations[job.seed_relation]),
        domain_{.job_seed = job.spec.seed,
                .epoch = epoch,
                .batch = batch,
                .purpose = Purpose::kNegative,
                .hop = 0,
                .relation = job.seed_relation},
        directory_(directory),
        seeds_(seeds) {}

  absl::Status Run();

 private:
  bool binary() const {
    return job_.spec.negatives.mode == NegativeMode::kBinary;
  }
  bool checked() const {
    return job_.spec.negatives.mode != NegativeMode::kShared;
  }
  // Draws the negatives numbered `which`; `redraw` is 0 the first time.
  absl::Status Draw(int redraw, const std::vector<uint64_t>& which);
  absl::Status DrawColumn(int redraw, const std::vector<uint64_t>& which,
                          uint32_t word, TypeIndex type, ResolvedNodes& nodes);
  // Returns those of `which` that are edges.
  absl::StatusOr<std::vector<uint64_t>> Edges(
      const std::vector<uint64_t>& which);
  uint64_t SourceOf(uint64_t number) const {
    if (binary()) return seeds_.negative_src.ids[number];
    const auto per_seed = static_cast<uint64_t>(job_.spec.negatives.amount);
    return seeds_.ids[number / per_seed];
  }

  const ResolvedJob& job_;
  const Manifest& manifest_;
  const Relation& relation_;
  DrawDomain domain_;
  EdgeDirectory& directory_;
  ResolvedSeeds& seeds_;
};

absl::Status NegativeDraw::DrawColumn(int redraw,
                                      const std::vector<uint64_t>& which,
                                      uint32_t word, TypeIndex type,
                                      ResolvedNodes& nodes) {
  const auto count =
      static_cast<uint64_t>(manifest_.schema.node_types[type].count);
  if (count == 0) return absl::OkStatus();
  DrawDomain domain = domain_;
  domain.hop = redraw;
  const PhiloxKey key = domain.Key();
  std::vector<int64_t> originals;
  originals.reserve(which.size());
  for (const uint64_t number : which) {
    originals.push_back(static_cast<int64_t>(
        WordStream(domain, key, number, 0).Bounded(word, count)));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint64_t> ids,
                            directory_.Resolve(type, originals));
  for (size_t i = 0; i < which.size(); ++i) {
    nodes.ids[which[i]] = ids[i];
    nodes.original_ids[which[i]] = originals[i];
  }
  return absl::OkStatus();
}

absl::Status NegativeDraw::Draw(int redraw,
                                const std::vector<uint64_t>& which) {
  if (binary()) {
    MILLRACE_RETURN_IF_ERROR(DrawColumn(redraw, which, kSourceDraw,
                                        relation_.src, seeds_.negative_src));
  }
  return DrawColumn(redraw, which, kDestinationDraw, relation_.dst,
                    seeds_.negative_dst);
}

absl::StatusOr<std::vector<uint64_t>> NegativeDraw::Edges(
    const std::vector<uint64_t>& which) {
  std::vector<uint64_t> src, dst;
  for (const uint64_t number : which) {
    src.push_back(SourceOf(number));
    dst.push_back(seeds_.negative_dst.ids[number]);
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint8_t> found,
                            directory_.HasEdges(job_.seed_relation, src, dst));
  std::vector<uint64_t> edges;
  for (size_t i = 0; i < which.size(); ++i) {
    if (found[i] != 0) edges.push_back(which[i]);
  }
  return edges;
}

absl::Status NegativeDraw::Run() {
  constexpr int64_t kMaxNegatives = int64_t{1} << 26;
  const int64_t count = NegativeCount(job_.spec.negatives, seeds_.size());
  if (count > kMaxNegatives) {
    return FieldStatus(
        absl::StatusCode::kOutOfRange,
        {.problem = FieldError::Problem::kTooMuch,
         .field = "negatives",
         .value = StrCat("a batch would have ", count, " negatives"),
         .limit = StrCat(kMaxNegatives)});
  }
  // An id and an original id for each end that is drawn, and a number.
  constexpr int64_t kEndBytes = 2 * sizeof(uint64_t);
  constexpr int64_t kNumberBytes = sizeof(uint64_t);
  MILLRACE_RETURN_IF_ERROR(CheckMemory(
      StrCat("a batch with ", count, " negatives"),
      SaturatedProduct({count, kNumberBytes + (binary() ? 2 : 1) * kEndBytes}),
      "use a smaller batch size or fewer negatives"));
  const auto size = static_cast<size_t>(count);
  seeds_.negative_dst.ids.assign(size, 0);
  seeds_.negative_dst.original_ids.assign(size, 0);
  if (binary()) seeds_.negative_src = seeds_.negative_dst;
  std::vector<uint64_t> which(size);
  std::iota(which.begin(), which.end(), uint64_t{0});
  for (int redraw = 0; !which.empty(); ++redraw) {
    MILLRACE_RETURN_IF_ERROR(Draw(redraw, which));
    if (!checked()) break;
    MILLRACE_ASSIGN_OR_RETURN(which, Edges(which));
    if (redraw == kMaxRedraws) {
      seeds_.false_negatives = static_cast<uint32_t>(which.size());
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t NegativeCount(const Negatives& negatives, size_t seeds) {
  const double n = static_cast<double>(seeds);
  switch (negatives.mode) {
    case NegativeMode::kNone:
    case NegativeMode::kInBatch:
      return 0;
    case NegativeMode::kBinary:
      return static_cast<int64_t>(std::ceil(n * negatives.amount));
    case NegativeMode::kTriplet:
      return static_cast<int64_t>(n * negatives.amount);
    case NegativeMode::kShared:
      return static_cast<int64_t>(negatives.amount);
  }
  return 0;
}

absl::Status DrawNegatives(const ResolvedJob& job, const Manifest& manifest,
                           uint32_t epoch, uint32_t batch,
                           EdgeDirectory& directory, ResolvedSeeds& seeds) {
  const NegativeMode mode = job.spec.negatives.mode;
  if (mode == NegativeMode::kNone) return absl::OkStatus();
  seeds.negative_src = {};
  seeds.negative_dst = {};
  if (mode == NegativeMode::kInBatch || seeds.ids.empty()) {
    return absl::OkStatus();
  }
  return NegativeDraw(job, manifest, epoch, batch, directory, seeds).Run();
}

}  // namespace millrace
