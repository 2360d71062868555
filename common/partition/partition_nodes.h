// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/partition/renumbering.h"

namespace millrace {

// Writes all files of the nodes of one type: columns in the order of the new
// ids, hotness and lookup tables of all partitions. Features are converted to
// `feature_dtype` unless it is kNone. Needs about `memory_bytes` for a window
// of rows; the rest is streamed. FAILED_PRECONDITION: features that are not
// floats cannot be converted.
absl::Status WriteNodes(const Store& dataset, TypeIndex type,
                        const Renumbering& numbers,
                        std::span<const float> hotness, DType feature_dtype,
                        uint64_t memory_bytes, StoreWriter& writer);

// Checks that features of dtype `from` can be written as `to`, or unchanged if
// that is kNone. FAILED_PRECONDITION: they cannot.
absl::Status CheckFeatureCast(std::string_view type_name, DType from, DType to);

}  // namespace millrace
