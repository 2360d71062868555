// SPDX-License-Identifier: Apache-2.0
// Groups edges by node in bounded memory. The edges of a range of consecutive
// nodes (a bucket) are collected in chunks, which are kept in memory until that
// is used up, and then in a scratch file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/ingest/edge_record.h"

namespace millrace {

// All entries of the lists of the nodes [begin, end), list after list. The
// entries of a list are in order of segment, and within a segment in the order
// in which they were appended.
struct EdgeGroup {
  EdgeLayout layout;
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<int64_t> starts;     // [end - begin + 1] first entry of each list
  std::vector<std::byte> records;  // packed

  EdgeRecord Edge(int64_t entry) const {
    return UnpackEdge(layout, Packed(entry));
  }
  // The features of an entry: layout.feature_width floats, not aligned.
  const std::byte* Features(int64_t entry) const {
    return Packed(entry) + layout.feature_offset();
  }

 private:
  const std::byte* Packed(int64_t entry) const {
    return records.data() + static_cast<size_t>(entry) * layout.record_bytes();
  }
};

// Append all edges, then call ForEachGroup() once. Not thread-safe.
// Needs 8 bytes of memory per node, `memory_bytes` for edges, and, in
// ForEachGroup(), one group of up to `group_bytes` (more only if a single list
// is longer).
class EdgeBuckets {
 public:
  struct Options {
    EdgeLayout layout;
    int64_t begin = 0;  // range of nodes
    int64_t end = 0;
    int segments = 1;
    uint64_t memory_bytes = 0;
    std::filesystem::path scratch_file;  // created once memory is used up
  };
  using GroupVisitor = std::function<absl::Status(const EdgeGroup&)>;

  explicit EdgeBuckets(Options options);
  // Removes the scratch file.
  ~EdgeBuckets();
  EdgeBuckets(const EdgeBuckets&) = delete;
  EdgeBuckets& operator=(const EdgeBuckets&) = delete;

  // `record.node` must be in the range. `features` is as for PackEdge(). Fails
  // with FileError() if the scratch file cannot be written.
  absl::Status Append(int segment, const EdgeRecord& record,
                      const float* features);

  // Sets a number to add to the edge ids of all records of `segment`. It may be
  // called after the last Append(), for offsets that are known only then.
  void SetIdOffset(int segment, int64_t offset) {
    id_offsets_[segment] = offset;
  }

  int64_t edge_count() const { return edge_count_; }

  // Visits all nodes, including those without edges, in groups of ascending
  // ids, and frees what has been visited. CANCELLED: interrupted. DATA_LOSS:
  // the scratch file cannot be read back. Also the errors of `visit`.
  absl::Status ForEachGroup(uint64_t group_bytes, const GroupVisitor& visit);

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> data;  // null if it is in the scratch file
    uint64_t file_offset = 0;
    size_t bytes = 0;
  };
  using ChunkVisitor = std::function<absl::Status(std::span<std::byte>)>;

  std::vector<Chunk>& chunks(int64_t bucket, int segment) {
    return chunks_[static_cast<size_t>(bucket) * id_offsets_.size() + segment];
  }
  int64_t BucketBegin(int64_t bucket) const;
  int64_t BucketRecords(int64_t bucket) const;
  absl::Status AddChunk(std::vector<Chunk>& chunks);
  absl::Status Spill();
  // Visits the records of a bucket, with their final edge ids, and frees them.
  absl::Status TakeBucket(int64_t bucket, const ChunkVisitor& visit);
  absl::Status SplitBucket(int64_t bucket, uint64_t group_bytes,
                           const GroupVisitor& visit);
  absl::Status LoadGroup(int64_t first_bucket, int64_t last_bucket,
                         EdgeGroup& group);

  const Options options_;
  const size_t record_bytes_;
  int64_t bucket_count_ = 0;
  int shift_ = 0;  // bucket = (node - begin) >> shift_
  size_t chunk_bytes_ = 0;
  std::vector<std::vector<Chunk>> chunks_;  // by bucket, segment
  std::vector<int64_t> id_offsets_;         // per segment
  std::vector<int64_t> degrees_;            // per node of the range
  int64_t edge_count_ = 0;
  uint64_t resident_bytes_ = 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  uint64_t file_bytes_ = 0;
};

}  // namespace millrace
