// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/split_import.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw.h"

namespace millrace {
namespace {

constexpr int64_t kBlockRows = 16 << 10;

struct SeedRow {
  int64_t id;
  int64_t row;
  friend auto operator<=>(const SeedRow&, const SeedRow&) = default;
};

absl::StatusOr<std::vector<SeedRow>> ReadRows(const RowSource& source) {
  if (source.width() != 1) {
    return absl::InvalidArgumentError(
        StrCat(source.name(), ": ", source.width(),
               " numbers in a row, but a split has one id a row"));
  }
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  std::vector<SeedRow> seeds;
  std::vector<int64_t> ids(kBlockRows);
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              reader->ReadIntegers(kBlockRows, ids.data()));
    if (rows == 0) return seeds;
    for (int64_t i = 0; i < rows; ++i) {
      seeds.push_back({ids[i], static_cast<int64_t>(seeds.size())});
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ReadSplitIds(const RowSource& source,
                                                  int64_t node_count,
                                                  const std::string& type) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<SeedRow> seeds, ReadRows(source));
  std::sort(seeds.begin(), seeds.end());
  std::vector<int64_t> ids;
  ids.reserve(seeds.size());
  for (const SeedRow& seed : seeds) {
    if (seed.id < 0 || seed.id >= node_count) {
      return absl::InvalidArgumentError(
          StrCat(source.Where(seed.row), ": node ", seed.id,
                 " is out of range: node type ", type, " has ", node_count,
                 " nodes, ids are 0 to ", node_count - 1));
    }
    if (!ids.empty() && ids.back() == seed.id) {
      return absl::InvalidArgumentError(StrCat(source.Where(seed.row),
                                               ": node ", seed.id,
                                               " stands twice in this split"));
    }
    ids.push_back(seed.id);
  }
  return ids;
}

absl::Status CheckFractions(const std::vector<double>& fractions) {
  double sum = 0;
  bool valid = fractions.size() == 3;
  for (double fraction : fractions) {
    valid = valid && fraction >= 0 && fraction <= 1;
    sum += fraction;
  }
  // 0.8 + 0.1 + 0.1 may exceed 1 by rounding.
  if (valid && sum <= 1 + 1e-9) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      "--split-fractions ", absl::StrJoin(fractions, ","),
      ": give three shares (train, valid, test) from 0 to 1 whose sum is at "
      "most 1"));
}

std::vector<std::vector<int64_t>> SplitByFractions(
    const std::vector<int64_t>& labelled, const std::vector<double>& fractions,
    uint64_t seed, int type) {
  std::vector<std::vector<int64_t>> splits(fractions.size());
  if (labelled.empty()) return splits;
  const auto count = static_cast<int64_t>(labelled.size());
  DrawDomain domain;
  domain.job_seed = seed;
  domain.purpose = Purpose::kShuffle;
  domain.hop = type;
  const Permutation permutation(domain.Key(), labelled.size());
  double share = 0;
  int64_t position = 0;
  for (size_t i = 0; i < fractions.size(); ++i) {
    share += fractions[i];
    const int64_t end = std::min<int64_t>(
        count, std::llround(share * static_cast<double>(count)));
    for (; position < end; ++position) {
      splits[i].push_back(labelled[permutation(position)]);
    }
    std::sort(splits[i].begin(), splits[i].end());
  }
  return splits;
}

absl::Status CheckSplitName(const std::string& name) {
  const bool valid =
      !name.empty() && name[0] != '.' &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      });
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("--name \"", name,
             "\": a split's name has letters, digits, '-', '_' and "
             "'.', and does not start with '.'"));
}

}  // namespace millrace
