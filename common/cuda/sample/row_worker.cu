// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/stream.h"
#include "common/cuda/sample/cuda_queue.cuh"
#include "common/cuda/sample/device_array.cuh"
#include "common/cuda/sample/gather_rows.cuh"
#include "common/cuda/sample/row_worker.h"

namespace millrace::cuda {
namespace {

void LaunchGather(const FeatureColumn& column, const WantedRows& wanted,
                  std::byte* to, RowTally* tally, CudaQueue& queue) {
  WithWidestWord(
      column.alignment | reinterpret_cast<uintptr_t>(to),
      [&]<typename Word>(Word) {
        const unsigned bits = RowThreadBits(column.row_bytes / sizeof(Word));
        queue.LaunchEach(GatherWantedRows<Word>, wanted.count << bits, column,
                         wanted, bits, reinterpret_cast<Word*>(to), tally);
      });
}

}  // namespace

struct RowWorker::State {
  explicit State(Stream own_stream)
      : stream(std::move(own_stream)), queue(stream.get()) {}

  Stream stream;
  CudaQueue queue;
  DeviceArray<CudaQueue, uint64_t> rows{queue};
  DeviceArray<CudaQueue, uint32_t> parts{queue};
  DeviceArray<CudaQueue, RowTally> tally{queue};
  RowTally last;
};

RowWorker::RowWorker(int device, std::unique_ptr<State> state)
    : device_(device), state_(std::move(state)) {}

RowWorker::~RowWorker() {
  const ScopedDevice current(device_);
  state_.reset();
}

absl::StatusOr<std::unique_ptr<RowWorker>> RowWorker::Create(int device) {
  MILLRACE_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  return std::unique_ptr<RowWorker>(
      new RowWorker(device, std::make_unique<State>(std::move(stream))));
}

absl::StatusOr<GatherOutcome> RowWorker::Gather(const FeatureColumn& column,
                                                std::span<const uint32_t> parts,
                                                std::span<const uint64_t> rows,
                                                std::byte* out) {
  CudaQueue& queue = state_->queue;
  const auto after_failure = [&]() -> absl::StatusOr<GatherOutcome> {
    if (!queue.failed() || queue.failure() == cudaErrorMemoryAllocation) {
      return GatherOutcome::kNoMemory;
    }
    return DeviceFailureStatus(queue.failure(), device_);
  };
  if (!state_->rows.Reserve(rows.size()) ||
      !state_->parts.Reserve(parts.size()) || !state_->tally.Reserve(1)) {
    return after_failure();
  }
  // If the sources are pinned, they are read until the wait below ends.
  WantedRows wanted = {.rows = state_->rows.data(), .count = rows.size()};
  queue.Upload(state_->rows.data(), rows.data(), rows.size_bytes());
  if (!parts.empty()) {
    wanted.parts = state_->parts.data();
    queue.Upload(state_->parts.data(), parts.data(), parts.size_bytes());
  }
  RowTally tally;
  queue.Upload(state_->tally.data(), &tally, sizeof tally);
  LaunchGather(column, wanted, out, state_->tally.data(), queue);
  if (!queue.Download(&tally, state_->tally.data(), sizeof tally)) {
    return after_failure();
  }
  state_->last = tally;
  return tally.trouble == 0 ? GatherOutcome::kDone : GatherOutcome::kBadRow;
}

uint64_t RowWorker::device_rows() const { return state_->last.device_rows; }
bool RowWorker::failed() const { return state_->queue.failed(); }

}  // namespace millrace::cuda
