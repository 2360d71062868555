// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/split_import.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/graph_checks.h"
#include "common/sample/draw/draw.h"

namespace millrace {
namespace {

struct SeedRow {
  int64_t id;
  int64_t row;
  friend auto operator<=>(const SeedRow&, const SeedRow&) = default;
};

absl::StatusOr<std::vector<SeedRow>> ReadRows(const RowSource& source) {
  if (source.width() != 1) {
    return absl::InvalidArgumentError(
        StrCat(source.name(), ": ", source.width(),
               " numbers per row, but a split has one id per row"));
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

// The order in which labelled nodes are distributed. There must be at least
// one.
Permutation OrderOf(const std::vector<int64_t>& labelled, uint64_t seed,
                    int type) {
  DrawDomain domain;
  domain.job_seed = seed;
  domain.purpose = Purpose::kShuffle;
  domain.hop = type;
  return Permutation(domain.Key(), labelled.size());
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ReadSplitIds(const RowSource& source,
                                                  const RawNodes& nodes) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<SeedRow> seeds, ReadRows(source));
  std::sort(seeds.begin(), seeds.end());
  std::vector<int64_t> ids;
  ids.reserve(seeds.size());
  for (const SeedRow& seed : seeds) {
    if (seed.id < 0 || seed.id >= nodes.count) {
      return absl::InvalidArgumentError(
          StrCat(source.Where(seed.row), ": node ", seed.id,
                 " is out of range: ", NodeRangeText(nodes)));
    }
    if (!ids.empty() && ids.back() == seed.id) {
      return absl::InvalidArgumentError(StrCat(source.Where(seed.row),
                                               ": node ", seed.id,
                                               " occurs twice in this split"));
    }
    ids.push_back(seed.id);
  }
  return ids;
}

absl::Status CheckFractions(std::string_view field,
                            const std::vector<double>& fractions) {
  double sum = 0;
  bool valid = fractions.size() == 3;
  for (double fraction : fractions) {
    valid = valid && fraction >= 0 && fraction <= 1;
    sum += fraction;
  }
  // Because of rounding, 0.8 + 0.1 + 0.1 may exceed 1.
  if (valid && sum <= 1 + 1e-9) return absl::OkStatus();
  return InvalidField(
      {.field = std::string(field),
       .value = absl::StrJoin(fractions, ","),
       .limit = "give three shares (train, valid, test) from 0 to 1 whose sum "
                "is at most 1"});
}

std::vector<std::vector<int64_t>> SplitByFractions(
    const std::vector<int64_t>& labelled, const std::vector<double>& fractions,
    uint64_t seed, int type) {
  std::vector<std::vector<int64_t>> splits(fractions.size());
  if (labelled.empty()) return splits;
  const auto count = static_cast<int64_t>(labelled.size());
  const Permutation permutation = OrderOf(labelled, seed, type);
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

absl::Status CheckFolds(int folds, int64_t labelled, const std::string& type) {
  if (folds < 3) {
    return InvalidField(
        {.field = "folds",
         .value = StrCat(folds),
         .limit = "at least 3 are needed, one each to train, validate and "
                  "test"});
  }
  if (labelled >= folds) return absl::OkStatus();
  return InvalidField(
      {.field = "folds",
       .value = StrCat(folds),
       .limit = StrCat("node type ", type, " has only ", labelled,
                       " labelled nodes; each fold needs one")});
}

std::vector<NamedSplit> SplitByFolds(const std::vector<int64_t>& labelled,
                                     const std::vector<int64_t>& classes,
                                     int folds, uint64_t seed, int type) {
  const Permutation permutation = OrderOf(labelled, seed, type);
  std::vector<size_t> order;  // indices into `labelled`
  order.reserve(labelled.size());
  for (size_t i = 0; i < labelled.size(); ++i) order.push_back(permutation(i));
  if (!classes.empty()) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return classes[a] < classes[b];
    });
  }
  std::vector<int> fold_of(labelled.size());
  for (size_t i = 0; i < order.size(); ++i) {
    fold_of[order[i]] = static_cast<int>(i % static_cast<size_t>(folds));
  }
  std::vector<NamedSplit> splits;
  for (int fold = 0; fold < folds; ++fold) {
    NamedSplit train{StrCat("train", fold), {}};
    NamedSplit valid{StrCat("valid", fold), {}};
    NamedSplit test{StrCat("test", fold), {}};
    for (size_t i = 0; i < labelled.size(); ++i) {
      NamedSplit& split = fold_of[i] == fold                 ? test
                          : fold_of[i] == (fold + 1) % folds ? valid
                                                             : train;
      split.ids.push_back(labelled[i]);
    }
    for (NamedSplit* split : {&train, &valid, &test}) {
      splits.push_back(std::move(*split));
    }
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
  return InvalidField(
      {.field = "name",
       .value = StrCat("\"", name, "\""),
       .limit = "a split's name has letters, digits, '-', '_' and '.', and "
                "does not start with '.'"});
}

absl::StatusOr<std::vector<int64_t>> ReadIntegers(const RowSource& source) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  std::vector<int64_t> all;
  // Tables of ids have few columns, but this may be the wrong file.
  const int64_t block_rows = std::max<int64_t>(kBlockRows / source.width(), 1);
  std::vector<int64_t> block(static_cast<size_t>(block_rows * source.width()));
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              reader->ReadIntegers(block_rows, block.data()));
    if (rows == 0) return all;
    all.insert(all.end(), block.begin(),
               block.begin() + static_cast<ptrdiff_t>(rows * source.width()));
  }
}

absl::StatusOr<EdgeSplitColumns> ReadEdgeSplit(const RawEdgeSplit& split) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                            ReadIntegers(*split.endpoints));
  std::vector<int64_t> src, dst, ids;
  for (size_t i = 0; i + 1 < ends.size(); i += 2) {
    src.push_back(ends[i]);
    dst.push_back(ends[i + 1]);
    ids.push_back(split.first_edge + static_cast<int64_t>(i / 2));
  }
  EdgeSplitColumns columns;
  columns.name = split.name;
  columns.src = Array::Adopt(std::move(src));
  columns.dst = Array::Adopt(std::move(dst));
  if (split.first_edge >= 0) columns.edge_id = Array::Adopt(std::move(ids));
  if (split.time != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> times,
                              ReadIntegers(*split.time));
    columns.time = Array::Adopt(std::move(times));
  }
  if (split.type != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> types,
                              ReadIntegers(*split.type));
    columns.edge_type =
        Array::Adopt(std::vector<int32_t>(types.begin(), types.end()));
  }
  if (split.label != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> labels,
                              ReadIntegers(*split.label));
    columns.label = Array::Adopt(std::move(labels));
  }
  return columns;
}

}  // namespace millrace
