// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/cuda/sample/sampling_devices.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace::cuda {

// Returns why a job needs the CPU, as what there are no kernels for, such as
// "walks"; empty if the device can sample it.
std::string ReasonForHost(const ResolvedJob& job);

// Samples on the device of the request's memory, or if there is none on all in
// turn. There are no kernels for walks, ppr and induced subgraphs, and fanouts
// above 1024. Arrays of edges stay on the request's device; all others are in
// pinned memory. See BatchRequest::memory for what stays. The host waits once
// for a batch if the sizes of its arrays have small bounds; see HopSampler.
class CudaTopologySampler final : public TopologySampler {
 public:
  // `devices` must have all partitions of the stores that are sampled.
  CudaTopologySampler(std::shared_ptr<SamplingDevices> devices,
                      DeviceFallback fallback);

  // Returns nullopt if there are no kernels for the job, unless kForbid was
  // given; and always if the lists or the split of a train graph are damaged,
  // since the CPU says how. Also fails as CheckTopologyInput() does.
  absl::StatusOr<std::optional<Batch>> Sample(const Store& store,
                                              const ResolvedJob& job,
                                              const TopologyRequest& request,
                                              const ResolvedSeeds& seeds,
                                              const Reserve& reserve) override;

 private:
  // Shared with other users of the devices.
  const std::shared_ptr<SamplingDevices> devices_;
  const DeviceFallback fallback_;
};

}  // namespace millrace::cuda
