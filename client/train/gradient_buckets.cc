// SPDX-License-Identifier: Apache-2.0
#include "client/train/gradient_buckets.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "common/base/status_macros.h"

namespace millrace {

GradientBuckets::GradientBuckets(const std::vector<NamedTensor>& parameters,
                                 int64_t tail, at::Device device,
                                 Reducer& reducer, int64_t bucket_bytes)
    : reducer_(reducer) {
  int64_t values = 0;
  for (const NamedTensor& named : parameters) values += named.tensor.numel();
  buffer_ =
      at::zeros({values + tail}, at::TensorOptions(at::kFloat).device(device));
  gradient_ = buffer_.narrow(0, 0, values);
  tail_ = buffer_.narrow(0, values, tail);
  int64_t begin = 0;
  for (const NamedTensor& named : parameters) {
    const int64_t size = named.tensor.numel();
    slots_.push_back({named.tensor, buffer_.narrow(0, begin, size)});
    begin += size;
  }
  MakeBuckets(bucket_bytes);
  for (size_t i = 0; i < slots_.size(); ++i) AddHook(i);
}

GradientBuckets::~GradientBuckets() {
  // Others may keep the accumulators alive.
  for (Slot& slot : slots_) slot.accumulator->del_post_hook(slot.hook);
}

// The backward pass computes the last parameters' gradients first. The numbers
// of the tail are known before it.
void GradientBuckets::MakeBuckets(int64_t bucket_bytes) {
  int64_t end = buffer_.numel();
  int64_t begin = gradient_.numel();
  int parameters = 0;
  const auto close = [&] {
    buckets_.push_back(
        {buffer_.narrow(0, begin, end - begin), parameters, parameters});
    end = begin;
    parameters = 0;
  };
  for (size_t i = slots_.size(); i-- > 0;) {
    begin -= slots_[i].gradient.numel();
    slots_[i].bucket = buckets_.size();
    ++parameters;
    if ((end - begin) * static_cast<int64_t>(sizeof(float)) >= bucket_bytes) {
      close();
    }
  }
  if (end > 0) close();
}

void GradientBuckets::AddHook(size_t slot) {
  using torch::autograd::variable_list;
  slots_[slot].accumulator =
      torch::autograd::impl::grad_accumulator(slots_[slot].parameter);
  slots_[slot].hook = slots_[slot].accumulator->add_post_hook(
      std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [this, slot](const variable_list& outputs, const variable_list&) {
            Take(slot);
            return outputs;
          }));
}

void GradientBuckets::Take(size_t slot) {
  const c10::NoGradGuard no_grad;
  const Slot& taken = slots_[slot];
  // The pass may reach a parameter without giving it a gradient.
  if (const at::Tensor& own = taken.parameter.grad(); own.defined()) {
    taken.gradient.copy_(own.reshape({taken.gradient.numel()}));
  }
  --buckets_[taken.bucket].missing;
  const size_t before = next_;
  StartComplete();
  early_buckets_ += next_ - before;
}

void GradientBuckets::StartComplete() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    if (status_.ok()) status_ = reducer_.Start(buckets_[next_].values);
  }
}

void GradientBuckets::Begin() {
  buffer_.zero_();
  next_ = early_buckets_ = 0;
  status_ = absl::OkStatus();
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  for (Slot& slot : slots_) slot.parameter.mutable_grad().reset();
}

void GradientBuckets::StartRest() {
  for (Bucket& bucket : buckets_) bucket.missing = 0;
  StartComplete();
}

absl::Status GradientBuckets::Finish() {
  StartRest();
  MILLRACE_RETURN_IF_ERROR(status_);
  return reducer_.Finish();
}

}  // namespace millrace
