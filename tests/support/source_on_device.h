// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "tests/support/forwarding_source.h"
#include "tests/support/pretend_device.h"

namespace millrace::testing {

// Leaves the batches of another source on the pretend device, as far as GPUs
// leave theirs, for requests whose memory is on it. Threads: any.
class SourceOnDevice final : public ForwardingSource {
 public:
  explicit SourceOnDevice(std::shared_ptr<BatchSource> source)
      : ForwardingSource(std::move(source)) {}

  // Number of batches that were left there.
  int left() const { return left_; }

  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    if (request.memory == nullptr) {
      return ForwardingSource::Fetch(job, std::move(request), std::move(done));
    }
    ForwardingSource::Fetch(
        job, std::move(request),
        [this, done = std::move(done)](absl::StatusOr<Batch> batch) {
          if (batch.ok()) Move(*batch);
          done(std::move(batch));
        });
  }

 private:
  void Move(Batch& batch) {
    ++left_;
    for (NodeBlock& block : batch.nodes) {
      block.feature = CopyToPretendDevice(block.feature);
    }
    const Schema& schema = manifest().schema;
    for (size_t r = 0; r < batch.edges.size(); ++r) {
      const TypeIndex owner =
          ListOwnerType(schema.relations[r], batch.direction);
      Move(batch.nodes[owner].hop_offsets, batch.edges[r]);
    }
  }
  static void Move(std::span<const uint32_t> hop_offsets, EdgeBlock& block) {
    const std::span<const uint32_t> indptr = block.indptr.As<uint32_t>();
    if (indptr.empty()) return;
    for (const uint32_t rows : hop_offsets.first(hop_offsets.size() - 1)) {
      block.list_ends.push_back(indptr[rows]);
    }
    for (Array* array :
         {&block.indptr, &block.neighbor, &block.edge_id, &block.feature}) {
      *array = CopyToPretendDevice(*array);
    }
  }

  std::atomic<int> left_ = 0;
};

}  // namespace millrace::testing
