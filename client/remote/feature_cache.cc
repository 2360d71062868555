// SPDX-License-Identifier: Apache-2.0
#include "client/remote/feature_cache.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "common/base/bytes_text.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/with_ids.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

// Maximum number of bytes per call. A CallGroup runs a few at a time: little
// compared with the calls of batches, and fast enough for their deadlines on
// slow networks.
constexpr uint64_t kMaxBytesPerCall = uint64_t{16} << 20;
// Maximum number of jobs of a source that may be waiting for different
// features.
constexpr size_t kMaxQueued = 1024;

uint64_t Sum(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

// The node types with features that batches of the job can contain.
std::vector<TypeIndex> TypesWithFeatures(const ResolvedJob& job,
                                         const Schema& schema) {
  std::vector<bool> reached(schema.node_types.size());
  const auto reach = [&](RelationIndex relation) {
    reached[schema.relations[relation].src] = true;
    reached[schema.relations[relation].dst] = true;
  };
  reached[job.seed_type] = true;
  if (job.seed_relation >= 0) reach(job.seed_relation);
  for (const RelationIndex relation : job.metapath) reach(relation);
  for (size_t r = 0; r < job.fanouts.size(); ++r) {
    const Fanouts& fanouts = job.fanouts[r];
    if (std::count(fanouts.begin(), fanouts.end(), 0) <
        static_cast<int64_t>(fanouts.size())) {
      reach(static_cast<RelationIndex>(r));
    }
  }
  std::vector<TypeIndex> types;
  for (size_t t = 0; t < reached.size(); ++t) {
    if (reached[t] && schema.node_types[t].feature.present()) {
      types.push_back(static_cast<TypeIndex>(t));
    }
  }
  return types;
}

// The row of the column that node `id` has; -1 if none is held.
int64_t PlaceOf(const PartitionBook& book, const CachedColumn& column,
                uint64_t id) {
  const int owner = book.Owner(id);
  const uint64_t at = id - book.begin(owner);
  if (at >= column.counts[owner]) return -1;
  return static_cast<int64_t>(column.first[owner] + at);
}

// Returns the number of rows copied.
template <typename Id>
uint64_t CopyHeld(const PartitionBook& book, const CachedColumn& column,
                  std::span<const Id> ids, Array& target) {
  const size_t row_bytes = column.rows.row_bytes();
  uint64_t copied = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t place = PlaceOf(book, column, ids[i]);
    if (place < 0) continue;
    std::memcpy(target.mutable_data() + i * row_bytes,
                column.rows.data() + static_cast<uint64_t>(place) * row_bytes,
                row_bytes);
    ++copied;
  }
  return copied;
}

// PlaceOf() of each of `ids`.
std::vector<int64_t> PlacesOf(const PartitionBook& book,
                              const CachedColumn& column, const Array& ids) {
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(ids.rows()));
  WithIds(ids, [&](const auto& all) {
    for (const uint64_t id : all) places.push_back(PlaceOf(book, column, id));
  });
  return places;
}

// Where to put `count` rows of a column that have been fetched, beginning with
// the `first`th: there if it is on the host, otherwise into memory of their
// own.
Array TargetOf(const CachedColumn& column, uint64_t first, uint64_t count) {
  std::vector<int64_t> shape = column.rows.shape();
  shape[0] = static_cast<int64_t>(count);
  const DType dtype = column.rows.dtype();
  if (!column.rows.on_host()) return Array::Allocate(dtype, std::move(shape));
  return Array::Borrow(dtype, std::move(shape),
                       column.rows.data() + first * column.rows.row_bytes(),
                       std::make_shared<const Array>(column.rows));
}

// A request for up to `max_rows` of the rows of a partition that `column` is to
// hold, beginning with the `from`th, and their positions in the column.
RowRequest RowsOfPart(const PartitionBook& book, const CachedColumn& column,
                      int partition, uint64_t from, uint64_t max_rows) {
  const uint64_t count = std::min(max_rows, column.counts[partition] - from);
  RowRequest request;
  request.partition = partition;
  request.ids.resize(count);
  std::iota(request.ids.begin(), request.ids.end(),
            book.begin(partition) + from);
  request.rows.resize(count);
  std::iota(request.rows.begin(), request.rows.end(), uint32_t{0});
  request.target = TargetOf(column, column.first[partition] + from, count);
  return request;
}

absl::Status TooMuch(double ratio, std::string_view why) {
  return FieldStatus(absl::StatusCode::kFailedPrecondition,
                     {.field = "cache_ratio",
                      .value = StrCat(ratio),
                      .limit = std::string(why)});
}

}  // namespace

std::vector<uint64_t> CachedFeatures::CountsOf(int partition) const {
  std::vector<uint64_t> counts;
  for (const auto& column : columns_) {
    counts.push_back(column == nullptr ? 0 : column->counts[partition]);
  }
  return counts;
}

