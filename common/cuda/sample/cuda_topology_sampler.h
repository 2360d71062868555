// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cuda/graph/device_graph.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace::cuda {

// Batches by where their topology was made.
struct PlaceCounts {
  uint64_t device = 0;
  uint64_t host = 0;
  // How often the host waited for the device.
  uint64_t waits = 0;
};

// Returns what about a job has no kernels, such as "walks"; empty if the device
// can sample it.
std::string_view WithoutKernels(const ResolvedJob& job);

// Samples on a device, and on the CPU what has no kernels: walks, ppr and
// induced subgraphs, fanouts above 1024, excluded edges and train graphs.
// Batches are equal either way, and arrays are in pinned memory if they come
// from the device.
class CudaTopologySampler final : public TopologySampler {
 public:
  // Copies the lists of `store`, whose partitions must all be mapped, to the
  // memory of a device. Also the errors of OpenDevice() and
  // DeviceGraph::Create().
  static absl::StatusOr<std::unique_ptr<CudaTopologySampler>> Create(
      std::shared_ptr<const Store> store, int device, DeviceFallback fallback);
  ~CudaTopologySampler() override;

  // FAILED_PRECONDITION: the batch needs the CPU, and kForbid was given.
  // RESOURCE_EXHAUSTED: the batch does not fit into the device's memory.
  // INTERNAL: the device has failed. Also the errors of SampleTopology().
  absl::StatusOr<Batch> Sample(const ResolvedJob& job,
                               const TopologyRequest& request,
                               const ResolvedSeeds& seeds) override;

  const DeviceGraph& graph() const { return *graph_; }
  PlaceCounts counts() const { return {device_, host_, waits_}; }

 private:
  class Worker;

  CudaTopologySampler(std::shared_ptr<const Store> store,
                      std::unique_ptr<DeviceGraph> graph,
                      DeviceFallback fallback);

  absl::StatusOr<Batch> SampleOnHost(const ResolvedJob& job,
                                     const TopologyRequest& request,
                                     const ResolvedSeeds& seeds);
  // RESOURCE_EXHAUSTED: too little memory. DATA_LOSS: the device refuses what
  // it read. INTERNAL: the worker has failed. Without messages.
  absl::StatusOr<Batch> SampleOnDevice(Worker& worker, const ResolvedJob& job,
                                       const TopologyRequest& request,
                                       const ResolvedSeeds& seeds);
  absl::StatusOr<std::unique_ptr<Worker>> TakeWorker();
  void ReturnWorker(std::unique_ptr<Worker> worker);

  const std::shared_ptr<const Store> store_;
  const std::unique_ptr<DeviceGraph> graph_;
  const DeviceFallback fallback_;
  const std::unique_ptr<TopologySampler> host_sampler_;
  const std::shared_ptr<PinnedPool> pinned_;
  std::atomic<uint64_t> device_ = 0, host_ = 0, waits_ = 0;
  Mutex mutex_;
  // Those that no call is using; as many as there were calls at a time.
  std::vector<std::unique_ptr<Worker>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::cuda
