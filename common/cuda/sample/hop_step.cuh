// SPDX-License-Identifier: Apache-2.0
// Input and output of the kernels of one hop.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"
#include "common/cuda/graph/device_lists.h"
#include "common/cuda/sample/kernel.cuh"
#include "common/sample/draw/draw_domain.h"
#include "common/sample/draw_rule.h"

namespace millrace::cuda {

struct HopRule {
  DrawRule rule = DrawRule::kUniform;  // not kAmong
  bool replace = false;                // kUniform, kWeighted
  int32_t fanout = 0;                  // negative: all neighbours

  MILLRACE_HOST_DEVICE bool takes_all() const { return fanout < 0; }
};

// The nodes whose lists are drawn from: those of a type with local ids from
// bounds[0] up to but not including bounds[1].
struct FrontierView {
  const uint64_t* ids = nullptr;    // by local id
  const uint32_t* trees = nullptr;  // null unless disjoint
  // Null unless temporal: of the trees, of which tree t has number t modulo
  // time_count, or, if that is 0, of the nodes.
  const int64_t* times = nullptr;
  uint64_t time_count = 0;
  const uint64_t* bounds = nullptr;

  __device__ uint64_t size() const { return bounds[1] - bounds[0]; }
  __device__ uint64_t id(uint64_t i) const { return ids[bounds[0] + i]; }
  __device__ uint32_t tree(uint64_t i) const {
    return trees == nullptr ? 0 : trees[bounds[0] + i];
  }
  __device__ int64_t time(uint64_t i) const {
    return times[time_count == 0 ? bounds[0] + i : tree(i) % time_count];
  }
};

// Where the list of a frontier node is, or its admissible part.
struct DeviceRange {
  int64_t begin = 0;
  int64_t degree = 0;
  uint32_t part = 0;
  uint32_t row = 0;
};

// One relation's part of a hop. Arrays without another size have one element
// for each node of the frontier.
struct HopStep {
  Lists lists;
  FrontierView frontier;
  HopRule rule;
  DrawDomain domain;
  PhiloxKey key;  // of the domain
  DeviceRange* ranges = nullptr;
  uint64_t* counts = nullptr;   // of picks, then a 0
  uint64_t* offsets = nullptr;  // sums of counts, then their total
  // Positions in the lists' files, node after node.
  int64_t* slots = nullptr;  // [picks]
  // Number of picks; 0 if they are too many.
  const uint64_t* picks = nullptr;
  uint32_t* trouble = nullptr;

  __device__ const PartLists& part(const DeviceRange& range) const {
    return lists.parts[range.part];
  }
  __device__ uint64_t original(const DeviceRange& range) const {
    return part(range).node_originals[range.row];
  }
  // The frontier node of a pick.
  __device__ uint64_t owner(uint64_t pick) const {
    return static_cast<uint64_t>(UpperBound(
               offsets, static_cast<int64_t>(frontier.size()), pick)) -
           1;
  }
};

}  // namespace millrace::cuda
