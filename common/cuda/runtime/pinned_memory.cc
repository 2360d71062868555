// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/pinned_memory.h"

#include <utility>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "common/base/block.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"

namespace millrace::cuda {

std::shared_ptr<std::byte> PinnedMemory::Allocate(size_t bytes) {
  if (bytes < kMinPinnedBytes) return AllocateBlock(bytes);
  absl::StatusOr<std::shared_ptr<std::byte>> pinned = pool_->Allocate(bytes);
  if (pinned.ok()) return *std::move(pinned);
  absl::call_once(logged_, [&pinned] {
    LogWarning("batches are copied to the GPU from memory that is not pinned",
               {{"error", FirstLine(pinned.status())}});
  });
  return AllocateBlock(bytes);
}

}  // namespace millrace::cuda
