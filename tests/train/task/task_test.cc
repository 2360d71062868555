// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "client/train/task/labels.h"

namespace millrace::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor Floats(const std::vector<double>& values, int64_t columns) {
  return at::tensor(values, at::kFloat).view({-1, columns});
}
at::Tensor Longs(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

struct Words {
  TaskKind kind;
  const char* name;
  const char* own_metric;
  const char* metrics;  // as errors list them
};
const Words kTasks[] = {
    {TaskKind::kSingle, "single", "accuracy",
     "accuracy, f1-micro, f1-macro, rocauc"},
    {TaskKind::kMulti, "multi", "f1-micro",
     "f1-micro, f1-macro, rocauc, accuracy"},
    {TaskKind::kBinary, "binary", "rocauc",
     "rocauc, accuracy, f1-micro, f1-macro"},
    {TaskKind::kRegression, "regression", "rmse", "rmse"},
    {TaskKind::kLink, "link", "rocauc", "rocauc, accuracy, mrr, hits@K"}};

TEST(TaskTest, EachHasAMetricOfItsOwn) {
  for (const Words& words : kTasks) {
    const auto task = Task::Parse(words.name, "");
    ASSERT_TRUE(task.ok()) << task.status();
    EXPECT_EQ(task->kind, words.kind);
    EXPECT_EQ(MetricName(*task), words.own_metric);
    EXPECT_EQ(TaskName(words.kind), words.name);
  }
}

TEST(TaskTest, NamesTheMetricsThatFit) {
  for (const Words& words : kTasks) {
    const absl::Status status = Task::Parse(words.name, "loss").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(),
              std::string("metric \"loss\": does not fit the task ") +
                  words.name + "\nuse " + words.metrics);
  }
  EXPECT_EQ(Task::Parse("graph", "").status().message(),
            "task \"graph\": is not one of single, multi, binary, regression "
            "and link");
}

TEST(TaskTest, ReadsAMetricByItsName) {
  for (const Words& words : kTasks) {
    for (const char* metric :
         {"accuracy", "f1-micro", "f1-macro", "rocauc", "rmse", "mrr"}) {
      const auto task = Task::Parse(words.name, metric);
      const bool fits =
          std::string(words.metrics).find(metric) != std::string::npos;
      ASSERT_EQ(task.ok(), fits) << words.name << " " << metric;
      if (fits) {
        EXPECT_EQ(MetricName(*task), metric);
        EXPECT_EQ(task->hits, 10);
      }
    }
  }
}

TEST(TaskTest, HitsAreUpToAnyRank) {
  for (const int hits : {1, 10, 123}) {
    const std::string metric = "hits@" + std::to_string(hits);
    const auto task = Task::Parse("link", metric);
    ASSERT_TRUE(task.ok()) << task.status();
    EXPECT_EQ(task->metric, MetricKind::kHits);
    EXPECT_EQ(task->hits, hits);
    EXPECT_EQ(MetricName(*task), metric);
    EXPECT_FALSE(Task::Parse("single", metric).ok());
  }
}

TEST(TaskTest, OnlyErrorsAreBetterIfLess) {
  Task task;
  for (const MetricKind kind :
       {MetricKind::kAccuracy, MetricKind::kRocAuc, MetricKind::kMrr}) {
    task.metric = kind;
    EXPECT_TRUE(task.Better(0.5, 0.25));
    EXPECT_FALSE(task.Better(0.5, 0.5));
    EXPECT_FALSE(task.Better(0.25, 0.5));
  }
  task.metric = MetricKind::kRmse;
  EXPECT_FALSE(task.Better(0.5, 0.25));
  EXPECT_FALSE(task.Better(0.5, 0.5));
  EXPECT_TRUE(task.Better(0.25, 0.5));
}

