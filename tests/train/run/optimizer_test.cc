// SPDX-License-Identifier: Apache-2.0
// Steps of the optimizers, compared with the published formulas over single
// numbers in double.
#include "client/train/run/optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

// Two parameters of 3 + 2 values.
std::vector<NamedTensor> Parameters() {
  return {{"a", at::tensor({0.5, -1.0, 2.0}, at::kFloat)},
          {"b", at::tensor({0.25, -0.75}, at::kFloat).view({1, 2})}};
}

std::vector<double> Values(const std::vector<NamedTensor>& tensors) {
  std::vector<double> values;
  for (const NamedTensor& named : tensors) {
    const at::Tensor flat = named.tensor.reshape({-1});
    for (int64_t i = 0; i < flat.size(0); ++i) {
      values.push_back(flat[i].item().toDouble());
    }
  }
  return values;
}

void ExpectNear(const std::vector<double>& got,
                const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6);
}

struct Step {
  std::vector<double> gradient;
  double lr;
};
const std::vector<Step>& Steps() {
  static const std::vector<Step> steps = {{{1, -2, 0.5, 0, 3}, 0.1},
                                          {{-0.5, -2, 4, 0.25, 0}, 0.05},
                                          {{2, 1, -0.125, 1e-9, -3}, 0.2}};
  return steps;
}

void Take(Optimizer& optimizer, const Step& step) {
  optimizer.Step(at::tensor(step.gradient, at::kFloat), step.lr);
}

// Kingma and Ba 2015, algorithm 1, and Loshchilov and Hutter 2019, algorithm 2.
std::vector<double> AdamByHand(bool decoupled, double decay) {
  std::vector<double> x = Values(Parameters());
  std::vector<double> m(x.size()), v(x.size());
  int t = 0;
  for (const Step& step : Steps()) {
    ++t;
    for (size_t i = 0; i < x.size(); ++i) {
      double g = step.gradient[i];
      if (decoupled) {
        x[i] -= step.lr * decay * x[i];
      } else {
        g += decay * x[i];
      }
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double mean = m[i] / (1 - std::pow(0.9, t));
      const double square = v[i] / (1 - std::pow(0.999, t));
      x[i] -= step.lr * mean / (std::sqrt(square) + 1e-8);
    }
  }
  return x;
}

TEST(OptimizerTest, AdamFollowsItsFormula) {
  for (const auto& [kind, decay] : {std::pair(OptimizerKind::kAdam, 0.0),
                                    std::pair(OptimizerKind::kAdam, 0.3),
                                    std::pair(OptimizerKind::kAdamW, 0.0),
                                    std::pair(OptimizerKind::kAdamW, 0.3)}) {
    const std::vector<NamedTensor> parameters = Parameters();
    Optimizer optimizer({.kind = kind, .weight_decay = decay}, parameters);
    EXPECT_EQ(optimizer.size(), 5);
    for (const Step& step : Steps()) Take(optimizer, step);
    EXPECT_EQ(optimizer.steps(), 3);
    ExpectNear(Values(parameters),
               AdamByHand(kind == OptimizerKind::kAdamW, decay));
  }
}

TEST(OptimizerTest, SgdGoesAgainstTheGradient) {
  for (const double decay : {0.0, 0.3}) {
    const std::vector<NamedTensor> parameters = Parameters();
    Optimizer optimizer({.kind = OptimizerKind::kSgd, .weight_decay = decay},
                        parameters);
    std::vector<double> want = Values(parameters);
    for (const Step& step : Steps()) {
      Take(optimizer, step);
      for (size_t i = 0; i < want.size(); ++i) {
        want[i] -= step.lr * (step.gradient[i] + decay * want[i]);
      }
    }
    ExpectNear(Values(parameters), want);
    EXPECT_TRUE(optimizer.State().empty());
    EXPECT_EQ(optimizer.steps(), 3);
  }
}

TEST(OptimizerTest, StateHasTheMomentsOfEachParameter) {
  const std::vector<NamedTensor> parameters = Parameters();
  Optimizer optimizer({}, parameters);
  Take(optimizer, Steps()[0]);
  const std::vector<NamedTensor> state = optimizer.State();
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state[0].name, "exp_avg.a");
  EXPECT_EQ(state[1].name, "exp_avg_sq.a");
  EXPECT_EQ(state[2].name, "exp_avg.b");
  EXPECT_EQ(state[3].name, "exp_avg_sq.b");
  EXPECT_EQ(state[3].tensor.sizes(), at::IntArrayRef({1, 2}));
  ExpectNear(Values({state[0], state[2]}), {0.1, -0.2, 0.05, 0, 0.3});
  ExpectNear(Values({state[1], state[3]}), {0.001, 0.004, 0.00025, 0, 0.009});
  // These are copies.
  Take(optimizer, Steps()[1]);
  ExpectNear(Values({state[0]}), {0.1, -0.2, 0.05});
}

