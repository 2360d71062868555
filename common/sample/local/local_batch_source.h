// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"
#include "common/graph/store.h"
#include "common/sample/batch_source.h"
#include "common/sample/feature_rows.h"
#include "common/sample/hop_counter.h"
#include "common/sample/seeds/split_seed_reader.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// Makes batches from partitions that are all mapped in this process, without
// RPCs. Used in worker mode, and as the reference in comparisons with a fleet.
class LocalBatchSource final : public BatchSource {
 public:
  // `store` must have all partitions mapped. `threads` >= 1 workers make
  // batches; one batch is made by one thread. `sampler` samples `store`, and
  // `features`, shared with whoever asks for its counts, reads features; the
  // CPU does what is null.
  // FAILED_PRECONDITION: a partition is not mapped.
  static absl::StatusOr<std::unique_ptr<LocalBatchSource>> Create(
      std::shared_ptr<const Store> store, int threads,
      std::unique_ptr<TopologySampler> sampler = nullptr,
      std::shared_ptr<FeatureRows> features = nullptr);
  ~LocalBatchSource() override;

  const Manifest& manifest() const override { return store_->manifest(); }
  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override;
  absl::StatusOr<Array> Gather(TypeIndex type, NodeColumn column,
                               std::span<const uint64_t> ids) override;
  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override;

  std::optional<PlaceCounts> counts() const override;

  // Makes one batch in the calling thread.
  absl::StatusOr<Batch> Make(const ResolvedJob& job,
                             const BatchRequest& request) const;

 private:
  LocalBatchSource(std::shared_ptr<const Store> store, int threads,
                   std::unique_ptr<TopologySampler> sampler,
                   std::shared_ptr<FeatureRows> features);
  absl::StatusOr<ResolvedSeeds> FindSeeds(const ResolvedJob& job,
                                          const BatchRequest& request) const;
  absl::StatusOr<Batch> SampleHops(const ResolvedJob& job,
                                   const BatchRequest& request,
                                   const ResolvedSeeds& seeds) const;
  void CountRows(const Batch& batch) const;
  absl::StatusOr<Batch> MakeWithinMemory(const ResolvedJob& job,
                                         const BatchRequest& request) const;

  const std::shared_ptr<const Store> store_;  // shared with its opener
  const SplitSeedReader split_seeds_;
  const std::unique_ptr<TopologySampler> sampler_;  // null: the CPU samples
  const std::shared_ptr<FeatureRows> features_;     // null: the CPU reads them
  mutable HopCounter hops_;
  mutable std::atomic<uint64_t> cpu_rows_ =
      0;  // feature rows read without features_
  std::atomic<bool> closing_ = false;
  ThreadPool pool_;
};

}  // namespace millrace