TEST(TaskTest, RanksAreForMrrAndHits) {
  Task task;
  EXPECT_FALSE(task.ranks());
  task.metric = MetricKind::kMrr;
  EXPECT_TRUE(task.ranks());
  task.metric = MetricKind::kHits;
  EXPECT_TRUE(task.ranks());
}

TEST(TaskTest, OnlyRocAucOfClassesNeedsTwo) {
  const absl::Status status = Task::Parse("single", "rocauc")->CheckOutputs(1);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "metric rocauc: needs 2 classes, but the labels have 1\n"
            "use accuracy, f1-micro or f1-macro");
  EXPECT_TRUE(Task::Parse("single", "accuracy")->CheckOutputs(3).ok());
  EXPECT_TRUE(Task::Parse("multi", "rocauc")->CheckOutputs(3).ok());
  EXPECT_TRUE(Task::Parse("binary", "rocauc")->CheckOutputs(1).ok());
}

TEST(LossSumTest, SumsCrossEntropiesOfClasses) {
  const at::Tensor logits = Floats({0, 0, 1, 3, 5, 5}, 2);
  // log 2, and log(1 + e^2); the last row has no label.
  EXPECT_NEAR(LossSum(TaskKind::kSingle, logits, Longs({1, 0, kUnlabelled}))
                  .item()
                  .toDouble(),
              std::log(2.0) + std::log1p(std::exp(2.0)), 1e-6);
}

TEST(LossSumTest, SumsSquaredErrors) {
  EXPECT_NEAR(LossSum(TaskKind::kRegression, Floats({1, -2, 7, 0.5}, 2),
                      Floats({3, 1, kNan, 0.5}, 2))
                  .item()
                  .toDouble(),
              4 + 9, 1e-6);
}

// Logits of 2 and -1 for yes, and of 3 for no; one label is missing.
TEST(LossSumTest, SumsCrossEntropiesOfYesAndNo) {
  const double expected = std::log1p(std::exp(-2.0)) +
                          std::log1p(std::exp(1.0)) + std::log1p(std::exp(3.0));
  for (const TaskKind kind :
       {TaskKind::kMulti, TaskKind::kBinary, TaskKind::kLink}) {
    EXPECT_NEAR(
        LossSum(kind, Floats({2, 3, -1, 5}, 2), Floats({1, 0, 1, kNan}, 2))
            .item()
            .toDouble(),
        expected, 1e-5);
  }
}

int64_t Correct(TaskKind kind, const at::Tensor& logits,
                const at::Tensor& labels) {
  return CountCorrect(kind, logits, labels).item().toLong();
}

TEST(CountCorrectTest, TheLargestLogitIsTheClass) {
  const at::Tensor logits = Floats({2, 1, 0, 3, 1, 9, 5, 1, 1}, 3);
  EXPECT_EQ(Correct(TaskKind::kSingle, logits, Longs({0, 2, 0})), 3);
  EXPECT_EQ(Correct(TaskKind::kSingle, logits, Longs({1, 2, 1})), 1);
  EXPECT_EQ(Correct(TaskKind::kSingle, logits, Longs({kUnlabelled, 2, 1})), 1);
}

// A logit of 0 says no.
TEST(CountCorrectTest, TheSignOfALogitIsYesOrNo) {
  const at::Tensor logits = Floats({0.5, -0.5, 0, 0, -1, 3}, 2);
  const at::Tensor labels = Floats({1, 1, 0, 1, kNan, kNan}, 2);
  for (const TaskKind kind : {TaskKind::kMulti, TaskKind::kBinary}) {
    EXPECT_EQ(Correct(kind, logits, labels), 2);
  }
}

TEST(CountCorrectTest, NumbersAndNothingAreNeverCorrect) {
  EXPECT_EQ(Correct(TaskKind::kRegression, Floats({1}, 1), Floats({1}, 1)), 0);
  EXPECT_EQ(Correct(TaskKind::kSingle, at::zeros({0, 3}), Longs({})), 0);
}

}  // namespace
}  // namespace millrace::testing
