// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/remote/cached_row_counts.h"
#include "client/remote/device_cache.h"
#include "client/remote/row_call.h"
#include "common/base/array.h"
#include "common/base/mutex.h"
#include "common/base/progress.h"
#include "common/base/thread_pool.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"

namespace millrace {

// The feature rows of a node type that a client holds: for each partition those
// at the start of its range, which are its hottest.
struct CachedColumn {
  std::vector<uint64_t> counts;  // per partition
  std::vector<uint64_t> first;   // each partition's first row in `rows`
  Array rows;                    // on the host, or all columns on one GPU
};

// The feature rows of a graph that a client holds. Immutable, except that it
// counts what is asked for. Threads: any.
class CachedFeatures {
 public:
  // `columns`: per node type; null if no rows are held. `device_cache` has
  // those on a GPU; null if they are on the host.
  CachedFeatures(const Manifest& manifest,
                 std::vector<std::shared_ptr<const CachedColumn>> columns,
                 std::shared_ptr<DeviceCache> device_cache = nullptr)
      : manifest_(manifest),
        columns_(std::move(columns)),
        device_cache_(std::move(device_cache)) {}

  // Whether the rows are on the host, so that CopyRows() provides them;
  // otherwise MoveToDevice() does.
  bool on_host() const { return device_cache_ == nullptr; }

  // Per node type, how many rows of `partition` are held.
  std::vector<uint64_t> CountsOf(int partition) const;
  // Whether the row of `id`, which partition `owner` owns, is held.
  bool Holds(TypeIndex type, int owner, uint64_t id) const;
  // Copies the rows of `ids` that are held to their positions in `target`.
  void CopyRows(TypeIndex type, const Array& ids, Array target) const;
  // Replaces the features of a batch, which has all rows that are not held, by
  // arrays on the GPU with all rows. Features of types without held rows stay
  // where they are. Blocks. Fails like DeviceCache::Merge().
  absl::Status MoveToDevice(Batch& batch) const;

  // The rows of all calls of CopyRows() and MoveToDevice() so far, for types
  // with held rows.
  CachedRowCounts counts() const { return {hits_, misses_}; }

 private:
  void Count(uint64_t rows, uint64_t held) const;

  const Manifest& manifest_;
  const std::vector<std::shared_ptr<const CachedColumn>> columns_;
  const std::shared_ptr<DeviceCache> device_cache_;
  mutable std::atomic<uint64_t> hits_ = 0;
  mutable std::atomic<uint64_t> misses_ = 0;
};

// Fetches the hottest share of the feature rows, once per node type and wire
// dtype, and provides it to the makers of batches.
// States of a column: absent -> being fetched -> held for good.
// Threads: any; rows are fetched on the cache's own thread.
class FeatureCache {
 public:
  // Fetches rows into their targets; blocks. Called by one thread at a time.
  using Gather = std::function<absl::Status(std::vector<RowRequest>)>;
  using Ready = std::function<void(
      absl::StatusOr<std::shared_ptr<const CachedFeatures>>)>;

  // `ratio`: share of each partition's rows, above 0. `device_cache` keeps the
  // rows, and is shared with those who use them; null for memory of the host.
  // `manifest` must outlive the cache.
  FeatureCache(const Manifest& manifest, double ratio, Gather gather,
               std::shared_ptr<DeviceCache> device_cache = nullptr);
  // Calls Close().
  ~FeatureCache() { Close(); }

  // Runs `ready` once the features of all node types that batches of `job` can
  // contain are held with dtype `cast`: either before this returns or on the
  // cache's thread. If a fetch fails, all callers waiting for it get the error;
  // a later call tries again.
  // FAILED_PRECONDITION: they need more than half of the host's memory that is
  // available, or nine tenths of the GPU's.
  // Also errors of `gather` and of DeviceCache.
  void Get(const ResolvedJob& job, DType cast, Ready ready);

  // The rows of all batches so far.
  CachedRowCounts counts() const;

  // Waiting callers get what has been fetched when `gather` returns, or
  // CANCELLED. Do not call Get() afterwards. Idempotent.
  void Close() { thread_.Close(); }

 private:
  struct CacheKey {
    DType cast;
    std::vector<TypeIndex> types;
    friend auto operator<=>(const CacheKey&, const CacheKey&) = default;
  };
  struct Held {
    std::shared_ptr<const CachedFeatures> features;  // shared with batches
    std::vector<Ready> waiting;  // not empty while being fetched
  };

  struct Size {
    uint64_t rows = 0;
    uint64_t bytes = 0;
  };
  struct Limit {
    uint64_t bytes = 0;
    std::string text;  // what it is
  };
  // Rows that have been fetched, and where they belong in their column.
  struct Piece {
    Array rows;
    uint64_t first = 0;
  };

  absl::StatusOr<std::shared_ptr<const CachedFeatures>> Fetch(
      const CacheKey& key);
  // Passes the result to all waiting callers.
  void End(const CacheKey& key,
           const absl::StatusOr<std::shared_ptr<const CachedFeatures>>& result);
  absl::StatusOr<Size> SizeOf(const std::vector<TypeIndex>& types,
                              DType cast) const;
  absl::StatusOr<Limit> FindLimit() const;
  absl::StatusOr<std::shared_ptr<CachedColumn>> NewColumn(TypeIndex type,
                                                          DType cast) const;
  absl::StatusOr<std::shared_ptr<const CachedColumn>> FetchColumn(
      TypeIndex type, DType cast, Progress& progress) const;
  absl::Status Keep(const std::vector<Piece>& pieces,
                    CachedColumn& column) const;
  std::vector<uint64_t> CountsOf(TypeIndex type) const;

  const Manifest& manifest_;
  const double ratio_;
  const Gather gather_;
  const std::shared_ptr<DeviceCache> device_cache_;

  mutable Mutex mutex_;
  std::map<CacheKey, Held> held_ ABSL_GUARDED_BY(mutex_);
  // By type and wire dtype. Used only by the thread.
  std::map<std::pair<TypeIndex, DType>, std::shared_ptr<const CachedColumn>>
      columns_;
  ThreadPool thread_;  // last: uses all of the above
};

}  // namespace millrace
