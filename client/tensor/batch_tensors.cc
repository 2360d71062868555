// SPDX-License-Identifier: Apache-2.0
#include "client/tensor/batch_tensors.h"

#include <ATen/ops/from_blob.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

absl::StatusOr<at::ScalarType> ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return at::kByte;
    case DType::kInt8:
      return at::kChar;
    case DType::kInt32:
    case DType::kUint32:
      return at::kInt;
    case DType::kInt64:
    case DType::kUint64:
      return at::kLong;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kNone:
      break;
  }
  return absl::InvalidArgumentError("an absent array has no tensor");
}

absl::Status CheckRows(const char* what, int64_t rows) {
  if (rows <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the batch has ", rows, " ", what,
                   ", but local ids in tensors end at 2^31 - 1; use smaller "
                   "batches or fanouts"));
}

at::Device DeviceOf(const Array& array, at::DeviceType gpus) {
  if (array.on_host()) return at::kCPU;
  return {gpus, static_cast<at::DeviceIndex>(array.device())};
}

absl::StatusOr<NodeTensors> ToTensors(const NodeBlock& block,
                                      at::DeviceType gpus) {
  MILLRACE_RETURN_IF_ERROR(CheckRows("nodes of one type", block.count()));
  NodeTensors tensors;
  tensors.hop_offsets = block.hop_offsets;
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(block.feature, tensors.feature, gpus));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(block.label, tensors.label, gpus));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(block.degree, tensors.degree, gpus));
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(block.original_id, tensors.original_id, gpus));
  return tensors;
}

absl::StatusOr<EdgeTensors> ToTensors(const EdgeBlock& block,
                                      at::DeviceType gpus) {
  MILLRACE_RETURN_IF_ERROR(
      CheckRows("edges of one relation", block.edge_count()));
  EdgeTensors tensors;
  tensors.list_ends = block.list_ends;
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(block.indptr, tensors.indptr, gpus));
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(block.neighbor, tensors.neighbor, gpus));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(block.edge_id, tensors.edge_id, gpus));
  MILLRACE_RETURN_IF_ERROR(ViewIfPresent(block.feature, tensors.feature, gpus));
  return tensors;
}

}  // namespace

absl::StatusOr<at::Tensor> ViewAsTensor(const Array& array,
                                        at::DeviceType gpus) {
  MILLRACE_ASSIGN_OR_RETURN(const at::ScalarType type,
                            ScalarTypeOf(array.dtype()));
  return CatchTorch("viewing an array", [&]() -> absl::StatusOr<at::Tensor> {
    // for_blob needs a mutable pointer, but nothing writes through the view.
    // The deleter holds a copy of the array, which keeps the memory alive.
    void* data = const_cast<std::byte*>(array.data());
    const at::Device device = DeviceOf(array, gpus);
    return at::for_blob(data, array.shape())
        .deleter([array](void*) {})
        .target_device(device)
        .options(at::TensorOptions().dtype(type).device(device))
        .make_tensor();
  });
}

absl::Status ViewIfPresent(const Array& array, at::Tensor& out,
                           at::DeviceType gpus) {
  if (!array.present()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(out, ViewAsTensor(array, gpus));
  return absl::OkStatus();
}

at::Tensor AsFloat(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(at::kFloat) : tensor;
}

at::Tensor Send(const at::Tensor& tensor, at::Device device) {
  return tensor.defined() ? tensor.to(device, /*non_blocking=*/true) : tensor;
}

at::Tensor HostCopy(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(),
                            /*non_blocking=*/false, /*copy=*/true);
}

absl::StatusOr<BatchTensors> ToTensors(const Batch& batch,
                                       at::DeviceType gpus) {
  BatchTensors tensors;
  for (const NodeBlock& block : batch.nodes) {
    MILLRACE_ASSIGN_OR_RETURN(NodeTensors nodes, ToTensors(block, gpus));
    tensors.nodes.push_back(std::move(nodes));
  }
  for (const EdgeBlock& block : batch.edges) {
    MILLRACE_ASSIGN_OR_RETURN(EdgeTensors edges, ToTensors(block, gpus));
    tensors.edges.push_back(std::move(edges));
  }
  MILLRACE_RETURN_IF_ERROR(
      ViewIfPresent(batch.seed_to_local, tensors.seed_to_local));
  return tensors;
}

absl::StatusOr<at::Tensor> NodeIds(const NodeBlock& block) {
  return ViewAsTensor(ToInt64(block.id));
}

}  // namespace millrace
