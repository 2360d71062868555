// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/local_batch_source.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/owner_groups.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/gather.h"
#include "common/sample/seeds/edge_directory.h"
#include "common/sample/seeds/negatives.h"
#include "common/sample/seeds/resolve_seeds.h"

namespace millrace {
namespace {

constexpr size_t kMaxQueuedFetches = 65536;

constexpr char kSmallerBatch[] = "use a smaller batch size or fanouts";

// What a pick takes at least: the neighbour's id, and its place in the batch.
constexpr uint64_t kBytesPerPick = 12;
constexpr uint64_t kManyPicks = 1 << 22;

// Draws from whichever partition owns a node; all are mapped.
class MappedNeighborSource final : public NeighborSource {
 public:
  explicit MappedNeighborSource(const Store& store) : store_(store) {}

  absl::Status Expand(const DrawContext& context,
                      std::span<const Frontier> frontiers,
                      std::span<Picks> picks) override {
    for (size_t i = 0; i < frontiers.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(CheckHop(context, frontiers[i]));
      MILLRACE_RETURN_IF_ERROR(ExpandOne(context, frontiers[i], picks[i]));
    }
    return absl::OkStatus();
  }

  absl::Status Reserve(uint64_t bytes) override {
    return CheckMemory("a batch of walks", bytes,
                       "use a smaller batch size, or fewer or shorter walks");
  }

 private:
  // Where the picks may be many, they are counted before they are drawn.
  absl::Status CheckHop(const DrawContext& context,
                        const Frontier& frontier) const {
    const auto edges = static_cast<uint64_t>(
        store_.schema().relations[frontier.relation].edge_count);
    const uint64_t most =
        frontier.fanout == kAllNeighbors
            ? edges * (frontier.trees.empty() ? 1 : frontier.ids.size())
            : frontier.ids.size() * static_cast<uint64_t>(frontier.fanout);
    if (most < kManyPicks) return absl::OkStatus();
    const uint64_t picks = CountPicks(context, frontier);
    return CheckMemory(
        StrCat("hop ", context.hop + 1, " of a batch with ", picks,
               " neighbours of ", frontier.ids.size(), " nodes"),
        picks * kBytesPerPick, kSmallerBatch);
  }

  // At most, where lists hold entries that are too late or excluded.
  uint64_t CountPicks(const DrawContext& context,
                      const Frontier& frontier) const {
    const Relation& relation = store_.schema().relations[frontier.relation];
    const PartitionBook& book =
        store_.book(ListOwnerType(relation, context.direction));
    uint64_t picks = 0;
    for (const uint64_t id : frontier.ids) {
      const int owner = book.Owner(id);
      const auto indptr = store_.partition(owner)
                              ->edges[frontier.relation]
                              .lists(context.direction)
                              .indptr.As<int64_t>();
      const size_t row = id - book.begin(owner);
      // The draw reports damaged lists.
      if (row + 1 >= indptr.size() || indptr[row] < 0 ||
          indptr[row + 1] <= indptr[row] ||
          indptr[row + 1] > relation.edge_count) {
        continue;
      }
      const auto degree = static_cast<uint64_t>(indptr[row + 1] - indptr[row]);
      const auto fanout = static_cast<uint64_t>(frontier.fanout);
      if (frontier.fanout == kAllNeighbors) {
        picks += degree;
      } else {
        picks += context.replace ? fanout : std::min(degree, fanout);
      }
    }
    return picks;
  }

  absl::Status ExpandOne(const DrawContext& context, const Frontier& frontier,
                         Picks& picks) {
    const Relation& relation = store_.schema().relations[frontier.relation];
    const PartitionBook& book =
        store_.book(ListOwnerType(relation, context.direction));
    // Runs of nodes with one owner are drawn together.
    size_t begin = 0;
    while (begin < frontier.ids.size()) {
      const int owner = book.Owner(frontier.ids[begin]);
      size_t end =
          book.partition_count() == 1 ? frontier.ids.size() : begin + 1;
      while (end < frontier.ids.size() &&
             book.Owner(frontier.ids[end]) == owner) {
        ++end;
      }
      MILLRACE_RETURN_IF_ERROR(DrawNeighbors(
          store_, owner, context, frontier.Part(begin, end - begin), picks));
      begin = end;
    }
    return absl::OkStatus();
  }

  const Store& store_;
};

// Looks into whichever partition owns a node; all are mapped.
class MappedEdgeDirectory final : public EdgeDirectory {
 public:
  explicit MappedEdgeDirectory(const Store& store) : store_(store) {}

  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override {
    return ResolveIds(store_, type, original_ids);
  }

