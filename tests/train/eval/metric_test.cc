// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/metric.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "client/train/task/labels.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor Floats(std::vector<int64_t> shape, std::vector<double> values) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

at::Tensor Longs(std::vector<int64_t> values) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

double ValueOf(const std::string& task, const std::string& metric,
               const at::Tensor& logits, const at::Tensor& labels) {
  Metric counted(Task::Parse(task, metric).value(), logits.size(1));
  // The rows are added in two pieces, like batches.
  const int64_t half = logits.size(0) / 2;
  counted.Add(logits.narrow(0, 0, half), labels.narrow(0, 0, half));
  counted.Add(logits.narrow(0, half, logits.size(0) - half),
              labels.narrow(0, half, logits.size(0) - half));
  return counted.Value().value_or(-1);
}

TEST(MetricTest, AccuracyIgnoresUnlabelled) {
  const at::Tensor logits = Floats({4, 2}, {2, 1, 0, 3, 5, 1, 0, 1});
  EXPECT_DOUBLE_EQ(
      ValueOf("single", "accuracy", logits, Longs({0, 1, 1, kUnlabelled})),
      2.0 / 3);
  EXPECT_DOUBLE_EQ(ValueOf("single", "accuracy", logits,
                           at::full_like(Longs({0, 0, 0, 0}), kUnlabelled)),
                   -1);
}

// Pairs (score of a 1, score of a 0): 0.9 > 0.5, 0.9 > 0.4, 0.5 = 0.5, 0.5 >
// 0.4; so 3.5 of 4.
TEST(MetricTest, RocAucCountsTiesAsHalf) {
  const at::Tensor logits = Floats({5, 1}, {0.5, 0.9, 0.5, 0.4, 0.1});
  const at::Tensor labels = Floats({5, 1}, {0, 1, 1, 0, kNan});
  EXPECT_DOUBLE_EQ(ValueOf("binary", "", logits, labels), 3.5 / 4);
}

// The NaN for a 1 ranks below everything, the NaN for a 0 above everything: of
// 2 x 2 pairs only 0.9 > 0.4 is right.
TEST(MetricTest, RocAucCountsNanAsWrong) {
  const at::Tensor logits = Floats({4, 1}, {kNan, 0.9, kNan, 0.4});
  const at::Tensor labels = Floats({4, 1}, {0, 1, 1, 0});
  EXPECT_DOUBLE_EQ(ValueOf("binary", "", logits, labels), 1.0 / 4);
}

TEST(MetricTest, ReportsMrrAndHitsAtK) {
  at::Tensor ranks = at::empty({4}, at::kDouble);
  for (int i = 0; i < 4; ++i) ranks[i] = std::vector{1.0, 2.5, 10.0, 10.5}[i];
  const auto value = [&](const std::string& metric) {
    Metric counted(Task::Parse("link", metric).value(), 1);
    counted.AddRanks(ranks);
    return counted.Value().value_or(-1);
  };
  EXPECT_DOUBLE_EQ(value("mrr"), (1 + 0.4 + 0.1 + 1 / 10.5) / 4);
  EXPECT_DOUBLE_EQ(value("hits@10"), 0.75);
  EXPECT_DOUBLE_EQ(value("hits@1"), 0.25);
}

TEST(MetricTest, RejectsUnknownMetrics) {
  for (const char* metric :
       {"hits@0", "hits@-3", "hits@x", "hits@", "hits@K", "f1-micro", "MRR"}) {
    EXPECT_EQ(Task::Parse("link", metric).status().code(),
              absl::StatusCode::kInvalidArgument)
        << metric;
  }
  EXPECT_FALSE(Task::Parse("single", "mrr").ok());
}

TEST(MetricTest, RocAucOfTwoClassesUsesTheirDifference) {
  const at::Tensor logits =
      Floats({5, 2}, {1, 1.5, 2, 2.9, 0, 0.5, 3, 3.4, 9, 0});
  EXPECT_DOUBLE_EQ(
      ValueOf("single", "rocauc", logits, Longs({0, 1, 1, 0, kUnlabelled})),
      3.5 / 4);
}

TEST(MetricTest, RocAucIsTheMeanOverColumnsWithBothLabels) {
  const at::Tensor logits = Floats({3, 3}, {3, 3, 1, 2, 2, 2, 1, 1, 3});
  const at::Tensor labels = Floats({3, 3}, {1, 0, 1, 0, 1, 1, 0, 0, 1});
  EXPECT_DOUBLE_EQ(ValueOf("multi", "rocauc", logits, labels), (1 + 0.5) / 2);
}

