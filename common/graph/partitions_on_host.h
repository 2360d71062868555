// SPDX-License-Identifier: Apache-2.0
// A host may have a copy of some partitions of a store only (docs/format.md,
// section 4).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// Those of the partitions 0 to `partition_count` - 1 whose folders exist in the
// store at `root`, ascending. What the folders hold is not checked.
std::vector<int> PartitionsOnHost(const std::filesystem::path& root,
                                  int partition_count);

// Those of the partitions 0 to `partition_count` - 1 of the store at `root`
// that are `wanted`, or all if that is empty: ascending, without duplicates.
// OUT_OF_RANGE: there is no such partition. Also the error of CheckOnHost().
absl::StatusOr<std::vector<int>> ChoosePartitions(
    const std::filesystem::path& root, int partition_count,
    std::vector<int> wanted);

// Both lists are ascending.
// NOT_FOUND: `here` lacks some of `wanted`; the message names these and those
// that are here, and a second line says what to do.
absl::Status CheckOnHost(const std::filesystem::path& root,
                         const std::vector<int>& wanted,
                         const std::vector<int>& here);

// "partition 3", "partitions 0, 2"; a long list is cut.
std::string PartitionsText(const std::vector<int>& partitions);

}  // namespace millrace
