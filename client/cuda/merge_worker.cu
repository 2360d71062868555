// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <utility>

#include "client/cuda/merge_rows.cuh"
#include "client/cuda/merge_worker.h"
#include "common/base/status_macros.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/stream.h"
#include "common/cuda/sample/cuda_queue.cuh"
#include "common/cuda/sample/device_array.cuh"

namespace millrace::cuda {
namespace {

// Where kernels of the current device read memory of the host; null if it is
// not pinned.
absl::StatusOr<const std::byte*> FindPinned(const void* data) {
  cudaPointerAttributes attributes{};
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaPointerGetAttributes(&attributes, data),
                 "cannot tell whether memory is pinned"));
  if (attributes.type != cudaMemoryTypeHost) return nullptr;
  return static_cast<const std::byte*>(attributes.devicePointer);
}

void LaunchMerge(const RowsToMerge& rows, std::byte* to, CudaQueue& queue) {
  const uint64_t addresses = rows.row_bytes |
                             reinterpret_cast<uintptr_t>(rows.held) |
                             reinterpret_cast<uintptr_t>(rows.received) |
                             reinterpret_cast<uintptr_t>(to);
  WithWidestWord(addresses, [&]<typename Word>(Word) {
    const unsigned bits = RowThreadBits(rows.row_bytes / sizeof(Word));
    queue.LaunchEach(MergeRows<Word>, rows.count << bits, rows, bits,
                     reinterpret_cast<Word*>(to));
  });
}

}  // namespace

struct MergeWorker::State {
  explicit State(Stream own_stream)
      : stream(std::move(own_stream)), queue(stream.get()) {}

  Stream stream;
  CudaQueue queue;
  DeviceArray<CudaQueue, int64_t> places{queue};
  DeviceArray<CudaQueue, std::byte> received{queue};  // if it is not pinned
};

MergeWorker::MergeWorker(int device, std::unique_ptr<State> state)
    : device_(device), state_(std::move(state)) {}

MergeWorker::~MergeWorker() {
  const ScopedDevice current(device_);
  state_.reset();
}

absl::StatusOr<std::unique_ptr<MergeWorker>> MergeWorker::Create(int device) {
  MILLRACE_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  return std::unique_ptr<MergeWorker>(
      new MergeWorker(device, std::make_unique<State>(std::move(stream))));
}

absl::StatusOr<MergeOutcome> MergeWorker::AfterFailure() const {
  const CudaQueue& queue = state_->queue;
  if (!queue.failed() || queue.failure() == cudaErrorMemoryAllocation) {
    return MergeOutcome::kNoMemory;
  }
  return DeviceFailureStatus(queue.failure(), device_);
}

absl::StatusOr<MergeOutcome> MergeWorker::Write(const Array& rows,
                                                std::byte* to) {
  state_->queue.Upload(to, rows.data(), rows.total_bytes());
  if (!state_->queue.Wait()) return AfterFailure();
  return MergeOutcome::kDone;
}

absl::StatusOr<MergeOutcome> MergeWorker::Merge(
    const std::byte* held, std::span<const int64_t> places,
    const Array& received, DevicePool& pool,
    std::shared_ptr<std::byte>& merged) {
  CudaQueue& queue = state_->queue;
  const size_t bytes = received.total_bytes();
  absl::StatusOr<const std::byte*> readable = FindPinned(received.data());
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(readable.status(), device_));
  const bool pinned = *readable != nullptr;
  if (!state_->places.Reserve(places.size()) ||
      (!pinned && !state_->received.Reserve(bytes))) {
    return AfterFailure();
  }
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> to,
                            pool.AllocateIfRoom(bytes));
  if (to == nullptr) return MergeOutcome::kNoMemory;
  queue.Upload(state_->places.data(), places.data(), places.size_bytes());
  if (!pinned) {
    queue.Upload(state_->received.data(), received.data(), bytes);
    readable = state_->received.data();
  }
  LaunchMerge({.held = held,
               .received = *readable,
               .places = state_->places.data(),
               .count = places.size(),
               .row_bytes = received.row_bytes()},
              to.get(), queue);
  if (!queue.Wait()) return AfterFailure();
  merged = std::move(to);
  return MergeOutcome::kDone;
}

bool MergeWorker::failed() const { return state_->queue.failed(); }

}  // namespace millrace::cuda
