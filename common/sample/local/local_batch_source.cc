// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/local_batch_source.h"

#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/gather.h"
#include "common/sample/gather_columns.h"
#include "common/sample/local/mapped_edge_directory.h"
#include "common/sample/local/mapped_neighbor_source.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/negatives.h"
#include "common/sample/seeds/resolve_seeds.h"

namespace millrace {
namespace {

constexpr size_t kMaxQueuedFetches = 65536;

constexpr char kSmallerBatch[] = "use a smaller batch size or fanouts";

}  // namespace

LocalBatchSource::LocalBatchSource(std::shared_ptr<const Store> store,
                                   int threads,
                                   std::unique_ptr<TopologySampler> sampler,
                                   std::shared_ptr<FeatureRows> features)
    : store_(std::move(store)),
      split_seeds_(*store_),
      sampler_(std::move(sampler)),
      features_(std::move(features)),
      pool_("sample", threads, kMaxQueuedFetches) {}

LocalBatchSource::~LocalBatchSource() {
  closing_ = true;
  pool_.Close();
}

absl::StatusOr<std::unique_ptr<LocalBatchSource>> LocalBatchSource::Create(
    std::shared_ptr<const Store> store, int threads,
    std::unique_ptr<TopologySampler> sampler,
    std::shared_ptr<FeatureRows> features) {
  for (int part = 0; part < store->partition_count(); ++part) {
    if (store->partition(part) == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("partition ", part, " of ", store->path().string(),
                 " is not mapped in this process"));
    }
  }
  return std::unique_ptr<LocalBatchSource>(new LocalBatchSource(
      std::move(store), threads, std::move(sampler), std::move(features)));
}

absl::StatusOr<ResolvedSeeds> LocalBatchSource::FindSeeds(
    const ResolvedJob& job, const BatchRequest& request) const {
  if (!request.explicit_seeds.has_value()) {
    return split_seeds_.ReadBatch(job, request.epoch, request.batch);
  }
  const ExplicitSeeds& list = *request.explicit_seeds;
  MappedEdgeDirectory directory(*store_);
  MILLRACE_ASSIGN_OR_RETURN(
      ResolvedSeeds seeds,
      ResolveSeeds(job, manifest().schema, list, directory));
  if (NeedsSeedTimes(job, manifest().schema, list)) {
    seeds.times.resize(seeds.ids.size());
    MILLRACE_RETURN_IF_ERROR(
        GatherRows(*store_, job.seed_type, NodeColumn::kTime, seeds.ids,
                   reinterpret_cast<std::byte*>(seeds.times.data())));
  }
  return seeds;
}

absl::StatusOr<Batch> LocalBatchSource::SampleHops(
    const ResolvedJob& job, const BatchRequest& request,
    const ResolvedSeeds& seeds) const {
  const TopologyRequest topology = {
      request.epoch, request.batch, request.columns.edge_ids,
      request.columns.edge_features, request.memory.get()};
  if (sampler_ != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(
        std::optional<Batch> batch,
        sampler_->Sample(*store_, job, topology, seeds, /*reserve=*/nullptr));
    if (batch.has_value()) {
      hops_.AddDevice(job.hops);
      return *std::move(batch);
    }
  }
  hops_.AddHost(job.hops);
  MappedNeighborSource neighbors(*store_);
  return SampleTopology(job, manifest(), topology, seeds, neighbors);
}

absl::StatusOr<Batch> LocalBatchSource::Make(
    const ResolvedJob& job, const BatchRequest& request) const {
  const Columns& columns = request.columns;
  MILLRACE_RETURN_IF_ERROR(CheckColumns(columns, manifest().schema));
  MILLRACE_ASSIGN_OR_RETURN(ResolvedSeeds seeds, FindSeeds(job, request));
  MappedEdgeDirectory directory(*store_);
  MILLRACE_RETURN_IF_ERROR(DrawNegatives(job, manifest(), request.epoch,
                                         request.batch, directory, seeds));
  MILLRACE_ASSIGN_OR_RETURN(Batch batch, SampleHops(job, request, seeds));
  MILLRACE_RETURN_IF_ERROR(GatherColumns(
      *store_, job, columns, batch, {features_.get(), request.memory.get()}));
  if (features_ == nullptr) CountRows(batch);
  return batch;
}

void LocalBatchSource::CountRows(const Batch& batch) const {
  int64_t rows = 0;
  for (const NodeBlock& block : batch.nodes) rows += block.feature.rows();
  for (const EdgeBlock& block : batch.edges) rows += block.feature.rows();
  cpu_rows_ += static_cast<uint64_t>(rows);
}

std::optional<PlaceCounts> LocalBatchSource::counts() const {
  PlaceCounts counts;
  counts.hops = hops_.counts();
  if (features_ != nullptr) counts.rows = features_->counts();
  counts.rows.cpu += cpu_rows_;
  return counts;
}

// Turns std::bad_alloc into an error: an exception that escapes from a thread
// of the pool would end the process.
absl::StatusOr<Batch> LocalBatchSource::MakeWithinMemory(
    const ResolvedJob& job, const BatchRequest& request) const {
  try {
    return Make(job, request);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        StrCat("out of memory while making a batch\n", kSmallerBatch));
  }
}

void LocalBatchSource::Fetch(const ResolvedJob& job, BatchRequest request,
                             BatchCallback done) {
  const bool queued =
      pool_.TrySubmit([this, &job, request = std::move(request), done] {
        done(closing_ ? absl::CancelledError("the source was closed")
                      : MakeWithinMemory(job, request));
      });
  if (!queued) {
    done(absl::ResourceExhaustedError(
        StrCat("more than ", kMaxQueuedFetches,
               " batches are waiting\nprefetch fewer batches")));
  }
}

absl::StatusOr<Array> LocalBatchSource::Gather(TypeIndex type,
                                               NodeColumn column,
                                               std::span<const uint64_t> ids) {
  return GatherArray(*store_, type, column, ids, {features_.get()});
}

absl::StatusOr<std::vector<uint64_t>> LocalBatchSource::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  return ResolveIds(*store_, type, original_ids);
}

}  // namespace millrace
