// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/cuda/runtime/block_pool.h"

namespace millrace::cuda {

// Blocks of pinned host memory, which devices copy to and from without a
// detour.
class PinnedPool final : public BlockPool {
 public:
  static constexpr uint64_t kMaxIdleBytes = uint64_t{1} << 30;

  // Blocks are pinned by way of `device`, but every device may use them. The
  // device must be open.
  static std::shared_ptr<PinnedPool> Create(
      int device, uint64_t max_idle_bytes = kMaxIdleBytes);
  ~PinnedPool() override { DropIdle(); }

 private:
  PinnedPool(int device, uint64_t max_idle_bytes)
      : BlockPool(max_idle_bytes), device_(device) {}

  absl::StatusOr<std::byte*> Make(uint64_t bytes) const override;
  void Free(std::byte* block) const override;

  const int device_;
};

}  // namespace millrace::cuda
