// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cuda/graph/device_graph.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/cuda/sample/hop_job.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace::cuda {

// Batches by where their topology was made.
struct PlaceCounts {
  uint64_t device_batches = 0;
  uint64_t host_batches = 0;
  // How often the host waited for the device.
  uint64_t waits = 0;
};

// Returns why a job needs the CPU, as what there are no kernels for, such as
// "walks"; empty if the device can sample it.
std::string ReasonForHost(const ResolvedJob& job);

// Samples on a device, and on the CPU what has no kernels: walks, ppr and
// induced subgraphs, fanouts above 1024, excluded edges and train graphs.
// Batches are equal either way, and arrays are in pinned memory if they come
// from the device.
class CudaTopologySampler final : public TopologySampler {
 public:
  // All partitions of `store` must be mapped, and the device must be open.
  // Fails as DeviceGraph::Create() does.
  static absl::StatusOr<std::unique_ptr<CudaTopologySampler>> Create(
      std::shared_ptr<const Store> store, int device, ColumnPlace place,
      DeviceFallback fallback);
  ~CudaTopologySampler() override;

  // FAILED_PRECONDITION: there are no kernels for the job, and kForbid was
  // given. (The CPU always makes batches from lists that the device refuses,
  // and says what is wrong with them.) RESOURCE_EXHAUSTED: the batch does not
  // fit into the memory of the device, or into pinned memory. INTERNAL: the
  // device has failed. Also the errors of SampleTopology().
  absl::StatusOr<Batch> Sample(const ResolvedJob& job,
                               const TopologyRequest& request,
                               const ResolvedSeeds& seeds) override;

  const DeviceGraph& graph() const { return *graph_; }
  PlaceCounts counts() const {
    return {device_batches_, host_batches_, waits_};
  }

 private:
  class Worker;

  CudaTopologySampler(std::shared_ptr<const Store> store,
                      std::unique_ptr<DeviceGraph> graph,
                      DeviceFallback fallback);

  absl::StatusOr<Batch> SampleOnHost(const ResolvedJob& job,
                                     const TopologyRequest& request,
                                     const ResolvedSeeds& seeds);
  // kFailed is an error instead. Fills `batch` if the outcome is kMade.
  absl::StatusOr<HopOutcome> SampleOnDevice(const ResolvedJob& job,
                                            const TopologyRequest& request,
                                            const ResolvedSeeds& seeds,
                                            Batch& batch);
  absl::StatusOr<std::unique_ptr<Worker>> TakeWorker();
  void ReturnWorker(std::unique_ptr<Worker> worker);
  // Frees their memory.
  void DropIdleWorkers();

  const std::shared_ptr<const Store> store_;
  const std::unique_ptr<DeviceGraph> graph_;
  const DeviceFallback fallback_;
  const std::unique_ptr<TopologySampler> host_sampler_;
  const std::shared_ptr<PinnedPool> pinned_;
  std::atomic<uint64_t> device_batches_ = 0, host_batches_ = 0, waits_ = 0;
  Mutex mutex_;
  // There are as many workers as the most calls that ran at once.
  std::vector<std::unique_ptr<Worker>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::cuda
