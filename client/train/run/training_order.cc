// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/training_order.h"

#include <xxhash.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

absl::Status OrderError(const std::string& path, std::string_view what,
                        std::string_view advice) {
  return WithAdvice(
      InvalidField(
          {.field = "order", .value = path, .limit = std::string(what)}),
      advice);
}

// The position of each original id among a job's seeds.
using Positions = std::unordered_map<int64_t, uint64_t>;

absl::StatusOr<Positions> PositionsOf(const std::string& path,
                                      const ExplicitSeeds& seeds) {
  Positions positions;
  for (const int64_t id : seeds.ids) {
    if (positions.emplace(id, positions.size()).second) continue;
    return OrderError(
        path, StrCat("seed ", id, " occurs twice among the job's seeds"),
        "give every seed once, or no order");
  }
  return positions;
}

// Returns one row of the file as positions among the job's seeds.
absl::StatusOr<std::vector<uint64_t>> PositionsOfRow(
    const std::string& where, std::span<const int64_t> row,
    const Positions& positions, const ExplicitSeeds& seeds) {
  constexpr std::string_view kAdvice =
      "each row must hold every seed of the job once";
  std::vector<uint64_t> order;
  std::vector<bool> seen(positions.size(), false);
  for (const int64_t id : row) {
    const auto found = positions.find(id);
    if (found == positions.end()) {
      return OrderError(where, StrCat(id, " is not one of the job's seeds"),
                        kAdvice);
    }
    if (seen[found->second]) {
      return OrderError(where, StrCat("seed ", id, " occurs twice"), kAdvice);
    }
    seen[found->second] = true;
    order.push_back(found->second);
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return order;
  return OrderError(
      where, StrCat("seed ", seeds.ids[missing - seen.begin()], " is missing"),
      kAdvice);
}

}  // namespace

absl::StatusOr<TrainingOrder> ReadTrainingOrder(const std::string& path,
                                                const ExplicitSeeds& seeds,
                                                uint32_t epochs) {
  const absl::StatusOr<Array> read = ReadNpyIntegers(path);
  if (absl::IsInvalidArgument(read.status())) {
    return InvalidField(
        {.field = "order", .limit = std::string(read.status().message())});
  }
  MILLRACE_ASSIGN_OR_RETURN(const Array array, read);
  const std::vector<int64_t>& shape = array.shape();
  const bool same_for_all_epochs = shape.size() == 1;
  const int64_t rows = same_for_all_epochs ? 1 : shape[0];
  if (!same_for_all_epochs && rows < int64_t{epochs}) {
    return OrderError(
        path, StrCat("has ", rows, " rows, but there are ", epochs, " epochs"),
        "give a row for each epoch, or one dimension for all");
  }
  MILLRACE_ASSIGN_OR_RETURN(const Positions positions,
                            PositionsOf(path, seeds));
  const std::span<const int64_t> ids = array.As<int64_t>();
  TrainingOrder order;
  const auto size = static_cast<size_t>(shape.back());
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const int64_t> list = ids.subspan(row * size, size);
    const std::string where =
        same_for_all_epochs ? path : StrCat(path, ": row ", row);
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint64_t> epoch_order,
                              PositionsOfRow(where, list, positions, seeds));
    order.epochs.push_back(seeds.At(epoch_order));
    order.checksums.push_back(XXH3_64bits(list.data(), list.size_bytes()));
  }
  return order;
}

uint64_t TrainingOrder::ChecksumOf(uint32_t count) const {
  uint64_t checksum = 0;
  const bool same_for_all_epochs = checksums.size() == 1;
  for (size_t epoch = 0; epoch < count; ++epoch) {
    if (!same_for_all_epochs && epoch == checksums.size()) break;
    const uint64_t list = checksums[same_for_all_epochs ? 0 : epoch];
    checksum = XXH3_64bits_withSeed(&list, sizeof(list), checksum);
  }
  return checksum;
}

}  // namespace millrace