  absl::StatusOr<std::vector<uint8_t>> HasEdges(
      RelationIndex relation, std::span<const uint64_t> src,
      std::span<const uint64_t> dst) override {
    const Relation& info = store_.schema().relations[relation];
    const Direction direction = LookupDirection(info);
    const PartitionBook& book = store_.book(ListOwnerType(info, direction));
    const std::span<const uint64_t> owners =
        direction == Direction::kIn ? dst : src;
    std::vector<uint8_t> found(src.size());
    CancelPoller poller;
    for (const OwnerGroup& group :
         GroupByOwner(src.size(), store_.partition_count(),
                      [&](size_t i) { return book.Owner(owners[i]); })) {
      const std::vector<uint64_t> own_src = TakeAt(src, group.places);
      const std::vector<uint64_t> own_dst = TakeAt(dst, group.places);
      MILLRACE_ASSIGN_OR_RETURN(
          const std::vector<uint8_t> own,
          FindEdges(store_, group.partition, {relation, own_src, own_dst},
                    poller));
      PutAt<uint8_t>(own, group.places, found);
    }
    return found;
  }

 private:
  const Store& store_;
};

}  // namespace

LocalBatchSource::LocalBatchSource(std::shared_ptr<const Store> store,
                                   int threads)
    : store_(std::move(store)),
      split_seeds_(*store_),
      pool_("sample", threads, kMaxQueuedFetches) {}

LocalBatchSource::~LocalBatchSource() {
  closing_ = true;
  pool_.Close();
}

absl::StatusOr<std::unique_ptr<LocalBatchSource>> LocalBatchSource::Create(
    std::shared_ptr<const Store> store, int threads) {
  for (int part = 0; part < store->partition_count(); ++part) {
    if (store->partition(part) == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("partition ", part, " of ", store->path().string(),
                 " is not open in this process"));
    }
  }
  return std::unique_ptr<LocalBatchSource>(
      new LocalBatchSource(std::move(store), threads));
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

absl::StatusOr<Batch> LocalBatchSource::Make(
    const ResolvedJob& job, const BatchRequest& request) const {
  const Columns& columns = request.columns;
  MILLRACE_RETURN_IF_ERROR(CheckColumns(columns, manifest().schema));
  MILLRACE_ASSIGN_OR_RETURN(ResolvedSeeds seeds, FindSeeds(job, request));
  MappedEdgeDirectory directory(*store_);
  MILLRACE_RETURN_IF_ERROR(DrawNegatives(job, manifest(), request.epoch,
                                         request.batch, directory, seeds));
  MappedNeighborSource source(*store_);
  MILLRACE_ASSIGN_OR_RETURN(
      Batch batch, SampleTopology(job, manifest(),
                                  {request.epoch, request.batch,
                                   columns.edge_ids, columns.edge_features},
                                  seeds, source));
  MILLRACE_RETURN_IF_ERROR(GatherColumns(*store_, columns, batch));
  return batch;
}

// What a thread of the pool does not catch ends the process.
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
  // std::function must be copyable, hence the shared callback.
  auto shared_done = std::make_shared<BatchCallback>(std::move(done));
  const bool queued =
      pool_.TrySubmit([this, &job, request = std::move(request), shared_done] {
        (*shared_done)(closing_ ? absl::CancelledError("the source was closed")
                                : MakeWithinMemory(job, request));
      });
  if (!queued) {
    (*shared_done)(absl::ResourceExhaustedError(
        StrCat("more than ", kMaxQueuedFetches,
               " batches are waiting\nprefetch fewer batches")));
  }
}

absl::StatusOr<Array> LocalBatchSource::Gather(TypeIndex type,
                                               NodeColumn column,
                                               std::span<const uint64_t> ids) {
  const ColumnSpec spec = ColumnOf(manifest().schema, type, column);
  std::vector<int64_t> shape = {static_cast<int64_t>(ids.size())};
  shape.insert(shape.end(), spec.row_shape.begin(), spec.row_shape.end());
  Array rows = Array::Allocate(spec.present() ? spec.dtype : DType::kUint8,
                               std::move(shape));
  MILLRACE_RETURN_IF_ERROR(
      GatherRows(*store_, type, column, ids, rows.mutable_data()));
  return rows;
}

absl::StatusOr<std::vector<uint64_t>> LocalBatchSource::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  return ResolveIds(*store_, type, original_ids);
}

}  // namespace millrace
