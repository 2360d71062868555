// SPDX-License-Identifier: Apache-2.0
// What MemoryTier::kAuto does when a device fails: the CPU takes over, from
// what the host has of the store. Batches do not change.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "common/graph/store.h"
#include "common/sample/feature_rows.h"
#include "common/sample/neighbor_drawer.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// Whether a device has failed, which is logged once. Threads: any.
class DeviceFailure {
 public:
  bool noted() const { return noted_; }
  // Returns true if the status is the failure of a device (UNAVAILABLE).
  bool Note(const absl::Status& status);

 private:
  std::atomic<bool> noted_ = false;
};

// Each does what `device` does until that fails.

class SamplerUntilFailure final : public TopologySampler {
 public:
  SamplerUntilFailure(std::unique_ptr<TopologySampler> device,
                      std::shared_ptr<DeviceFailure> failure)
      : device_(std::move(device)), failure_(std::move(failure)) {}

  absl::StatusOr<std::optional<Batch>> Sample(const Store& store,
                                              const ResolvedJob& job,
                                              const TopologyRequest& request,
                                              const ResolvedSeeds& seeds,
                                              const Reserve& reserve) override;

 private:
  const std::unique_ptr<TopologySampler> device_;
  const std::shared_ptr<DeviceFailure> failure_;
};

class DrawerUntilFailure final : public NeighborDrawer {
 public:
  DrawerUntilFailure(std::unique_ptr<NeighborDrawer> device,
                     std::shared_ptr<DeviceFailure> failure)
      : device_(std::move(device)), failure_(std::move(failure)) {}

  absl::StatusOr<bool> Draw(const Store& store, int part,
                            const DrawContext& context,
                            const Frontier& frontier, Picks& picks) override;

 private:
  const std::unique_ptr<NeighborDrawer> device_;
  const std::shared_ptr<DeviceFailure> failure_;
};

class RowsUntilFailure final : public FeatureRows {
 public:
  RowsUntilFailure(std::shared_ptr<const Store> store,
                   std::shared_ptr<FeatureRows> device,
                   std::shared_ptr<DeviceFailure> failure)
      : store_(std::move(store)),
        device_(std::move(device)),
        failure_(std::move(failure)) {}

  absl::StatusOr<Array> GatherNodes(TypeIndex type,
                                    std::span<const uint64_t> ids,
                                    ArrayMemory* memory) override;
  absl::StatusOr<Array> GatherEdges(RelationIndex relation,
                                    std::span<const uint32_t> parts,
                                    std::span<const uint64_t> rows,
                                    ArrayMemory* memory) override;
  FeatureRowCounts counts() const override;

 private:
  const std::shared_ptr<const Store> store_;
  const std::shared_ptr<FeatureRows> device_;
  const std::shared_ptr<DeviceFailure> failure_;
  std::atomic<uint64_t> cpu_rows_ = 0;
};

}  // namespace millrace
