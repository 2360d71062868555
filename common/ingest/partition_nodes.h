// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/ingest/renumbering.h"

namespace millrace {

// Writes all files of the nodes of one type: columns in the order of the new
// ids, hotness and lookup tables of all partitions. Features become
// `feature_dtype` (kNone: as they are). Memory: about `memory_bytes` for a
// window of rows; the rest streams.
// FAILED_PRECONDITION: features that are no floats cannot be converted.
absl::Status WriteNodes(const Store& dataset, TypeIndex type,
                        const Renumbering& numbers,
                        std::span<const float> hotness, DType feature_dtype,
                        uint64_t memory_bytes, StoreWriter& writer);

// OK when features of dtype `from` can be written as `to` (kNone: as is).
absl::Status CheckFeatureCast(std::string_view type_name, DType from, DType to);

}  // namespace millrace