TEST(OptimizerTest, GoesOnFromItsState) {
  const std::vector<NamedTensor> whole = Parameters(), parts = Parameters();
  Optimizer one({}, whole), first({}, parts), second({}, parts);
  for (const Step& step : Steps()) Take(one, step);
  Take(first, Steps()[0]);
  Take(first, Steps()[1]);
  ASSERT_TRUE(second.Load(first.State(), first.steps()).ok());
  EXPECT_EQ(second.steps(), 2);
  Take(second, Steps()[2]);
  EXPECT_EQ(Values(parts), Values(whole));
  // Gradient descent has nothing but its steps.
  Optimizer sgd({.kind = OptimizerKind::kSgd}, parts);
  EXPECT_TRUE(sgd.Load({}, 5).ok());
  EXPECT_EQ(sgd.steps(), 5);
}

TEST(OptimizerTest, NamesTheTensorThatDoesNotFit) {
  const std::vector<NamedTensor> parameters = Parameters();
  Optimizer optimizer({}, parameters);
  const std::vector<NamedTensor> whole = optimizer.State();
  for (size_t i = 0; i < whole.size(); ++i) {
    const std::string tensor =
        "the optimizer's tensor \"" + whole[i].name + "\" is ";
    std::vector<NamedTensor> state = whole;
    state[i].tensor = at::zeros({7}, at::kFloat);
    absl::Status status = optimizer.Load(state, 1);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(),
              tensor + "[7], but the model's is " + (i < 2 ? "[3]" : "[1, 2]"));
    state.erase(state.begin() + static_cast<int64_t>(i));
    EXPECT_EQ(optimizer.Load(state, 1).message(), tensor + "missing");
  }
  EXPECT_TRUE(optimizer.Load(whole, 1).ok());
}

LearningRate Rate(const std::string& schedule, double lr, uint32_t epochs) {
  const auto rate = LearningRate::Parse(schedule, lr, epochs);
  EXPECT_TRUE(rate.ok()) << rate.status();
  return rate.value_or(LearningRate());
}

TEST(LearningRateTest, IsConstantUnlessToldOtherwise) {
  for (const char* schedule : {"constant", "none"}) {
    const LearningRate rate = Rate(schedule, 0.25, 10);
    for (const uint32_t epoch : {0, 1, 9, 100}) {
      EXPECT_EQ(rate.At(epoch), 0.25) << schedule;
    }
  }
}

TEST(LearningRateTest, CosineFallsFromTheRateToZero) {
  const LearningRate rate = Rate("cosine", 0.2, 4);
  EXPECT_DOUBLE_EQ(rate.At(0), 0.2);
  EXPECT_NEAR(rate.At(1), 0.2 * 0.85355339059327, 1e-14);
  EXPECT_NEAR(rate.At(2), 0.1, 1e-15);
  EXPECT_NEAR(rate.At(4), 0, 1e-15);
  // A run that only evaluates has no epoch.
  EXPECT_DOUBLE_EQ(Rate("cosine", 0.2, 0).At(0), 0.2);
}

TEST(LearningRateTest, StepsMultiplyEverySoManyEpochs) {
  const LearningRate rate = Rate("step:3:0.5", 0.8, 20);
  const std::vector<double> want = {0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2};
  for (uint32_t epoch = 0; epoch < want.size(); ++epoch) {
    EXPECT_DOUBLE_EQ(rate.At(epoch), want[epoch]) << epoch;
  }
  EXPECT_DOUBLE_EQ(Rate("step:1:2", 0.5, 20).At(3), 4);
}

TEST(LearningRateTest, RefusesOtherSchedules) {
  for (const char* schedule :
       {"", "Constant", "step", "step:3", "step:0:0.5", "step:-1:0.5",
        "step:x:0.5", "step:3:0", "step:3:-1", "step:3:x", "step:3:0.5:1",
        "stop:3:0.5", "cosine:3"}) {
    const absl::Status status = LearningRate::Parse(schedule, 0.1, 10).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << schedule;
    EXPECT_EQ(status.message(),
              std::string("lr_schedule \"") + schedule +
                  "\": is not one of constant, cosine and step:EPOCHS:FACTOR");
  }
}

TEST(LearningRateTest, RefusesARateThatIsNotAboveZero) {
  for (const double lr :
       {0.0, -0.1, std::numeric_limits<double>::quiet_NaN()}) {
    const absl::Status status =
        LearningRate::Parse("constant", lr, 10).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << lr;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("is out of range: above 0"));
  }
  EXPECT_TRUE(LearningRate::Parse("constant", 1e-300, 10).ok());
}

}  // namespace
}  // namespace millrace::testing
