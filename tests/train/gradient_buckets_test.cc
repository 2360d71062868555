// SPDX-License-Identifier: Apache-2.0
#include "client/train/gradient_buckets.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <vector>

#include "client/tensor/batch_tensors.h"
#include "client/train/device/host_reducer.h"
#include "tests/support/pretend_device.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

// Notes what is started, and fails on request.
class NotingReducer final : public Reducer {
 public:
  absl::Status Start(const at::Tensor& bucket) override {
    sizes.push_back(bucket.numel());
    return static_cast<int>(sizes.size()) == fail_at
               ? absl::UnavailableError("rank 1 is lost")
               : absl::OkStatus();
  }
  absl::Status Finish() override {
    ++finished;
    return absl::OkStatus();
  }

  std::vector<int64_t> sizes;
  int finished = 0;
  int fail_at = -1;
};

// Parameters of 2, 3, 4 and 5 values, which are all 1.
std::vector<NamedTensor> Parameters(at::Device device = at::kCPU) {
  std::vector<NamedTensor> parameters;
  for (int64_t size = 2; size <= 5; ++size) {
    parameters.push_back({std::to_string(size),
                          at::ones({size}, at::TensorOptions().device(device))
                              .requires_grad_()});
  }
  return parameters;
}

// A loss in which parameter i has the gradient i + 1, and whose backward pass
// goes from the last to the first.
at::Tensor Loss(const std::vector<NamedTensor>& parameters) {
  at::Tensor sum = at::zeros({}, parameters[0].tensor.options());
  for (size_t i = 0; i < parameters.size(); ++i) {
    sum = sum.add(parameters[i].tensor.sum(), static_cast<double>(i + 1));
  }
  return sum;
}

TEST(GradientBucketsTest, StartsBucketsDuringTheBackwardPassLastFirst) {
  const auto parameters = Parameters();
  NotingReducer reducer;
  // The tail and 5 values; 4 and 3 values; 2 values.
  GradientBuckets buckets(parameters, 1, at::kCPU, reducer, 6 * 4);
  EXPECT_EQ(buckets.bucket_count(), 3u);
  buckets.Begin();
  buckets.tail().fill_(7);
  Loss(parameters).backward();
  EXPECT_THAT(reducer.sizes, ElementsAre(6, 7, 2));
  EXPECT_EQ(buckets.early_buckets(), 3u);
  EXPECT_EQ(reducer.finished, 0);
  ASSERT_TRUE(buckets.Finish().ok());
  EXPECT_EQ(reducer.finished, 1);
  EXPECT_TRUE(buckets.gradient().equal(
      at::cat({at::full({2}, 1.0), at::full({3}, 2.0), at::full({4}, 3.0),
               at::full({5}, 4.0)})));
  EXPECT_EQ(buckets.tail().item().toDouble(), 7);
}

TEST(GradientBucketsTest, ARankWithoutABatchStartsTheSameBuckets) {
  const auto parameters = Parameters();
  NotingReducer reducer;
  GradientBuckets buckets(parameters, 1, at::kCPU, reducer, 6 * 4);
  buckets.Begin();
  ASSERT_TRUE(buckets.Finish().ok());
  EXPECT_THAT(reducer.sizes, ElementsAre(6, 7, 2));
  EXPECT_EQ(buckets.early_buckets(), 0u);
  EXPECT_EQ(buckets.gradient().abs().sum().item().toDouble(), 0);
}

TEST(GradientBucketsTest, AParameterWithoutAGradientHoldsUpLaterBuckets) {
  const auto parameters = Parameters();
  NotingReducer reducer;
  GradientBuckets buckets(parameters, 0, at::kCPU, reducer, 1);
  EXPECT_EQ(buckets.bucket_count(), 4u);
  buckets.Begin();
  at::Tensor loss = parameters[0].tensor.sum().add(parameters[1].tensor.sum());
  loss.add(parameters[3].tensor.sum()).backward();
  EXPECT_THAT(reducer.sizes, ElementsAre(5));
  ASSERT_TRUE(buckets.Finish().ok());
  EXPECT_THAT(reducer.sizes, ElementsAre(5, 4, 3, 2));
  EXPECT_TRUE(buckets.gradient().equal(
      at::cat({at::ones({2}), at::ones({3}), at::zeros({4}), at::ones({5})})));
}

// A function that gives a parameter no gradient.
class WithoutGradient : public torch::autograd::Function<WithoutGradient> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*,
                            const at::Tensor& tensor) {
    return tensor.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    return {at::Tensor()};
  }
};

