// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"

namespace millrace::testing {

// Forwards everything to another source. A function sees each request for a
// batch first and may refuse it.
// Threads: any, provided that the function may be called on any.
class WatchedSource final : public BatchSource {
 public:
  // Called by Fetch, which fails with the returned error, if any.
  using Watch =
      std::function<absl::Status(const ResolvedJob&, const BatchRequest&)>;

  WatchedSource(std::shared_ptr<BatchSource> source, Watch watch)
      : source_(std::move(source)), watch_(std::move(watch)) {}

  const Manifest& manifest() const override { return source_->manifest(); }
  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    absl::Status refused = watch_(job, request);
    if (!refused.ok()) return done(std::move(refused));
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
  const Watch watch_;
};

}  // namespace millrace::testing
