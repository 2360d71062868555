// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdint>

#include "client/cuda/layers/aggregate.cuh"
#include "client/cuda/layers/attention.cuh"
#include "client/cuda/layers/attention_v2.cuh"
#include "client/cuda/layers/dropout_mask.cuh"
#include "client/cuda/layers/gcn_weights.cuh"
#include "client/cuda/layers/layer_queue.cuh"
#include "client/cuda/layers/layers.h"
#include "client/cuda/layers/self_loops.cuh"

namespace millrace::cuda::layers {

cudaError_t SelfLoops(const LayerLists& lists, const LoopedLists& looped,
                      const WorkStream& work) {
  LayerQueue queue(work);
  LaunchSelfLoops(queue, lists, looped);
  return queue.failure();
}

cudaError_t FullGcnWeights(const LayerLists& lists, const int32_t* degree,
                           int64_t nodes, const GcnWeights& weights,
                           const WorkStream& work) {
  LayerQueue queue(work);
  LaunchFullGcnWeights(queue, lists, degree, nodes, weights);
  return queue.failure();
}

cudaError_t SampledGcnWeights(const LayerLists& lists, int64_t nodes,
                              const GcnWeights& weights,
                              const WorkStream& work) {
  LayerQueue queue(work);
  LaunchSampledGcnWeights(queue, lists, nodes, weights);
  return queue.failure();
}

cudaError_t DropoutMask(uint64_t key, int64_t threshold, int64_t count,
                        float* mask, const WorkStream& work) {
  LayerQueue queue(work);
  LaunchDropoutMask(queue, key, threshold, count, mask);
  return queue.failure();
}

cudaError_t Aggregate(const Aggregation& input, const float* source, float* out,
                      int32_t* largest_edge, const WorkStream& work) {
  LayerQueue queue(work);
  LaunchAggregate(queue, input, source, out, largest_edge);
  return queue.failure();
}

cudaError_t AggregateBackward(const Aggregation& input, const float* grad,
                              const int32_t* largest_edge, float* source_grad,
                              const WorkStream& work) {
  LayerQueue queue(work);
  LaunchAggregateBackward(queue, input, grad, largest_edge, source_grad);
  return queue.failure();
}

cudaError_t Attend(const Attention& input, const Attended& out,
                   const WorkStream& work) {
  LayerQueue queue(work);
  LaunchAttend(queue, input, out);
  return queue.failure();
}

cudaError_t AttendBackward(const Attention& input, const AttendedGradient& grad,
                           const AttentionGradients& out,
                           const WorkStream& work) {
  LayerQueue queue(work);
  LaunchAttendBackward(queue, input, grad, out);
  return queue.failure();
}

cudaError_t AttendV2(const AttentionV2& input, const Attended& out,
                     const WorkStream& work) {
  LayerQueue queue(work);
  LaunchAttendV2(queue, input, out);
  return queue.failure();
}

cudaError_t AttendV2Backward(const AttentionV2& input,
                             const AttendedGradient& grad,
                             const AttentionV2Gradients& out,
                             const WorkStream& work) {
  LayerQueue queue(work);
  LaunchAttendV2Backward(queue, input, grad, out);
  return queue.failure();
}

}  // namespace millrace::cuda::layers