// Column 0: TP 1, FP 1, FN 0. Column 1: TP 1, FP 0, FN 1. Column 2: none.
TEST(MetricTest, F1OfColumns) {
  const at::Tensor logits = Floats({3, 3}, {1, 1, -1, 1, -1, -1, -1, -1, -1});
  const at::Tensor labels = Floats({3, 3}, {1, 1, 0, 0, 1, 0, 0, kNan, 0});
  EXPECT_DOUBLE_EQ(ValueOf("multi", "f1-micro", logits, labels), 4.0 / 6);
  EXPECT_DOUBLE_EQ(ValueOf("multi", "f1-macro", logits, labels), 2.0 / 3);
  EXPECT_DOUBLE_EQ(ValueOf("multi", "accuracy", logits, labels), 6.0 / 8);
  // Whatever is predicted where there is no label does not count.
  const at::Tensor others = Floats({3, 3}, {1, 1, -1, 1, -1, -1, -1, 1, -1});
  EXPECT_DOUBLE_EQ(ValueOf("multi", "f1-micro", others, labels), 4.0 / 6);
}

// The predictions are 0, 1, 1, 2 for the labels 0, 1, 2, 2, so F1 is 1, 2/3,
// 2/3.
TEST(MetricTest, F1OfClasses) {
  const at::Tensor logits =
      Floats({4, 3}, {1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1});
  EXPECT_DOUBLE_EQ(ValueOf("single", "f1-micro", logits, Longs({0, 1, 2, 2})),
                   3.0 / 4);
  EXPECT_NEAR(ValueOf("single", "f1-macro", logits, Longs({0, 1, 2, 2})),
              (1 + 2.0 / 3 + 2.0 / 3) / 3, 1e-12);
}

TEST(MetricTest, RmseIsOverLabelledValues) {
  const at::Tensor logits = Floats({3, 1}, {1, 2, 3});
  EXPECT_DOUBLE_EQ(
      ValueOf("regression", "", logits, Floats({3, 1}, {1, kNan, 6})),
      std::sqrt(4.5));
}

TEST(MetricTest, SumsOverRanks) {
  const at::Tensor logits = Floats({4, 1}, {0.5, 0.9, 0.5, 0.4});
  const at::Tensor labels = Floats({4, 1}, {0, 1, 1, 0});
  RunRanks(3, [&](Collectives& collectives) {
    for (const char* metric : {"rocauc", "f1-micro", "accuracy"}) {
      Metric counted(Task::Parse("binary", metric).value(), 1);
      // Rank 1 has no rows.
      const int64_t first = collectives.rank() == 0 ? 0 : 1;
      const int64_t count = collectives.rank() == 0   ? 1
                            : collectives.rank() == 1 ? 0
                                                      : 3;
      counted.Add(logits.narrow(0, first, count),
                  labels.narrow(0, first, count));
      ASSERT_TRUE(counted.AddOverRanks(collectives).ok());
      EXPECT_DOUBLE_EQ(counted.Value().value_or(-1),
                       ValueOf("binary", metric, logits, labels))
          << metric;
    }
  });
}

TEST(MetricTest, RanksThemselvesAddUp) {
  RunRanks(3, [&](Collectives& collectives) {
    for (const auto& [name, want] :
         {std::pair("mrr", (1 + 0.4 + 0.1) / 3), std::pair("hits@2", 1.0 / 3),
          std::pair("hits@3", 2.0 / 3)}) {
      Metric counted(Task::Parse("link", name).value(), 1);
      // Rank 1 has none.
      at::Tensor ranks = at::empty({0}, at::kDouble);
      if (collectives.rank() == 0) ranks = at::full({1}, 1.0, at::kDouble);
      if (collectives.rank() == 2) {
        ranks = at::full({2}, 2.5, at::kDouble);
        ranks[1] = 10.0;
      }
      counted.AddRanks(ranks);
      ASSERT_TRUE(counted.AddOverRanks(collectives).ok());
      EXPECT_DOUBLE_EQ(counted.Value().value_or(-1), want) << name;
    }
  });
}

// Rows of several columns keep their logits and labels together.
TEST(MetricTest, RocAucOfColumnsAddsUp) {
  const at::Tensor logits =
      Floats({4, 2}, {0.1, 0.9, 0.8, 0.2, 0.3, 0.4, 0.7, 0.6});
  const at::Tensor labels = Floats({4, 2}, {0, 1, 1, 0, 1, 1, 0, 0});
  const at::Tensor classes = Longs({0, 1, 1, 0});
  RunRanks(2, [&](Collectives& collectives) {
    for (const char* task : {"multi", "single"}) {
      const at::Tensor& wanted = task[0] == 'm' ? labels : classes;
      for (const int64_t first_rows : {0, 1, 4}) {
        Metric counted(Task::Parse(task, "rocauc").value(), 2);
        const int64_t begin = collectives.rank() == 0 ? 0 : first_rows;
        const int64_t end = collectives.rank() == 0 ? first_rows : 4;
        counted.Add(logits.narrow(0, begin, end - begin),
                    wanted.narrow(0, begin, end - begin));
        ASSERT_TRUE(counted.AddOverRanks(collectives).ok());
        EXPECT_DOUBLE_EQ(counted.Value().value_or(-1),
                         ValueOf(task, "rocauc", logits, wanted))
            << task << " " << first_rows;
      }
    }
  });
}

