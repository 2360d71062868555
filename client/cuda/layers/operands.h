// SPDX-License-Identifier: Apache-2.0
// What the operators of layers.h read and write. All pointers are to memory of
// one device, aligned to their type unless it says more. Matrices are stored
// row by row, without gaps. Sizes may be 0; numbers of rows, edges and sources
// are below 2^31 - 1.
#pragma once

#include <cstdint>

namespace millrace::cuda::layers {

// Lists of neighbours: row i's list is the edges indptr[i] to indptr[i + 1] -
// 1, where indptr[0] is 0. `index` may be longer than the lists: operators
// ignore its end, and neither read nor write that of other arrays by edge.
struct LayerLists {
  const int32_t* indptr = nullptr;  // [rows + 1]
  const int32_t* index = nullptr;   // [edges]: the source of each edge
  int64_t rows = 0;
  int64_t edges = 0;
};

// Lists with self loops.
struct LoopedLists {
  int32_t* indptr = nullptr;  // [rows + 1]; the last is the number of edges
  int32_t* index = nullptr;   // [edges + rows] of the lists without them
};

struct GcnWeights {
  float* edge = nullptr;  // [edges]
  float* self = nullptr;  // [nodes]
};

enum class Reduction : uint8_t { kSum, kMean, kMax, kWeightedSum };

// Rows to reduce over lists.
struct Aggregation {
  Reduction how = Reduction::kSum;
  LayerLists lists;
  int64_t sources = 0;                 // rows of the source matrix
  int64_t width = 0;                   // its columns
  const float* edge_weight = nullptr;  // [edges]; only for kWeightedSum
};

// What attention of H heads of C columns reads. Every head attends to the same
// values.
struct Attention {
  LayerLists lists;
  int64_t sources = 0;
  int64_t heads = 0;
  int64_t width = 0;                    // C
  const float* values = nullptr;        // [sources, C]
  const float* source_score = nullptr;  // [sources, H]
  const float* target_score = nullptr;  // [rows, H]
  // Factors of the weights after the softmax; null if there are none.
  const float* mask = nullptr;  // [edges, H]
};

// The input of GATv2's attention.
struct AttentionV2 {
  LayerLists lists;
  int64_t sources = 0;
  int64_t heads = 0;
  int64_t width = 0;              // C
  const float* source = nullptr;  // [sources, H, C]
  const float* target = nullptr;  // [rows, H, C]
  const float* score = nullptr;   // [H, C]
  const float* mask = nullptr;    // [edges, H]; as above
};

// Results of either attention.
struct Attended {
  float* sums = nullptr;     // [rows, H, C]
  float* weights = nullptr;  // [edges, H], before the mask
};

// The additional input of the backward pass of either attention.
struct AttendedGradient {
  const float* sums = nullptr;     // [rows, H, C]: the gradient of the sums
  const float* weights = nullptr;  // [edges, H]: those of the forward pass
};

struct AttentionGradients {
  float* values = nullptr;        // [sources, C]; null if not wanted
  float* source_score = nullptr;  // [sources, H]
  float* target_score = nullptr;  // [rows, H]
};

struct AttentionV2Gradients {
  float* source = nullptr;  // [sources, H, C]
  float* target = nullptr;  // [rows, H, C]
  float* score = nullptr;   // [H, C]
};

}  // namespace millrace::cuda::layers
