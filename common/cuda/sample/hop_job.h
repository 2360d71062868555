// SPDX-License-Identifier: Apache-2.0
// Input and output of HopSampler (hop_sampler.cuh), for code that nvcc does not
// compile.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/graph/device_lists.h"
#include "common/cuda/sample/hop_filter.h"
#include "common/sample/draw/draw_domain.h"
#include "common/sample/draw_rule.h"

namespace millrace::cuda {

// The largest fanout that kernels draw: picks of a node must fit into the
// shared memory of a block.
inline constexpr int32_t kMaxDeviceFanout = 1024;

// What became of a batch.
enum class HopOutcome {
  kMade,
  kTrouble,   // make it on the CPU, which says what is wrong
  kNoMemory,  // of the device
  kFailed,    // the queue has failed, and says why
};

// Seeds of one type; local ids are given in the order of the lists.
struct SeedNodes {
  int type = 0;
  std::span<const uint64_t> ids;
  std::span<const uint32_t> trees;  // parallel to ids; empty unless disjoint
};

// One relation of a job. Its lists stay in the device's memory.
struct HopRelation {
  int list_type = 0;
  int neighbor_type = 0;
  Lists lists;
  // By hop: 0 to leave the relation out, negative for all neighbours, otherwise
  // up to kMaxDeviceFanout.
  std::vector<int32_t> fanouts;
  bool feature_rows = false;
  HopFilter filter = {};  // the owners of excluded entries are seeds
};

struct HopJob {
  std::vector<uint64_t> node_counts;  // in the graph, per type
  std::vector<HopRelation> relations;
  int hops = 0;
  DrawRule rule = DrawRule::kUniform;  // not kAmong
  bool replace = false;
  bool disjoint = false;
  bool edge_ids = false;
  uint64_t job_seed = 1;
  uint32_t epoch = 0;
  uint32_t batch = 0;
};

// The edges of a relation in the device's memory, as EdgeBlock has them; null
// where the batch has no such column.
struct HopEdges {
  uint64_t count = 0;
  uint64_t expanded = 0;  // indptr has one element more
  const uint32_t* indptr = nullptr;
  const uint32_t* neighbor = nullptr;
  const int64_t* edge_id = nullptr;
  const uint64_t* feature_row = nullptr;
  std::vector<uint32_t> list_ends = {};  // as in EdgeBlock
};

// How many elements an array of the device has: *count, which is in the
// device's memory, and at most `bound`, or none if it is null; and `more`.
struct CountedRows {
  const uint64_t* count = nullptr;
  uint64_t bound = 0;
  uint64_t more = 0;

  uint64_t most() const { return bound + more; }
};
struct CountedArrays {
  std::vector<CountedRows> nodes;            // per type
  std::vector<CountedRows> edges, expanded;  // per relation
};

struct HopNodes {
  std::vector<uint32_t> hop_offsets;  // as in NodeBlock
  const uint64_t* ids = nullptr;
  const uint32_t* trees = nullptr;  // null unless disjoint
};

// Draws from the lists of one frontier in one partition.
struct DrawJob {
  Lists lists;
  DrawRule rule = DrawRule::kUniform;  // not kAmong
  bool replace = false;
  int32_t fanout = 0;  // negative: all neighbours
  DrawDomain domain;
  std::span<const uint64_t> ids;    // at least one
  std::span<const uint32_t> trees;  // parallel to ids, or empty
  std::span<const int64_t> times;   // parallel to ids; empty unless temporal
  bool edge_ids = false;
  bool feature_rows = false;
  HopFilter filter = {};
};

}  // namespace millrace::cuda