bool CachedFeatures::Holds(TypeIndex type, int owner, uint64_t id) const {
  return columns_[type] != nullptr && id - manifest_.books[type].begin(owner) <
                                          columns_[type]->counts[owner];
}

void CachedFeatures::CopyRows(TypeIndex type, const Array& ids,
                              Array target) const {
  if (columns_[type] == nullptr) return;
  const PartitionBook& book = manifest_.books[type];
  WithIds(ids, [&](const auto& all) {
    Count(all.size(), CopyHeld(book, *columns_[type], all, target));
  });
}

void CachedFeatures::Count(uint64_t rows, uint64_t held) const {
  hits_ += held;
  misses_ += rows - held;
}

absl::Status CachedFeatures::MoveToDevice(Batch& batch) const {
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    NodeBlock& block = batch.nodes[t];
    const CachedColumn* column = columns_[t].get();
    if (column == nullptr || column->rows.rows() == 0 ||
        block.feature.total_bytes() == 0) {
      continue;
    }
    const std::vector<int64_t> places =
        PlacesOf(manifest_.books[t], *column, block.id);
    Count(places.size(), static_cast<uint64_t>(std::count_if(
                             places.begin(), places.end(),
                             [](int64_t place) { return place >= 0; })));
    MILLRACE_ASSIGN_OR_RETURN(
        block.feature,
        device_cache_->Merge(column->rows, places, block.feature));
  }
  return absl::OkStatus();
}

FeatureCache::FeatureCache(const Manifest& manifest, double ratio,
                           Gather gather,
                           std::shared_ptr<DeviceCache> device_cache)
    : manifest_(manifest),
      ratio_(ratio),
      gather_(std::move(gather)),
      device_cache_(std::move(device_cache)),
      thread_("features", 1, kMaxQueued) {}

CachedRowCounts FeatureCache::counts() const {
  CachedRowCounts all;
  MutexLock lock(&mutex_);
  for (const auto& [key, held] : held_) {
    if (held.features == nullptr) continue;
    const CachedRowCounts some = held.features->counts();
    all.hits += some.hits;
    all.misses += some.misses;
  }
  return all;
}

void FeatureCache::Get(const ResolvedJob& job, DType cast, Ready ready) {
  const CacheKey key = {cast, TypesWithFeatures(job, manifest_.schema)};
  std::shared_ptr<const CachedFeatures> features;
  bool first = false;
  {
    MutexLock lock(&mutex_);
    Held& held = held_[key];
    features = held.features;
    first = features == nullptr && held.waiting.empty();
    if (features == nullptr) held.waiting.push_back(ready);
  }
  if (features != nullptr) return ready(std::move(features));
  if (!first || thread_.TrySubmit([this, key] { End(key, Fetch(key)); })) {
    return;
  }
  End(key, absl::ResourceExhaustedError(
               StrCat("more than ", kMaxQueued,
                      " different jobs are waiting for their feature cache")));
}

void FeatureCache::End(
    const CacheKey& key,
    const absl::StatusOr<std::shared_ptr<const CachedFeatures>>& result) {
  std::vector<Ready> waiting;
  {
    MutexLock lock(&mutex_);
    Held& held = held_[key];
    waiting.swap(held.waiting);
    if (result.ok()) held.features = *result;
  }
  for (const Ready& ready : waiting) ready(result);
}

absl::StatusOr<std::shared_ptr<const CachedFeatures>> FeatureCache::Fetch(
    const CacheKey& key) {
  const auto column_key = [&](TypeIndex type) {
    return std::pair(type, WireFeature(manifest_.schema, type, key.cast).dtype);
  };
  std::vector<TypeIndex> missing;
  for (const TypeIndex type : key.types) {
    if (columns_.count(column_key(type)) == 0) missing.push_back(type);
  }
  if (!missing.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const Size size, SizeOf(missing, key.cast));
    Progress progress("feature cache", static_cast<int64_t>(size.rows), "rows");
    progress.SetNote(BytesText(size.bytes));
    for (const TypeIndex type : missing) {
      MILLRACE_ASSIGN_OR_RETURN(columns_[column_key(type)],
                                FetchColumn(type, key.cast, progress));
    }
    progress.Finish();
  }
  std::vector<std::shared_ptr<const CachedColumn>> columns(
      manifest_.schema.node_types.size());
  for (const TypeIndex type : key.types) {
    columns[type] = columns_[column_key(type)];
  }
  return std::make_shared<const CachedFeatures>(manifest_, std::move(columns),
                                                device_cache_);
}

