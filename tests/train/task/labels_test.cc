// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/labels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/base/field_error.h"

namespace millrace::testing {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

at::Tensor Numbers(const std::vector<double>& values) {
  return at::tensor(values, at::kFloat);
}
at::Tensor Integers(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

// Whether values are equal, with NaN in the same places.
bool Same(const at::Tensor& got, const at::Tensor& want) {
  return got.sizes() == want.sizes() &&
         got.scalar_type() == want.scalar_type() &&
         at::allclose(got, want, 0, 0, /*equal_nan=*/true);
}

at::Tensor LabelsOf(TaskKind kind, const at::Tensor& stored) {
  const auto labels = ReadLabels(kind, stored);
  EXPECT_TRUE(labels.ok()) << labels.status();
  return labels.value_or(at::Tensor());
}

// Returns "MESSAGE (REASON)".
std::string Refusal(TaskKind kind, const at::Tensor& stored) {
  const absl::Status status = ReadLabels(kind, stored).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message()) + " (" + ReasonOf(status) + ")";
}

TEST(ReadLabelsTest, ClassesAreNumbersFromZero) {
  const at::Tensor want = Integers({2, kUnlabelled, 0, kUnlabelled});
  EXPECT_TRUE(
      Same(LabelsOf(TaskKind::kSingle, Integers({2, -1, 0, -7})), want));
  EXPECT_TRUE(
      Same(LabelsOf(TaskKind::kSingle, Integers({2, -1, 0, -7}).to(at::kInt)),
           want));
  EXPECT_TRUE(
      Same(LabelsOf(TaskKind::kSingle, Numbers({2, -1, 0, kMissing})), want));
  EXPECT_TRUE(Same(
      LabelsOf(TaskKind::kSingle, Numbers({2, -1, 0, kMissing}).view({4, 1})),
      want));
  EXPECT_TRUE(
      Same(LabelsOf(TaskKind::kSingle, Integers({}).view({0})), Integers({})));
}

TEST(ReadLabelsTest, NamesWhatIsNoClass) {
  EXPECT_EQ(
      Refusal(TaskKind::kSingle, Numbers({2, 0, 1.5, 0.25})),
      "label 1.5 in row 2 is not a class number (labels_are_not_classes)");
  EXPECT_EQ(
      Refusal(TaskKind::kSingle, Numbers({1, -0.5})),
      "label -0.5 in row 1 is not a class number (labels_are_not_classes)");
  EXPECT_EQ(Refusal(TaskKind::kSingle, Numbers({1, 2, 3, 4}).view({2, 2})),
            "task single: takes one class per node, but the labels are 2 "
            "columns (several_labels_per_node)");
  EXPECT_EQ(Refusal(TaskKind::kSingle, at::zeros({3, 0})),
            "task single: takes one class per node, but the labels are 0 "
            "columns (several_labels_per_node)");
}

TEST(ReadLabelsTest, YesAndNoAreOneAndZero) {
  for (const TaskKind kind : {TaskKind::kMulti, TaskKind::kBinary}) {
    const at::Tensor want = Numbers({1, 0, kMissing, kMissing}).view({4, 1});
    EXPECT_TRUE(Same(LabelsOf(kind, Numbers({1, 0, kMissing, -3})), want));
    EXPECT_TRUE(Same(LabelsOf(kind, Integers({1, 0, -1, -3})), want));
  }
  const at::Tensor columns = Numbers({1, 0, -1, 1, kMissing, 0}).view({2, 3});
  EXPECT_TRUE(Same(LabelsOf(TaskKind::kMulti, columns),
                   Numbers({1, 0, kMissing, 1, kMissing, 0}).view({2, 3})));
}

TEST(ReadLabelsTest, NamesWhatIsNeitherYesNorNo) {
  EXPECT_EQ(Refusal(TaskKind::kBinary, Integers({0, 1, 1, 2})),
            "label 2 in row 3 is neither 0 nor 1 (labels_are_not_binary)");
  EXPECT_EQ(
      Refusal(TaskKind::kMulti, Numbers({0, 1, 1, 0, 0.75, 1}).view({3, 2})),
      "label 0.75 in row 2 is neither 0 nor 1 (labels_are_not_binary)");
  EXPECT_EQ(Refusal(TaskKind::kBinary, Numbers({0, 1, 1, 0}).view({2, 2})),
            "task binary: takes one value per node, but the labels are 2 "
            "columns (several_values_per_node)");
}

TEST(ReadLabelsTest, NumbersMayBeAny) {
  EXPECT_TRUE(
      Same(LabelsOf(TaskKind::kRegression, Numbers({-2, 0.5, kMissing})),
           Numbers({-2, 0.5, kMissing}).view({3, 1})));
  EXPECT_TRUE(Same(
      LabelsOf(TaskKind::kRegression, Integers({-2, 5, 7, 8}).view({2, 2})),
      Numbers({-2, 5, 7, 8}).view({2, 2})));
}

TEST(LabelledTest, MissingOnesDoNotCount) {
  EXPECT_TRUE(Labelled(Integers({0, kUnlabelled, 5}))
                  .equal(at::tensor({1, 0, 1}, at::kLong).to(at::kBool)));
  EXPECT_TRUE(Labelled(Numbers({0, kMissing, -5}))
                  .equal(at::tensor({1, 0, 1}, at::kLong).to(at::kBool)));
  EXPECT_EQ(CountLabelled(Integers({0, kUnlabelled, 5})), 2);
  EXPECT_EQ(CountLabelled(Numbers({0, kMissing, 1, kMissing}).view({2, 2})), 2);
  EXPECT_EQ(CountLabelled(Integers({})), 0);
}

}  // namespace
}  // namespace millrace::testing
