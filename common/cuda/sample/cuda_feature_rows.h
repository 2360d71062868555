// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cuda/graph/device_features.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/cuda/runtime/worker_pool.h"
#include "common/graph/store.h"
#include "common/sample/feature_rows.h"

namespace millrace::cuda {

class RowWorker;

// Reads the hottest feature rows from the memory of devices, and the others
// from pinned memory. Kernels write the rows straight into pinned blocks. The
// devices take calls in turn, and the host waits once for each.
class CudaFeatureRows final : public FeatureRows {
 public:
  // Fails as DeviceFeatures::Create() does, whose conditions `devices` and
  // `ratio` must meet.
  static absl::StatusOr<std::unique_ptr<CudaFeatureRows>> Create(
      std::shared_ptr<const Store> store, const std::vector<int>& devices,
      double ratio);
  ~CudaFeatureRows() override;

  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes) override;
  absl::Status GatherNodes(TypeIndex type, std::span<const uint64_t> ids,
                           std::byte* out) override;
  absl::Status GatherEdges(RelationIndex relation,
                           std::span<const uint32_t> parts,
                           std::span<const uint64_t> rows,
                           std::byte* out) override;
  FeatureRowCounts counts() const override {
    return {.gpu = gpu_rows_, .gpu_pinned = pinned_rows_};
  }

  const DeviceFeatures& features() const { return *features_; }

 private:
  // Rows of one column.
  struct Request {
    bool edges = false;
    int index = 0;                         // of the node type or relation
    std::span<const uint32_t> parts = {};  // empty for nodes
    std::span<const uint64_t> rows = {};
  };

  CudaFeatureRows(std::shared_ptr<const Store> store,
                  std::unique_ptr<DeviceFeatures> features);

  // False if the CPU must do it, which says what is wrong with the rows.
  absl::StatusOr<bool> Gather(const Request& request, std::byte* out);

  const std::shared_ptr<const Store> store_;
  const std::unique_ptr<DeviceFeatures> features_;
  const std::shared_ptr<PinnedPool> pinned_;
  std::vector<std::unique_ptr<WorkerPool<RowWorker>>> pools_;  // by device
  std::atomic<uint64_t> next_ = 0;                             // call
  std::atomic<uint64_t> gpu_rows_ = 0, pinned_rows_ = 0;
};

}  // namespace millrace::cuda
