// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cuda/graph/device_features.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/graph/store.h"
#include "common/sample/feature_rows.h"

namespace millrace::cuda {

// Reads the hottest feature rows from the memory of devices, and the others
// from pinned memory. Kernels write the rows straight to where they stay: the
// memory of the device that is asked for, or pinned blocks. The host waits once
// for each call. Devices take calls in turn unless one is asked for.
class CudaFeatureRows final : public FeatureRows {
 public:
  // Fails as DeviceFeatures::Create() does, whose conditions `devices` and
  // `ratio` must meet.
  static absl::StatusOr<std::unique_ptr<CudaFeatureRows>> Create(
      std::shared_ptr<const Store> store, const std::vector<int>& devices,
      double ratio);
  ~CudaFeatureRows() override;

  absl::StatusOr<Array> GatherNodes(TypeIndex type,
                                    std::span<const uint64_t> ids,
                                    ArrayMemory* memory) override;
  absl::StatusOr<Array> GatherEdges(RelationIndex relation,
                                    std::span<const uint32_t> parts,
                                    std::span<const uint64_t> rows,
                                    ArrayMemory* memory) override;
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
    int device = kHost;  // where they stay if they can
  };
  struct Reader;

  CudaFeatureRows(std::shared_ptr<const Store> store,
                  std::unique_ptr<DeviceFeatures> features);

  // Returns the place of the device among those that read, or of the next in
  // turn.
  size_t PlaceFor(int device);
  const ColumnSpec& SpecOf(const Request& request) const;
  // Returns nullopt if the CPU must do it, which says what is wrong with the
  // rows.
  absl::StatusOr<std::optional<Array>> Gather(const Request& request);

  const std::shared_ptr<const Store> store_;
  const std::unique_ptr<DeviceFeatures> features_;
  const std::shared_ptr<PinnedPool> pinned_;
  std::vector<std::unique_ptr<Reader>> readers_;  // by device
  std::atomic<uint64_t> next_ = 0;                // call
  std::atomic<uint64_t> gpu_rows_ = 0, pinned_rows_ = 0;
};

}  // namespace millrace::cuda