TEST(MetricTest, WithoutLabelsThereIsNoValue) {
  const at::Tensor logits = Floats({2, 1}, {0.5, -0.5});
  const at::Tensor none = Floats({2, 1}, {kNan, kNan});
  for (const char* metric : {"rocauc", "accuracy", "f1-micro", "f1-macro"}) {
    // A missing label is no column that occurs.
    EXPECT_EQ(ValueOf("binary", metric, logits, none), -1) << metric;
  }
  EXPECT_EQ(ValueOf("regression", "", logits, none), -1);
  // One label alone ranks nothing.
  EXPECT_EQ(ValueOf("binary", "", logits, Floats({2, 1}, {1, 1})), -1);
  EXPECT_EQ(ValueOf("binary", "", logits, Floats({2, 1}, {0, 0})), -1);
  // Nor has a split of which nothing was added.
  for (const char* metric : {"mrr", "hits@1", "rocauc", "accuracy"}) {
    EXPECT_EQ(Metric(Task::Parse("link", metric).value(), 1).Value(),
              std::nullopt)
        << metric;
  }
}

// A logit of 0 is no.
TEST(MetricTest, F1OfALogitOfZero) {
  const at::Tensor logits = Floats({4, 1}, {0, 0, 1, 1});
  // TP 1, FP 1, FN 1.
  EXPECT_DOUBLE_EQ(
      ValueOf("binary", "f1-micro", logits, Floats({4, 1}, {0, 1, 0, 1})),
      2.0 / 4);
}

// Class 2 is predicted but never occurs, class 3 does neither.
TEST(MetricTest, F1LeavesOutClassesThatDoNotOccur) {
  const at::Tensor logits =
      Floats({3, 4}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0});
  const at::Tensor labels = Longs({0, 0, kUnlabelled});
  // Class 0: TP 1, FN 1; class 2: FP 1.
  EXPECT_NEAR(ValueOf("single", "f1-macro", logits, labels), (2.0 / 3 + 0) / 2,
              1e-12);
  EXPECT_DOUBLE_EQ(ValueOf("single", "f1-micro", logits, labels), 2.0 / 4);
}

TEST(TaskTest, RefusesAMetricThatDoesNotFit) {
  const absl::Status status = Task::Parse("regression", "rocauc").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("the task regression\nuse rmse"),
            absl::string_view::npos)
      << status;
}

TEST(TaskTest, RocAucOfClassesNeedsTwo) {
  const Task task = Task::Parse("single", "rocauc").value();
  EXPECT_TRUE(task.CheckOutputs(2).ok());
  EXPECT_EQ(task.CheckOutputs(3).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TaskTest, LossesIgnoreUnlabelled) {
  const at::Tensor logits = Floats({2, 2}, {0, 2, -1, 100});
  const at::Tensor labels = Floats({2, 2}, {1, 0, kNan, kNan});
  // The loss is log 2 for the first, and log(1 + e^2) for the second.
  EXPECT_NEAR(LossSum(TaskKind::kMulti, logits, labels).item().toDouble(),
              std::log(2.0) + std::log1p(std::exp(2.0)), 1e-5);
  EXPECT_NEAR(LossSum(TaskKind::kRegression, logits, labels).item().toDouble(),
              1 + 4, 1e-6);
}

TEST(TaskTest, UnlabelledValuesHaveNoGradient) {
  at::Tensor logits = Floats({2, 1}, {3, 4}).requires_grad_(true);
  LossSum(TaskKind::kRegression, logits, Floats({2, 1}, {1, kNan})).backward();
  EXPECT_TRUE(at::allclose(logits.grad(), Floats({2, 1}, {4, 0})));
}

TEST(LabelsTest, ReadsEachTasksLabels) {
  const at::Tensor classes =
      ReadLabels(TaskKind::kSingle, Floats({3}, {2, kNan, 0})).value();
  EXPECT_TRUE(classes.equal(Longs({2, kUnlabelled, 0})));
  const at::Tensor values =
      ReadLabels(TaskKind::kBinary, Longs({1, -1, 0})).value();
  EXPECT_EQ(values.sizes(), at::IntArrayRef({3, 1}));
  EXPECT_EQ(CountLabelled(values), 2);
}

TEST(LabelsTest, RefusesWhatATaskDoesNotTake) {
  const at::Tensor two = Floats({1, 2}, {0.5, 1});
  for (const TaskKind kind :
       {TaskKind::kSingle, TaskKind::kMulti, TaskKind::kBinary}) {
    EXPECT_EQ(ReadLabels(kind, two).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  // These are errors of the field.
  for (const auto& [kind, words] :
       {std::pair(TaskKind::kSingle, "task single"),
        std::pair(TaskKind::kBinary, "task binary")}) {
    EXPECT_EQ(ReadLabels(kind, two).status().message().find(words), 0u);
  }
  const absl::Status broken = ReadLabels(TaskKind::kMulti, two).status();
  EXPECT_NE(broken.message().find("label 0.5 in row 0"),
            absl::string_view::npos)
      << broken;
}

}  // namespace
}  // namespace millrace::testing
