// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/cuda/sample/sampling_devices.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/neighbor_drawer.h"

namespace millrace::cuda {

// Draws on devices in turn. There are no kernels for walks, edges among given
// nodes and fanouts above 1024.
class CudaNeighborDrawer final : public NeighborDrawer {
 public:
  // `devices` must have the partitions that are drawn from.
  CudaNeighborDrawer(std::shared_ptr<SamplingDevices> devices,
                     DeviceFallback fallback);

  // Returns false if there are no kernels for the draw, unless kForbid was
  // given; and always if the lists are damaged, since the CPU says how.
  absl::StatusOr<bool> Draw(const Store& store, int part,
                            const DrawContext& context,
                            const Frontier& frontier, Picks& picks) override;

 private:
  // Shared with other users of the devices.
  const std::shared_ptr<SamplingDevices> devices_;
  const DeviceFallback fallback_;
};

}  // namespace millrace::cuda
