// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/sample/batch.h"
#include "common/sample/batch_arrays.h"
#include "server/rpc/frame_source.h"

namespace millrace {

// Returns the stream of a batch whose topology is complete. Partition `home`
// sends the rows that it owns. `cached_rows`: see SelectRows. The batch is
// shared by the frames in flight, which borrow its arrays;
// what `places` refers to must outlive the stream.
std::unique_ptr<FrameSource> StreamBatch(
    const RowPlaces& places, const StreamContent& content,
    const std::shared_ptr<const Batch>& batch, int home,
    std::span<const uint64_t> cached_rows);

}  // namespace millrace