TEST(GradientBucketsTest, AReachedParameterMayHaveNoGradient) {
  const auto parameters = Parameters();
  NotingReducer reducer;
  GradientBuckets buckets(parameters, 0, at::kCPU, reducer, 1);
  buckets.Begin();
  Loss({parameters[0], parameters[1], parameters[2]})
      .add(WithoutGradient::apply(parameters[3].tensor).sum())
      .backward();
  ASSERT_TRUE(buckets.Finish().ok());
  EXPECT_THAT(reducer.sizes, ElementsAre(5, 4, 3, 2));
  EXPECT_TRUE(
      buckets.gradient().equal(at::cat({at::full({2}, 1.0), at::full({3}, 2.0),
                                        at::full({4}, 3.0), at::zeros({5})})));
}

TEST(GradientBucketsTest, LeavesTheParametersWhenItEnds) {
  const auto parameters = Parameters();
  const at::Tensor loss = Loss(parameters);
  NotingReducer reducer;
  { GradientBuckets buckets(parameters, 0, at::kCPU, reducer); }
  loss.backward();
  EXPECT_TRUE(reducer.sizes.empty());
}

TEST(GradientBucketsTest, NothingOfAStepIsLeftInTheNext) {
  const auto parameters = Parameters();
  NotingReducer reducer;
  GradientBuckets buckets(parameters, 2, at::kCPU, reducer);
  EXPECT_EQ(buckets.bucket_count(), 1u);
  buckets.Begin();
  buckets.tail().fill_(3);
  Loss(parameters).backward();
  ASSERT_TRUE(buckets.Finish().ok());
  buckets.Begin();
  ASSERT_TRUE(buckets.Finish().ok());
  EXPECT_EQ(buckets.gradient().abs().sum().item().toDouble(), 0);
  EXPECT_EQ(buckets.tail().abs().sum().item().toDouble(), 0);
  EXPECT_FALSE(parameters[0].tensor.grad().defined());
}

TEST(GradientBucketsTest, StartsNoMoreBucketsAfterAnError) {
  const auto parameters = Parameters();
  NotingReducer reducer;
  reducer.fail_at = 2;
  GradientBuckets buckets(parameters, 0, at::kCPU, reducer, 1);
  buckets.Begin();
  Loss(parameters).backward();
  EXPECT_EQ(buckets.Finish().message(), "rank 1 is lost");
  EXPECT_EQ(reducer.sizes.size(), 2u);
  EXPECT_EQ(reducer.finished, 0);
}

TEST(GradientBucketsTest, AModelWithoutParametersAddsUpItsTail) {
  NotingReducer reducer;
  GradientBuckets buckets({}, 3, at::kCPU, reducer);
  buckets.Begin();
  ASSERT_TRUE(buckets.Finish().ok());
  EXPECT_THAT(reducer.sizes, ElementsAre(3));
}

// Returns the gradients of two ranks after three steps.
at::Tensor GradientOfTwoRanks(at::Device device, int64_t bucket_bytes) {
  at::Tensor gradient;
  RunRanks(2, [&](Collectives& collectives) {
    const auto parameters = Parameters(device);
    HostReducer reducer(collectives);
    GradientBuckets buckets(parameters, 1, device, reducer, bucket_bytes);
    EXPECT_EQ(buckets.bucket_count(), bucket_bytes == 1    ? 4u
                                      : bucket_bytes == 24 ? 3u
                                                           : 1u);
    for (int step = 0; step < 3; ++step) {
      buckets.Begin();
      // Rank 1 has no batch in the second step.
      if (step != 1 || collectives.rank() == 0) {
        Loss(parameters).mul(0.1 * (collectives.rank() + step + 1)).backward();
      }
      ASSERT_TRUE(buckets.Finish().ok());
    }
    EXPECT_EQ(buckets.gradient().device(), device);
    if (collectives.rank() == 0) gradient = HostCopy(buckets.gradient());
  });
  return gradient;
}

// Between two ranks, sums do not depend on the buckets, nor on the device.
TEST(GradientBucketsTest, BucketsOfTwoRanksHaveTheBitsOfOneSum) {
  const at::Tensor want = GradientOfTwoRanks(at::kCPU, 1 << 20);
  EXPECT_NEAR(want[0].item().toDouble(), 0.3 + 0.4, 1e-6);
  for (const at::Device device : {at::Device(at::kCPU), PretendDevice()}) {
    for (const int64_t bucket_bytes : {1, 24, 1 << 20}) {
      EXPECT_TRUE(GradientOfTwoRanks(device, bucket_bytes).equal(want))
          << device << " " << bucket_bytes;
    }
  }
}

}  // namespace
}  // namespace millrace::testing
