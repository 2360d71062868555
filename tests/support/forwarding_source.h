// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"

namespace millrace::testing {

// Forwards everything to another source. Tests derive from it and change how
// batches are fetched. Threads: any.
class ForwardingSource : public BatchSource {
 public:
  explicit ForwardingSource(std::shared_ptr<BatchSource> source)
      : source_(std::move(source)) {}

  const Manifest& manifest() const override { return source_->manifest(); }
  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    source_->Fetch(job, std::move(request), std::move(done));
  }
  absl::StatusOr<Array> Gather(TypeIndex type, NodeColumn column,
                               std::span<const uint64_t> ids) override {
    return source_->Gather(type, column, ids);
  }
  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override {
    return source_->Resolve(type, original_ids);
  }

 private:
  const std::shared_ptr<BatchSource> source_;
};

}  // namespace millrace::testing
