// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/batch_source.h"
#include "common/sample/feature_rows.h"
#include "common/wire/stream_layout.h"

namespace millrace {

// The content of one array of a stream: memory that is ready, or rows that are
// gathered when their frame is made.
struct StreamPart {
  // Ready: the array's bytes, kept alive by `owner` until gRPC has sent them.
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;

  // Gathered: writes the ids of rows [first, first + ids.size()); for edge
  // features, their row numbers in `edge_part`.
  std::function<void(size_t first, std::span<uint64_t> ids)> ids;
  TypeIndex type = 0;
  NodeColumn column = NodeColumn::kFeature;
  RelationIndex edge_relation = -1;  // -1 for node rows
  int edge_part = 0;
};

// Where rows are gathered from. All must outlive those that use them.
struct RowPlaces {
  const Store& store;
  FeatureRows* features;  // null: the CPU reads them in the store
  // Counts the feature rows that the CPU reads.
  std::atomic<uint64_t>& cpu_rows;
};

// Cuts a stream into frames. Topology is borrowed; rows are copied once, into
// memory that the frame borrows. If features are read by a FeatureRows, that
// memory is its own, except of rows that are cast: these are copied once more.
// Not thread-safe.
class FrameSource {
 public:
  // `parts[i]` is the content of `layout.arrays[i]`. Rows are cast if their
  // dtype differs from the column's (CanCast must hold).
  FrameSource(const RowPlaces& places, StreamLayout layout,
              std::vector<StreamPart> parts);

  // Returns the next frame; nullopt at the end. Fails like GatherRows() and
  // FeatureRows.
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> Next();

  uint64_t total_bytes() const { return layout_.total_bytes; }

 private:
  // Gathered rows of which some do not fit into the current frame.
  struct Gathered {
    std::shared_ptr<const std::byte> owner;  // shared with frames in flight
    size_t bytes = 0;
    size_t taken = 0;
  };

  // Appends up to `room` bytes of the current array to `slices`. Returns how
  // many; 0 ends the frame, since frames end at row boundaries.
  absl::StatusOr<size_t> Add(size_t room, std::vector<::grpc::Slice>& slices);
  absl::Status GatherSome(const ArrayInfo& info, const StreamPart& part,
                          uint64_t at, size_t room);
  // Return the rows of ids_ in the form that they have on the wire.
  absl::StatusOr<std::shared_ptr<const std::byte>> Gather(
      const ArrayInfo& info, const StreamPart& part);
  absl::StatusOr<std::shared_ptr<const std::byte>> GatherFeatures(
      const ArrayInfo& info, const StreamPart& part);
  // Rows that the CPU reads.
  absl::Status GatherInto(const ArrayInfo& info, const StreamPart& part,
                          std::byte* out);

  const RowPlaces places_;
  const StreamLayout layout_;
  const std::vector<StreamPart> parts_;
  size_t current_ = 0;     // array
  uint64_t position_ = 0;  // bytes of the stream already framed
  bool started_ = false;
  Gathered gathered_;
  std::vector<uint64_t> ids_;      // scratch
  std::vector<std::byte> uncast_;  // scratch
};

}  // namespace millrace
