// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/seed_table.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "client/train/eval/prediction.h"
#include "client/train/task/labels.h"
#include "common/base/field_error.h"
#include "common/file/npy.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

at::Tensor Ids(std::initializer_list<int64_t> values) {
  return at::tensor(std::vector<int64_t>(values), at::kLong);
}

TEST(SeedTableTest, HasTheSeedsOfASplitInOrder) {
  TestGraph graph = ClassGraph(60, 3);
  graph.splits[1].ids = {7, 30, 58};
  const auto source = Serve(graph, "seed_table", 2);
  const auto table = ReadSeedTable(source, {}, TaskKind::kSingle, "valid");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->split, "valid");
  EXPECT_EQ(table->size(), 3);
  EXPECT_TRUE(table->original_id.equal(Ids({7, 30, 58})));
  EXPECT_TRUE(table->label.equal(Ids({3, 2, 2})));
  EXPECT_TRUE(absl::IsNotFound(
      ReadSeedTable(source, {}, TaskKind::kSingle, "no").status()));
}

// Their times do not matter.
TEST(SeedTableTest, ListedSeedsMayOccurTwice) {
  const auto source = Serve(ClassGraph(60, 3), "seed_table_listed");
  ExplicitSeeds seeds;
  seeds.ids = {9, 4, 9};
  seeds.times = {1, 2, 3};
  const auto table =
      ReadSeedTable(source, {}, TaskKind::kSingle, "train", seeds);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->original_id.equal(Ids({9, 4, 9})));
  EXPECT_TRUE(table->label.equal(Ids({1, 0, 1})));
}

TEST(SeedTableTest, ReadsTheLabelsOfTheTask) {
  const auto source = Serve(ClassGraph(60, 3), "seed_table_task");
  const auto table = ReadSeedTable(source, {}, TaskKind::kRegression, "train");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->label.equal(at::tensor({0., 1., 2.}).view({3, 1})));
}

TEST(SeedTableTest, SaysThatThereAreNoLabels) {
  TestGraph graph = ClassGraph(60, 3);
  graph.types[0].label = {};
  const absl::Status status = ReadSeedTable(Serve(graph, "seed_table_bare"), {},
                                            TaskKind::kSingle, "train")
                                  .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "the seeds have no labels");
  EXPECT_EQ(ReasonOf(status), "no_labels");
}

// A job of graphs needs no name for their type.
TEST(SeedTableTest, GraphsAreNodesOfTheirType) {
  TestGraph graph = ClassGraph(60, 3);
  std::vector<std::pair<int64_t, int64_t>> members = {{0, 0}, {1, 1}};
  graph.types.push_back({.name = "graph",
                         .count = 2,
                         .label = Array::Adopt(std::vector<int64_t>{5, 6})});
  graph.relations.push_back({.name = "in", .dst = "graph", .edges = members});
  graph.splits = {{.type = "graph", .name = "train", .ids = {0, 1}}};
  JobSpec job;
  job.seed_kind = SeedKind::kGraph;
  const auto table = ReadSeedTable(Serve(graph, "seed_table_graphs"), job,
                                   TaskKind::kSingle, "train");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->label.equal(Ids({5, 6})));
}

TEST(WriteMatrixTest, ReplacesAFileByFloatsInRowOrder) {
  const std::filesystem::path folder = TestDirectory("matrix");
  const std::filesystem::path path = folder / "rows.npy";
  ASSERT_TRUE(WriteMatrix(path, at::zeros({5, 5})).ok());
  const at::Tensor columns =
      at::tensor({1., 2., 3., 4., 5., 6.}, at::kDouble).view({2, 3});
  ASSERT_TRUE(WriteMatrix(path, columns.t()).ok());
  const Array read = MapNpy(path).value();
  EXPECT_EQ(read.dtype(), DType::kFloat32);
  EXPECT_EQ(read.shape(), (std::vector<int64_t>{3, 2}));
  const auto cells = read.As<float>();
  EXPECT_EQ(std::vector<float>(cells.begin(), cells.end()),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_FALSE(std::filesystem::exists(folder / "rows.npy.tmp"));
}

TEST(WriteMatrixTest, LeavesNothingOfAFileThatIsNotWritten) {
  const std::filesystem::path folder = TestDirectory("matrix_refused");
  std::filesystem::create_directories(folder / "rows.npy" / "full");
  const absl::Status status =
      WriteMatrix(folder / "rows.npy", at::zeros({2, 2}));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find((folder / "rows.npy").string()),
            absl::string_view::npos)
      << status;
  EXPECT_FALSE(std::filesystem::exists(folder / "rows.npy.tmp"));
  EXPECT_FALSE(WriteMatrix(folder / "no" / "rows.npy", at::zeros({2})).ok());
}

}  // namespace
}  // namespace millrace::testing
