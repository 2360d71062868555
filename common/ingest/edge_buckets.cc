// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/edge_buckets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxBuckets = 256;
constexpr uint64_t kMinBuckets = 4;
constexpr uint64_t kMaxChunkBytes = 64 << 10;
// Small buckets are sorted together up to this size, which is about the size of
// a CPU's caches.
constexpr uint64_t kMergedBytes = 8 << 20;

}  // namespace

EdgeBuckets::EdgeBuckets(Options options)
    : options_(std::move(options)),
      record_bytes_(options_.layout.record_bytes()),
      id_offsets_(static_cast<size_t>(options_.segments), 0),
      degrees_(static_cast<size_t>(options_.end - options_.begin), 0),
      file_(nullptr, &std::fclose) {
  const auto nodes = static_cast<int64_t>(degrees_.size());
  const auto wanted = static_cast<int64_t>(std::clamp(
      options_.memory_bytes / (4 * kMaxChunkBytes), kMinBuckets, kMaxBuckets));
  while ((nodes >> shift_) >= wanted) ++shift_;
  bucket_count_ = nodes == 0 ? 0 : ((nodes - 1) >> shift_) + 1;
  chunks_.resize(static_cast<size_t>(bucket_count_) * id_offsets_.size());
  // Chunks that are not full yet must not use up all of the memory.
  const uint64_t share =
      options_.memory_bytes / (4 * std::max<size_t>(chunks_.size(), 1));
  const uint64_t records = std::min(share, kMaxChunkBytes) / record_bytes_;
  chunk_bytes_ = std::max<uint64_t>(records, 1) * record_bytes_;
}

EdgeBuckets::~EdgeBuckets() {
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(options_.scratch_file, ignored);
}

absl::Status EdgeBuckets::Append(int segment, const EdgeRecord& record,
                                 const float* features) {
  const int64_t node = record.node - options_.begin;
  std::vector<Chunk>& list = chunks(node >> shift_, segment);
  if (list.empty() || list.back().bytes == chunk_bytes_) {
    MILLRACE_RETURN_IF_ERROR(AddChunk(list));
  }
  Chunk& chunk = list.back();
  PackEdge(options_.layout, record, features, chunk.data.get() + chunk.bytes);
  chunk.bytes += record_bytes_;
  ++degrees_[node];
  ++edge_count_;
  return absl::OkStatus();
}

absl::Status EdgeBuckets::AddChunk(std::vector<Chunk>& list) {
  if (resident_bytes_ + chunk_bytes_ > options_.memory_bytes) {
    MILLRACE_RETURN_IF_ERROR(Spill());
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  }
  Chunk& chunk = list.emplace_back();
  chunk.data = std::make_unique_for_overwrite<std::byte[]>(chunk_bytes_);
  resident_bytes_ += chunk_bytes_;
  return absl::OkStatus();
}

// Writes all full chunks to the scratch file and frees them.
absl::Status EdgeBuckets::Spill() {
  if (file_ == nullptr) {
    file_.reset(std::fopen(options_.scratch_file.c_str(), "w+b"));
    if (file_ == nullptr) {
      return FileError("create", options_.scratch_file, errno);
    }
  }
  for (std::vector<Chunk>& list : chunks_) {
    for (auto chunk = list.rbegin(); chunk != list.rend(); ++chunk) {
      if (chunk->bytes < chunk_bytes_) continue;
      if (chunk->data == nullptr) break;  // earlier chunks are in the file too
      if (std::fwrite(chunk->data.get(), 1, chunk->bytes, file_.get()) !=
          chunk->bytes) {
        return FileError("write", options_.scratch_file, errno);
      }
      chunk->file_offset = file_bytes_;
      file_bytes_ += chunk->bytes;
      chunk->data.reset();
      resident_bytes_ -= chunk_bytes_;
    }
  }
  return absl::OkStatus();
}

int64_t EdgeBuckets::BucketBegin(int64_t bucket) const {
  return std::min(options_.begin + (bucket << shift_), options_.end);
}

int64_t EdgeBuckets::BucketRecords(int64_t bucket) const {
  const auto nodes = degrees_.begin();
  return std::accumulate(nodes + (BucketBegin(bucket) - options_.begin),
                         nodes + (BucketBegin(bucket + 1) - options_.begin),
                         int64_t{0});
}