// Rows and bytes that the features of the types take.
absl::StatusOr<FeatureCache::Size> FeatureCache::SizeOf(
    const std::vector<TypeIndex>& types, DType cast) const {
  Size size;
  for (const TypeIndex type : types) {
    const uint64_t rows = Sum(CountsOf(type));
    size.rows += rows;
    size.bytes += rows * WireFeature(manifest_.schema, type, cast).row_bytes();
  }
  MILLRACE_ASSIGN_OR_RETURN(const Limit limit, FindLimit());
  if (size.bytes <= limit.bytes) return size;
  return TooMuch(ratio_, StrCat("would hold ", size.rows, " rows of features, ",
                                BytesText(size.bytes), "; the limit is ",
                                limit.text, ", ", BytesText(limit.bytes)));
}

absl::StatusOr<FeatureCache::Limit> FeatureCache::FindLimit() const {
  if (device_cache_ == nullptr) {
    return Limit{AvailableMemoryBytes() / 2,
                 "half of the memory that is available now"};
  }
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t free, device_cache_->FreeBytes());
  return Limit{free / 10 * 9,
               StrCat("nine tenths of the memory that CUDA device ",
                      device_cache_->device(), " has free now")};
}

std::vector<uint64_t> FeatureCache::CountsOf(TypeIndex type) const {
  const PartitionBook& book = manifest_.books[type];
  std::vector<uint64_t> counts;
  for (int part = 0; part < book.partition_count(); ++part) {
    counts.push_back(HottestRows(ratio_, book.end(part) - book.begin(part)));
  }
  return counts;
}

// A column of a type, still without its rows.
absl::StatusOr<std::shared_ptr<CachedColumn>> FeatureCache::NewColumn(
    TypeIndex type, DType cast) const {
  const NodeType& nodes = manifest_.schema.node_types[type];
  if (!nodes.has_hotness) {
    LogWarning(LogComponent::kLoader,
               "nodes are not ordered by hotness, so the cache holds arbitrary "
               "rows\npartition the store again to order them",
               {{"type", nodes.name}});
  }
  const ColumnSpec spec = WireFeature(manifest_.schema, type, cast);
  auto column = std::make_shared<CachedColumn>();
  column->counts = CountsOf(type);
  column->first.resize(column->counts.size());
  std::exclusive_scan(column->counts.begin(), column->counts.end(),
                      column->first.begin(), uint64_t{0});
  std::vector<int64_t> shape =
      spec.ShapeOf(static_cast<int64_t>(Sum(column->counts)));
  if (device_cache_ == nullptr) {
    column->rows = Array::Allocate(spec.dtype, std::move(shape));
    return column;
  }
  absl::StatusOr<Array> rows =
      device_cache_->Allocate(spec.dtype, std::move(shape));
  if (absl::IsResourceExhausted(rows.status())) {
    return TooMuch(ratio_, FirstLine(rows.status()));
  }
  MILLRACE_RETURN_IF_ERROR(rows.status());
  column->rows = *std::move(rows);
  return column;
}

absl::StatusOr<std::shared_ptr<const CachedColumn>> FeatureCache::FetchColumn(
    TypeIndex type, DType cast, Progress& progress) const {
  const PartitionBook& book = manifest_.books[type];
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<CachedColumn> column,
                            NewColumn(type, cast));
  const std::vector<uint64_t>& counts = column->counts;
  const uint64_t row_bytes = std::max<uint64_t>(column->rows.row_bytes(), 1);
  const uint64_t piece =
      std::clamp<uint64_t>(kMaxBytesPerCall / row_bytes, 1, kMaxIdsPerCall);
  const uint64_t longest = *std::max_element(counts.begin(), counts.end());
  // Fetches one piece of every partition at a time.
  for (uint64_t from = 0; from < longest; from += piece) {
    std::vector<RowRequest> requests;
    std::vector<Piece> pieces;
    size_t rows = 0;
    for (int part = 0; part < book.partition_count(); ++part) {
      if (counts[part] <= from) continue;
      requests.push_back(RowsOfPart(book, *column, part, from, piece));
      requests.back().type = type;
      requests.back().feature_dtype = cast;
      rows += requests.back().ids.size();
      pieces.push_back({requests.back().target, column->first[part] + from});
    }
    MILLRACE_RETURN_IF_ERROR(gather_(std::move(requests)));
    MILLRACE_RETURN_IF_ERROR(Keep(pieces, *column));
    progress.Add(static_cast<int64_t>(rows));
  }
  return column;
}

// On the host they are in the column already.
absl::Status FeatureCache::Keep(const std::vector<Piece>& pieces,
                                CachedColumn& column) const {
  if (device_cache_ == nullptr) return absl::OkStatus();
  for (const Piece& piece : pieces) {
    MILLRACE_RETURN_IF_ERROR(device_cache_->Write(
        piece.rows, static_cast<int64_t>(piece.first), column.rows));
  }
  return absl::OkStatus();
}

}  // namespace millrace
