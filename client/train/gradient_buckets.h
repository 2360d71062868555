// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "client/nn/parameters.h"
#include "client/train/device/reducer.h"

namespace torch::autograd {
struct Node;
}  // namespace torch::autograd

namespace millrace {

// The gradients of all parameters, and a few numbers behind them, in one buffer
// that ranks add up in buckets (Li et al. 2020, PyTorch Distributed). A bucket
// starts as soon as the backward pass has computed it and all that come before
// it, from the last parameters to the first, so its way to the other ranks
// overlaps with the rest of the pass. Buckets and their order depend only on
// the parameters. Threads: one at a time.
class GradientBuckets {
 public:
  // Large enough that starting a sum costs little. A smaller model has one
  // bucket.
  static constexpr int64_t kBucketBytes = int64_t{4} << 20;

  // Makes a buffer on the parameters' device for their gradients and `tail`
  // more numbers. Keeps references to the parameters' tensors, which must be
  // leaves that require a gradient, and to `reducer`.
  GradientBuckets(const std::vector<NamedTensor>& parameters, int64_t tail,
                  at::Device device, Reducer& reducer,
                  int64_t bucket_bytes = kBucketBytes);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Begins a step: zeroes the buffer and drops the parameters' own gradients.
  // Afterwards, fill in the tail, run the backward pass, or neither, and call
  // Finish().
  void Begin();
  // Starts the buckets that are left, for which other ranks wait. An error
  // shows in Finish().
  void StartRest();
  // Does so, and waits for all sums. Fails like Reducer.
  absl::Status Finish();

  // The gradients, [values of all parameters], in the order of the parameters,
  // and the numbers behind them, [tail].
  const at::Tensor& gradient() const { return gradient_; }
  const at::Tensor& tail() const { return tail_; }

  size_t bucket_count() const { return buckets_.size(); }
  // Number of buckets that started during the last step's backward pass.
  size_t early_buckets() const { return early_buckets_; }

 private:
  struct Slot {
    at::Tensor parameter;
    at::Tensor gradient;  // in the buffer
    size_t bucket = 0;
    // Keeps the hook alive, which the parameter does not.
    std::shared_ptr<torch::autograd::Node> accumulator = nullptr;
    uintptr_t hook = 0;  // its number there
  };
  struct Bucket {
    at::Tensor values;  // in the buffer
    int parameters = 0;
    int missing = 0;  // parameters without a gradient in this step so far
  };

  void MakeBuckets(int64_t bucket_bytes);
  void AddHook(size_t slot);
  // Takes the gradient of a parameter, which the backward pass has computed.
  void Take(size_t slot);
  // Starts the buckets that are next and complete.
  void StartComplete();

  Reducer& reducer_;
  at::Tensor buffer_;
  at::Tensor gradient_, tail_;  // views of buffer_
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;  // in the order in which they start
  size_t next_ = 0;              // bucket to start
  size_t early_buckets_ = 0;
  absl::Status status_;  // of the buckets that this step has started
};

}  // namespace millrace
