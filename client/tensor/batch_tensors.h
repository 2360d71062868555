// SPDX-License-Identifier: Apache-2.0
// Views arrays and batches as tensors, without copying.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/sample/batch.h"

namespace millrace {

// Returns a tensor over the memory of `array`, which it keeps alive. Treat it
// as read-only: the memory may be a mapped file or shared with other tensors.
// Unsigned 32-bit arrays become kInt and unsigned 64-bit ones kLong, bit for
// bit; the caller must know that the values fit (see BatchTensors).
// `gpus` is the type of the devices that arrays name by a number.
// INVALID_ARGUMENT: the array is absent.
absl::StatusOr<at::Tensor> ViewAsTensor(const Array& array,
                                        at::DeviceType gpus = at::kCUDA);

// The same, but leaves `out` unchanged if the array is absent.
absl::Status ViewIfPresent(const Array& array, at::Tensor& out,
                           at::DeviceType gpus = at::kCUDA);

// Returns the tensor as kFloat, itself if it has that type; an undefined tensor
// stays undefined. Throws what LibTorch throws.
at::Tensor AsFloat(const at::Tensor& tensor);

// Returns the tensor on a device, itself if it is there; an undefined tensor
// stays undefined. Copies run in the device's current stream, and this does not
// wait for those out of pinned memory. Throws what LibTorch throws.
at::Tensor Send(const at::Tensor& tensor, at::Device device);
// Returns a copy on the CPU.
at::Tensor HostCopy(const at::Tensor& tensor);

// The neighbour lists of one relation as CSR over local ids.
struct EdgeTensors {
  at::Tensor indptr;                // [expanded + 1] kInt
  at::Tensor neighbor;              // [e] kInt
  at::Tensor edge_id;               // [e] kLong; undefined if absent
  at::Tensor feature;               // [e, d]; undefined if absent
  std::vector<uint32_t> list_ends;  // see EdgeBlock
};

// The columns of one node type; undefined if absent.
struct NodeTensors {
  std::vector<uint32_t> hop_offsets;
  at::Tensor feature;      // [n, d], as stored
  at::Tensor label;        // [seeds] or [seeds, k] (or all rows)
  at::Tensor degree;       // [n] kInt
  at::Tensor original_id;  // [n] kLong
};

// Views of a batch's arrays; they keep the arrays alive, but not the batch.
struct BatchTensors {
  std::vector<NodeTensors> nodes;  // per node type
  std::vector<EdgeTensors> edges;  // per relation
  at::Tensor seed_to_local;        // [seeds] kInt
};

// Views all arrays of a batch, wherever they are. OUT_OF_RANGE: a node type or
// relation has 2^31 rows or more, so local ids do not fit kInt.
absl::StatusOr<BatchTensors> ToTensors(const Batch& batch,
                                       at::DeviceType gpus = at::kCUDA);

// Returns the ids of the batch's nodes of one type, [n] kLong. Copies them
// unless they are stored with 64 bits.
absl::StatusOr<at::Tensor> NodeIds(const NodeBlock& block);

}  // namespace millrace
