// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/trainer/cuda_operators.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "client/cuda/layers/layers.h"
#include "client/nn/operators/operators.h"

namespace millrace::cuda {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Lets a call of a kernel work in the current stream of a tensor's device, with
// memory of LibTorch's allocator.
class Work {
 public:
  explicit Work(const at::Tensor& place) : guard_(place.device()) {}

  layers::WorkStream stream() {
    return {c10::cuda::getCurrentCUDAStream().stream(), [this](size_t bytes) {
              blocks_.push_back(
                  c10::cuda::CUDACachingAllocator::get()->allocate(bytes));
              return blocks_.back().get();
            }};
  }

 private:
  const c10::cuda::CUDAGuard guard_;
  std::vector<c10::DataPtr> blocks_;  // freed in the order of the stream
};

at::Tensor Floats(const at::Tensor& place, at::IntArrayRef shape) {
  return at::empty(shape, place.options().dtype(at::kFloat));
}

at::Tensor Ints(const at::Tensor& place, at::IntArrayRef shape) {
  return at::empty(shape, place.options().dtype(at::kInt));
}

const float* Data(const at::Tensor& tensor) {
  return tensor.numel() > 0 ? tensor.const_data_ptr<float>() : nullptr;
}

float* MutableData(const at::Tensor& tensor) {
  return tensor.numel() > 0 ? tensor.mutable_data_ptr<float>() : nullptr;
}

layers::LayerLists ListsOf(const at::Tensor& indptr, const at::Tensor& index) {
  return {indptr.const_data_ptr<int32_t>(), index.const_data_ptr<int32_t>(),
          indptr.size(0) - 1, index.size(0)};
}

Pair SelfLoops(const at::Tensor& indptr, const at::Tensor& index) {
  Work work(indptr);
  const layers::LayerLists lists = ListsOf(indptr, index);
  const at::Tensor looped_indptr = Ints(indptr, {lists.rows + 1});
  const at::Tensor looped_index = Ints(index, {lists.edges + lists.rows});
  C10_CUDA_CHECK(layers::SelfLoops(lists,
                                   {looped_indptr.mutable_data_ptr<int32_t>(),
                                    looped_index.mutable_data_ptr<int32_t>()},
                                   work.stream()));
  return {looped_indptr, looped_index};
}

Pair FullGcnWeights(const at::Tensor& indptr, const at::Tensor& index,
                    const at::Tensor& degree) {
  Work work(indptr);
  const at::Tensor edge = Floats(index, {index.size(0)});
  const at::Tensor self = Floats(index, {degree.size(0)});
  C10_CUDA_CHECK(layers::FullGcnWeights(
      ListsOf(indptr, index), degree.const_data_ptr<int32_t>(), degree.size(0),
      {MutableData(edge), MutableData(self)}, work.stream()));
  return {edge, self};
}

Pair SampledGcnWeights(const at::Tensor& indptr, const at::Tensor& index,
                       int64_t rows) {
  Work work(indptr);
  const at::Tensor edge = Floats(index, {index.size(0)});
  const at::Tensor self = Floats(index, {rows});
  C10_CUDA_CHECK(layers::SampledGcnWeights(
      ListsOf(indptr, index), rows, {MutableData(edge), MutableData(self)},
      work.stream()));
  return {edge, self};
}

at::Tensor DropoutMask(const at::Tensor& place, int64_t count, int64_t key,
                       int64_t threshold) {
  Work work(place);
  const at::Tensor mask = Floats(place, {count});
  C10_CUDA_CHECK(layers::DropoutMask(static_cast<uint64_t>(key), threshold,
                                     count, MutableData(mask), work.stream()));
  return mask;
}

layers::Attention AttentionOf(const at::Tensor& values,
                              const at::Tensor& source_score,
                              const at::Tensor& target_score,
                              const at::Tensor& indptr, const at::Tensor& index,
                              const at::Tensor& mask) {
  return {ListsOf(indptr, index), values.size(0), source_score.size(1),
          values.size(1),         Data(values),   Data(source_score),
          Data(target_score),     Data(mask)};
}

Pair Attend(const at::Tensor& values, const at::Tensor& source_score,
            const at::Tensor& target_score, const at::Tensor& indptr,
            const at::Tensor& index, const at::Tensor& mask) {
  Work work(values);
  const layers::Attention input =
      AttentionOf(values, source_score, target_score, indptr, index, mask);
  const at::Tensor sums =
      Floats(values, {input.lists.rows, input.heads, input.width});
  const at::Tensor weights = Floats(values, {input.lists.edges, input.heads});
  C10_CUDA_CHECK(layers::Attend(
      input, {MutableData(sums), MutableData(weights)}, work.stream()));
  return {sums, weights};
}

Triple AttendBackward(const at::Tensor& grad, const at::Tensor& values,
                      const at::Tensor& source_score,
                      const at::Tensor& target_score, const at::Tensor& indptr,
                      const at::Tensor& index, const at::Tensor& mask,
                      const at::Tensor& weights, bool needs_values) {
  Work work(values);
  const at::Tensor value_grad =
      needs_values ? Floats(values, values.sizes()) : Floats(values, {0});
  const at::Tensor source_grad = Floats(values, source_score.sizes());
  const at::Tensor target_grad = Floats(values, target_score.sizes());
  C10_CUDA_CHECK(layers::AttendBackward(
      AttentionOf(values, source_score, target_score, indptr, index, mask),
      {Data(grad), Data(weights)},
      {MutableData(value_grad), MutableData(source_grad),
       MutableData(target_grad)},
      work.stream()));
  return {value_grad, source_grad, target_grad};
}

layers::AttentionV2 AttentionV2Of(
    const at::Tensor& source, const at::Tensor& target, const at::Tensor& score,
    const at::Tensor& indptr, const at::Tensor& index, const at::Tensor& mask) {
  return {ListsOf(indptr, index), source.size(0), score.size(1), score.size(2),
          Data(source),           Data(target),   Data(score),   Data(mask)};
}

Pair AttendV2(const at::Tensor& source, const at::Tensor& target,
              const at::Tensor& score, const at::Tensor& indptr,
              const at::Tensor& index, const at::Tensor& mask) {
  Work work(source);
  const layers::AttentionV2 input =
      AttentionV2Of(source, target, score, indptr, index, mask);
  const at::Tensor sums =
      Floats(source, {input.lists.rows, input.heads, input.width});
  const at::Tensor weights = Floats(source, {input.lists.edges, input.heads});
  C10_CUDA_CHECK(layers::AttendV2(
      input, {MutableData(sums), MutableData(weights)}, work.stream()));
  return {sums, weights};
}

Triple AttendV2Backward(const at::Tensor& grad, const at::Tensor& source,
                        const at::Tensor& target, const at::Tensor& score,
                        const at::Tensor& indptr, const at::Tensor& index,
                        const at::Tensor& mask, const at::Tensor& weights) {
  Work work(source);
  const at::Tensor source_grad = Floats(source, source.sizes());
  const at::Tensor target_grad = Floats(source, target.sizes());
  const at::Tensor score_grad = Floats(source, score.sizes());
  C10_CUDA_CHECK(layers::AttendV2Backward(
      AttentionV2Of(source, target, score, indptr, index, mask),
      {Data(grad), Data(weights)},
      {MutableData(source_grad), MutableData(target_grad),
       MutableData(score_grad)},
      work.stream()));
  return {source_grad, target_grad, score_grad};
}

layers::Aggregation AggregationOf(const at::Tensor& indptr,
                                  const at::Tensor& index,
                                  const at::Tensor& weight, int64_t sources,
                                  int64_t width, int64_t how) {
  return {static_cast<layers::Reduction>(how), ListsOf(indptr, index), sources,
          width, Data(weight)};
}

Pair ReduceLists(const at::Tensor& source, const at::Tensor& indptr,
                 const at::Tensor& index, const at::Tensor& weight,
                 int64_t how) {
  Work work(source);
  const layers::Aggregation input =
      AggregationOf(indptr, index, weight, source.size(0), source.size(1), how);
  const at::Tensor out = Floats(source, {input.lists.rows, input.width});
  const bool max = input.how == layers::Reduction::kMax;
  const at::Tensor largest =
      Ints(source, {max ? input.lists.rows : 0, input.width});
  C10_CUDA_CHECK(layers::Aggregate(
      input, Data(source), MutableData(out),
      largest.numel() > 0 ? largest.mutable_data_ptr<int32_t>() : nullptr,
      work.stream()));
  return {out, largest};
}

at::Tensor ReduceListsBackward(const at::Tensor& grad, int64_t sources,
                               const at::Tensor& indptr,
                               const at::Tensor& index,
                               const at::Tensor& weight,
                               const at::Tensor& largest, int64_t how) {
  Work work(grad);
  const at::Tensor source_grad = Floats(grad, {sources, grad.size(1)});
  C10_CUDA_CHECK(layers::AggregateBackward(
      AggregationOf(indptr, index, weight, sources, grad.size(1), how),
      Data(grad),
      largest.numel() > 0 ? largest.const_data_ptr<int32_t>() : nullptr,
      MutableData(source_grad), work.stream()));
  return source_grad;
}

TORCH_LIBRARY_IMPL(millrace, CUDA, library) {
  library.impl("self_loops", TORCH_FN(SelfLoops));
  library.impl("full_gcn_weights", TORCH_FN(FullGcnWeights));
  library.impl("sampled_gcn_weights", TORCH_FN(SampledGcnWeights));
  library.impl("dropout_mask", TORCH_FN(DropoutMask));
  library.impl("attend", TORCH_FN(Attend));
  library.impl("attend_backward", TORCH_FN(AttendBackward));
  library.impl("attend_v2", TORCH_FN(AttendV2));
  library.impl("attend_v2_backward", TORCH_FN(AttendV2Backward));
  library.impl("reduce_lists", TORCH_FN(ReduceLists));
  library.impl("reduce_lists_backward", TORCH_FN(ReduceListsBackward));
}

}  // namespace

// The registration above is done before main(); this call only makes sure that
// it is linked.
void UseCudaOperators() {}

}  // namespace millrace::cuda
