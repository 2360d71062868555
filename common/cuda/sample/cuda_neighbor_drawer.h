// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "common/cuda/sample/sampling_devices.h"
#include "common/graph/store.h"
#include "common/sample/hop_counts.h"
#include "common/sample/memory_options.h"
#include "common/sample/neighbor_drawer.h"

namespace millrace::cuda {

// Draws on a device, and on the CPU what has no kernels: walks, edges among
// given nodes, fanouts above 1024, excluded edges and train graphs.
class CudaNeighborDrawer final : public NeighborDrawer {
 public:
  // `devices` must have the partitions that are drawn from.
  CudaNeighborDrawer(std::shared_ptr<SamplingDevices> devices,
                     DeviceFallback fallback);

  // FAILED_PRECONDITION: there are no kernels for the draw, and kForbid was
  // given. (The CPU always draws from lists that the device refuses, and says
  // what is wrong with them.) RESOURCE_EXHAUSTED: the picks do not fit into the
  // memory of the device, or into pinned memory. INTERNAL: the device has
  // failed. Also the errors of DrawNeighbors().
  absl::Status Draw(const Store& store, int part, const DrawContext& context,
                    const Frontier& frontier, Picks& picks) override;
  HopCounts counts() const override { return hops_.counts(); }

 private:
  absl::StatusOr<HopOutcome> DrawOnDevice(const Store& store, int part,
                                          const DrawContext& context,
                                          const Frontier& frontier,
                                          Picks& picks);

  // Shared with other users of the devices.
  const std::shared_ptr<SamplingDevices> devices_;
  const DeviceFallback fallback_;
  HopCounter hops_;
};

}  // namespace millrace::cuda
