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

// What the receiver of a Sample stream asked for. What it refers to must
// outlive the assembler.
struct AssemblerRequest {
  const Manifest& manifest;
  const ResolvedJob& job;
  const BatchRequest& request;
  int home = 0;
  std::span<const uint64_t> cached_rows = {};  // see SelectRows()
  // A stream or batch of more bytes is refused.
  uint64_t max_bytes = uint64_t{4} << 30;
};

// Puts the byte string of a Sample stream into a batch: topology into its
// arrays, rows into their final places. Each byte is copied once.
// States: receiving topology -> topology_done() -> done().
// Not thread-safe. Once topology_done(), others may write the rows that this
// stream does not carry to the batch's arrays.
class BatchAssembler {
 public:
  // Checks the layout against the request, then allocates the topology.
  // INVALID_ARGUMENT: not an answer to the request; the message names the
  // array. OUT_OF_RANGE: larger than max_bytes. RESOURCE_EXHAUSTED: too little
  // memory.
  static absl::StatusOr<BatchAssembler> Create(const AssemblerRequest& request,
                                               StreamLayout layout);

  // Takes the next bytes of the byte string. INVALID_ARGUMENT: more bytes than
  // announced, or inconsistent topology (ids out of range, lists that leave
  // their array, ...). OUT_OF_RANGE: a batch of more than max_bytes.
  // RESOURCE_EXHAUSTED: too little memory for the batch's rows.
  absl::Status Write(std::span<const std::byte> bytes);

  // Whether ids and topology have arrived and passed all checks. If so, all
  // arrays of the batch are allocated; rows not received yet hold garbage.
  bool topology_done() const { return topology_done_; }
  bool done() const { return position_ == layout_.total_bytes; }
  uint64_t position() const { return position_; }  // bytes taken so far

  // The rows that this stream carries; valid once topology_done(). The receiver
  // must get all others from its cache or with Gather.
  const SentRows& rows() const { return rows_; }
  Batch& batch() { return batch_; }

 private:
  BatchAssembler(const AssemblerRequest& request, StreamLayout layout)
      : request_(request), layout_(std::move(layout)) {}

  absl::Status CheckArrays() const;
  absl::Status CheckLength(const ArrayInfo& info) const;
  absl::Status CheckSeedCount(const ArrayInfo& info) const;
  // Number of rows of an array of the layout, which must exist.
  int64_t RowCount(ArrayKind kind, int index) const;
  void AllocateTopology();
  absl::Status FinishTopology();
  absl::Status CheckTopology() const;
  absl::Status CheckRelation(RelationIndex relation) const;
  absl::Status CheckSeedRows() const;
  absl::Status CheckWalks() const;
  int64_t NodesOf(TypeIndex type) const;
  uint64_t TreeCount() const;      // of a disjoint job
  int64_t NegativeLength() const;  // of edge seeds; -1 if not known
  void TakeExplicitPairs(const ExplicitSeeds& seeds);
  // Rows of the whole array in the batch; -1 if the batch does not have it
  // (labels of a type without seeds).
  int64_t WholeLength(const ArrayInfo& info) const;
  absl::Status AllocateRows();
  // Writes `bytes` to the current array, starting at byte `at`.
  void WriteArray(uint64_t at, std::span<const std::byte> bytes);
  void WriteRows(uint64_t at, std::span<const std::byte> bytes);

  AssemblerRequest request_;
  StreamLayout layout_;
  Batch batch_;
  // Topology arrays by their position in the layout, until all have arrived.
  std::vector<Array> topology_;
  SentRows rows_;
  size_t current_ = 0;         // array that position_ is in or before
  uint64_t position_ = 0;      // number of bytes taken
  uint64_t topology_end_ = 0;  // first byte after the last topology array
  bool topology_done_ = false;
};

}  // namespace millrace