absl::Status EdgeBuckets::TakeBucket(int64_t bucket,
                                     const ChunkVisitor& visit) {
  const int segments = static_cast<int>(id_offsets_.size());
  std::vector<std::byte> buffer(chunk_bytes_);
  for (int segment = 0; segment < segments; ++segment) {
    std::vector<Chunk> list = std::move(chunks(bucket, segment));
    for (Chunk& chunk : list) {
      std::byte* data = chunk.data.get();
      if (data == nullptr) {
        data = buffer.data();
        if (fseeko(file_.get(), static_cast<off_t>(chunk.file_offset),
                   SEEK_SET) != 0 ||
            std::fread(data, 1, chunk.bytes, file_.get()) != chunk.bytes) {
          return absl::DataLossError(
              StrCat(options_.scratch_file.string(), ": reading back failed"));
        }
      } else {
        resident_bytes_ -= chunk_bytes_;
      }
      const size_t id_position = options_.layout.wide ? 16 : 8;
      for (size_t at = id_position; at < chunk.bytes; at += record_bytes_) {
        int64_t id;
        std::memcpy(&id, data + at, sizeof(id));
        id += id_offsets_[segment];
        std::memcpy(data + at, &id, sizeof(id));
      }
      MILLRACE_RETURN_IF_ERROR(visit({data, chunk.bytes}));
      chunk.data.reset();
    }
  }
  return CheckInterrupted();
}

absl::Status EdgeBuckets::SplitBucket(int64_t bucket, uint64_t group_bytes,
                                      const GroupVisitor& visit) {
  Options options = options_;
  options.begin = BucketBegin(bucket);
  options.end = BucketBegin(bucket + 1);
  options.segments = 1;
  options.scratch_file += ".split";
  EdgeBuckets smaller(std::move(options));
  MILLRACE_RETURN_IF_ERROR(TakeBucket(bucket, [&](std::span<std::byte> packed) {
    std::vector<float> features(
        static_cast<size_t>(options_.layout.feature_width));
    for (size_t at = 0; at < packed.size(); at += record_bytes_) {
      const std::byte* record = packed.data() + at;
      if (!features.empty()) {
        std::memcpy(features.data(), record + options_.layout.feature_offset(),
                    features.size() * sizeof(float));
      }
      MILLRACE_RETURN_IF_ERROR(smaller.Append(
          0, UnpackEdge(options_.layout, record), features.data()));
    }
    return absl::OkStatus();
  }));
  return smaller.ForEachGroup(group_bytes, visit);
}

// Sorts the buckets [first, last) into one group by a counting sort.
absl::Status EdgeBuckets::LoadGroup(int64_t first, int64_t last,
                                    EdgeGroup& group) {
  group.layout = options_.layout;
  group.begin = BucketBegin(first);
  group.end = BucketBegin(last);
  const auto nodes = static_cast<size_t>(group.end - group.begin);
  group.starts.assign(nodes + 1, 0);
  const int64_t* degrees = degrees_.data() + (group.begin - options_.begin);
  std::partial_sum(degrees, degrees + nodes, group.starts.begin() + 1);
  group.records.resize(static_cast<size_t>(group.starts.back()) *
                       record_bytes_);
  std::vector<int64_t> next(group.starts.begin(), group.starts.end() - 1);
  for (int64_t bucket = first; bucket < last; ++bucket) {
    MILLRACE_RETURN_IF_ERROR(
        TakeBucket(bucket, [&](std::span<std::byte> packed) {
          for (size_t at = 0; at < packed.size(); at += record_bytes_) {
            const std::byte* record = packed.data() + at;
            const int64_t node = PackedNode(options_.layout, record);
            const int64_t entry = next[node - group.begin]++;
            std::memcpy(group.records.data() +
                            static_cast<size_t>(entry) * record_bytes_,
                        record, record_bytes_);
          }
          return absl::OkStatus();
        }));
  }
  return absl::OkStatus();
}

absl::Status EdgeBuckets::ForEachGroup(uint64_t group_bytes,
                                       const GroupVisitor& visit) {
  if (file_ != nullptr && std::fflush(file_.get()) != 0) {
    return FileError("write", options_.scratch_file, errno);
  }
  EdgeGroup group;
  const uint64_t merged_bytes = std::min(group_bytes, kMergedBytes);
  for (int64_t first = 0; first < bucket_count_;) {
    int64_t last = first;
    uint64_t bytes = 0;
    while (last < bucket_count_) {
      const auto records = static_cast<uint64_t>(BucketRecords(last));
      if (last > first && bytes + records * record_bytes_ > merged_bytes) break;
      bytes += records * record_bytes_;
      ++last;
    }
    const bool one_node = BucketBegin(last) - BucketBegin(first) == 1;
    if (bytes > group_bytes && !one_node) {
      // Buckets are merged only up to group_bytes, so this is a single one.
      MILLRACE_RETURN_IF_ERROR(SplitBucket(first, group_bytes, visit));
    } else {
      MILLRACE_RETURN_IF_ERROR(LoadGroup(first, last, group));
      MILLRACE_RETURN_IF_ERROR(visit(group));
    }
    first = last;
  }
  return absl::OkStatus();
}

}  // namespace millrace
