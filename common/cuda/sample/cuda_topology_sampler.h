// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/cuda/sample/sampling_devices.h"
#include "common/graph/store.h"
#include "common/sample/hop_counts.h"
#include "common/sample/local/mapped_topology_sampler.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace::cuda {

// Returns why a job needs the CPU, as what there are no kernels for, such as
// "walks"; empty if the device can sample it.
std::string ReasonForHost(const ResolvedJob& job);

// Samples on a device, and on the CPU what has no kernels: walks, ppr and
// induced subgraphs, fanouts above 1024, excluded edges and train graphs.
// Batches are equal either way, and arrays are in pinned memory if they come
// from the device. The host waits once for a batch if the sizes of its arrays
// have small bounds; see HopSampler.
class CudaTopologySampler final : public TopologySampler {
 public:
  // `devices` must have all partitions of the stores that are sampled.
  CudaTopologySampler(std::shared_ptr<SamplingDevices> devices,
                      DeviceFallback fallback);

  // FAILED_PRECONDITION: there are no kernels for the job, and kForbid was
  // given. (The CPU always makes batches from lists that the device refuses,
  // and says what is wrong with them.) RESOURCE_EXHAUSTED: the batch does not
  // fit into the memory of the device, or into pinned memory. INTERNAL: the
  // device has failed. Also the errors of SampleTopology().
  absl::StatusOr<Batch> Sample(const Store& store, const ResolvedJob& job,
                               const TopologyRequest& request,
                               const ResolvedSeeds& seeds) override;
  HopCounts counts() const override { return hops_.counts(); }

 private:
  absl::StatusOr<HopOutcome> SampleOnDevice(const Store& store,
                                            const ResolvedJob& job,
                                            const TopologyRequest& request,
                                            const ResolvedSeeds& seeds,
                                            Batch& batch);

  // Shared with other users of the devices.
  const std::shared_ptr<SamplingDevices> devices_;
  const DeviceFallback fallback_;
  MappedTopologySampler host_sampler_;
  HopCounter hops_;
};

}  // namespace millrace::cuda
