// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/wire/batch_layout.h"
#include "common/wire/stream_layout.h"

namespace millrace {

// What the receiver of a Sample stream asked for. Views; they must outlive
// the assembler.
struct AssemblerRequest {
  const Manifest& manifest;
  const ResolvedJob& job;
  const BatchRequest& request;
  int home = 0;
  std::span<const uint64_t> cached_rows = {};
  // A stream that announces more, or a batch that would need more, is
  // refused.
  uint64_t max_bytes = uint64_t{4} << 30;
};

// Puts the byte string of a Sample stream where it belongs: topology into the
// batch's arrays, rows into their final place, each byte copied once.
// States: receiving topology -> topology_done() -> done().
// Threads: one at a time, except that other rows may be written to
// batch().nodes[..] arrays by others once topology_done().
class BatchAssembler {
 public:
  // Checks the layout against what was asked for, then allocates topology.
  // INVALID_ARGUMENT: not an answer to the request (names the array).
  // FAILED_PRECONDITION: larger than max_bytes.
  static absl::StatusOr<BatchAssembler> Create(const AssemblerRequest& request,
                                               StreamLayout layout);

  // Takes the next bytes of the byte string. INVALID_ARGUMENT: more than
  // announced, or topology that contradicts itself (ids beyond their range,
  // lists that leave their array, ...).
  absl::Status Write(std::span<const std::byte> bytes);

  // Ids and topology have arrived and are checked; all arrays of the batch
  // are allocated, rows not sent yet hold garbage.
  bool topology_done() const { return topology_done_; }
  bool done() const { return position_ == layout_.total_bytes; }
  uint64_t position() const { return position_; }

  // The rows this stream carries; valid once topology_done(). All others the
  // receiver must get from its cache or with Gather.
  const SentRows& rows() const { return rows_; }
  Batch& batch() { return batch_; }
  const StreamLayout& layout() const { return layout_; }

 private:
  BatchAssembler(const AssemblerRequest& request, StreamLayout layout)
      : request_(request), layout_(std::move(layout)) {}

  absl::Status CheckArrays() const;
  absl::Status CheckLength(const ArrayInfo& info) const;
  absl::Status CheckSeedCount(const ArrayInfo& info) const;
  // Rows of the array of this kind; it must be there.
  int64_t RowCount(ArrayKind kind, int index) const;
  void AllocateTopology();
  absl::Status FinishTopology();
  absl::Status CheckTopology() const;
  absl::Status CheckRelation(RelationIndex relation) const;
  absl::Status CheckSeedRows() const;
  absl::Status CheckWalks() const;
  int64_t NodesOf(TypeIndex type) const;
  uint64_t TreeCount() const;      // disjoint jobs
  int64_t NegativeLength() const;  // of edge seeds; -1: not known
  void TakeExplicitPairs(const SeedList& seeds);
  // Rows of the whole array; -1: there is none (labels of a type without
  // seeds).
  int64_t WholeLength(const ArrayInfo& info) const;
  absl::Status AllocateRows();
  // Writes bytes of the current array.
  void WriteArray(uint64_t at, std::span<const std::byte> bytes);
  void WriteRows(uint64_t at, std::span<const std::byte> bytes);

  AssemblerRequest request_;
  StreamLayout layout_;
  Batch batch_;
  // Arrays of topology by their place in the layout, until all have arrived.
  std::vector<Array> topology_;
  SentRows rows_;
  size_t current_ = 0;         // array that `position_` is in or before
  uint64_t position_ = 0;      // bytes taken
  uint64_t topology_end_ = 0;  // first byte after the last topology array
  bool topology_done_ = false;
};

}  // namespace millrace
