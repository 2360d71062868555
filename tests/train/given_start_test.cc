// SPDX-License-Identifier: Apache-2.0
// Weights, an order of seeds, and splits that the user provides.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/train/run/checkpoint.h"
#include "client/train/run/weights_file.h"
#include "client/train/trainer.h"
#include "common/base/field_error.h"
#include "common/file/npy.h"
#include "tests/support/test_directory.h"
#include "tests/train/script_support.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSeeds = 40;  // batches of 16, 16 and 8

std::string WriteWeights(const std::filesystem::path& path,
                         std::vector<NamedTensor> tensors) {
  Checkpoint checkpoint;
  checkpoint.model = std::move(tensors);
  EXPECT_TRUE(WriteCheckpoint(path, checkpoint).ok());
  return path.string();
}

// The tensors that a trainer with `options` starts with.
std::vector<NamedTensor> StateOf(const TrainOptions& options) {
  const auto source = Serve(ClassGraph(100, kSeeds), "given_start_state");
  std::vector<NamedTensor> state;
  RunRanks(1, [&](Collectives& collectives) {
    const auto trainer = Trainer::Create(source, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    for (const NamedTensor& named : (*trainer)->model().parameters().State()) {
      state.push_back({named.name, named.tensor.detach().clone()});
    }
  });
  return state;
}

void ExpectEqual(const std::vector<NamedTensor>& got,
                 const std::vector<NamedTensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, want[i].name);
    EXPECT_TRUE(got[i].tensor.equal(want[i].tensor)) << want[i].name;
  }
}

// Python's torch.save(model.state_dict(), FILE) wrote this file in DGL's
// tutorial.
TEST(WeightsFileTest, ReadsTheStateDictOfPython) {
  const auto weights =
      ReadWeights(std::filesystem::path(MILLRACE_SOURCE_DIR) /
                  "docs/examples/001_graph_classification/initial_weights.pt");
  ASSERT_TRUE(weights.ok()) << weights.status();
  std::map<std::string, at::Tensor> by_name;
  for (const NamedTensor& named : *weights) by_name[named.name] = named.tensor;
  ASSERT_EQ(by_name.size(), 6u);
  EXPECT_TRUE(by_name["convs.0.eps"].equal(at::zeros({1})));
  EXPECT_TRUE(at::allclose(by_name["convs.0.nn.weight"],
                           at::tensor({-0.0075f, 0.5364f}).view({2, 1}), 0,
                           1e-4));
  EXPECT_TRUE(at::allclose(
      by_name["convs.1.nn.weight"],
      at::tensor({-0.2723f, 0.1896f, -0.0140f, 0.5607f}).view({2, 2}), 0,
      1e-4));
  EXPECT_TRUE(at::allclose(by_name["convs.1.nn.bias"],
                           at::tensor({-0.0628f, 0.1871f}), 0, 1e-4));
}

TEST(InitTest, EveryRankStartsWithRankZerosFile) {
  const auto directory = TestDirectory("given_init");
  TrainOptions options = SmallRun();
  options.model.norm = NormKind::kBatch;
  options.model.seed = 77;
  const std::vector<NamedTensor> other = StateOf(options);
  options.model.seed = 1;
  options.init = WriteWeights(directory / "other.pt", other);
  const auto source = Serve(ClassGraph(100, kSeeds), "given_init_ranks");
  RunRanks(2, [&](Collectives& collectives) {
    TrainOptions own = options;
    if (collectives.rank() != 0) own.init = "not/on/this/host.pt";
    const auto trainer = Trainer::Create(source, collectives, own);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    ExpectEqual((*trainer)->model().parameters().State(), other);
  });
}

TEST(InitTest, ACheckpointTakesPrecedence) {
  const auto directory = TestDirectory("given_checkpoint");
  const auto source = Serve(ClassGraph(100, kSeeds), "given_checkpoint_store");
  TrainOptions options = SmallRun();
  options.model.seed = 77;
  options.init = WriteWeights(directory / "start.pt", StateOf(options));
  options.model.seed = 1;
  options.checkpoint = (directory / "run").string();
  options.resume = true;  // there is no checkpoint yet
  options.epochs = 1;
  TrainRanks(1, source, options);
  std::filesystem::remove(options.init);
  const auto trained = ReadWeights(directory / "run" / "last.pt");
  ASSERT_TRUE(trained.ok()) << trained.status();
  ExpectEqual(StateOf(options), *trained);
}

TEST(InitTest, RefusesFilesWithoutWeights) {
  const auto directory = TestDirectory("given_no_weights");
  TrainOptions options = SmallRun();
  options.init = (directory / "absent.pt").string();
  EXPECT_EQ(Refusal(ClassGraph(100, kSeeds), options).code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr("absent.pt"));

  options.init = WriteWeights(directory / "cut.pt", StateOf(SmallRun()));
  std::filesystem::resize_file(options.init,
                               std::filesystem::file_size(options.init) / 2);
  EXPECT_EQ(Refusal(ClassGraph(100, kSeeds), options).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              AllOf(HasSubstr("cut.pt: "), HasSubstr("it is cut off"),
                    HasSubstr("\nthe file is damaged: copy or save it again")));

  const auto refusal = [&](const char* name, const char* what) {
    options.init = (directory / name).string();
    EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
                AllOf(HasSubstr(name), HasSubstr(what),
                      HasSubstr("\ngive a file written by torch.save(model."
                                "state_dict(), FILE), not the model")));
  };
  std::ofstream(directory / "text.pt") << "weights";
  refusal("text.pt", ": this is not a file written by torch.save");
  std::ofstream(directory / "empty.pt").flush();
  refusal("empty.pt", " is empty");
  SaveScript(SageScript(6, 8, 4, 1), directory / "script.pt");
  refusal("script.pt",
          ": a TorchScript archive, not a file written by torch.save");
}

TEST(InitTest, NamesTheModelOfWeightsThatDoNotFit) {
  const auto directory = TestDirectory("given_unfit");
  TrainOptions options = SmallRun();
  options.init = WriteWeights(directory / "none.pt", {});
  EXPECT_EQ(ReasonOf(Refusal(ClassGraph(100, kSeeds), options)),
            "weights_of_other_model");
}

TEST(InitTest, NamesTheTensorThatDiffers) {
  const auto directory = TestDirectory("given_differs");
  TrainOptions options = SmallRun();
  const std::vector<NamedTensor> right = StateOf(options);
  const auto refusal = [&](const std::vector<NamedTensor>& tensors) {
    options.init = WriteWeights(directory / "differs.pt", tensors);
    const absl::Status status = Refusal(ClassGraph(100, kSeeds), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("init "));
    EXPECT_THAT(status.message(), HasSubstr("differs.pt"));
    return std::string(status.message());
  };
  std::vector<NamedTensor> tensors = right;
  tensors.push_back({"convs.2.lin_l.weight", at::zeros({1})});
  EXPECT_THAT(refusal(tensors),
              HasSubstr("the model has no tensor \"convs.2.lin_l.weight\""));
  tensors = right;
  tensors.pop_back();
  EXPECT_THAT(refusal(tensors),
              HasSubstr("\"" + right.back().name + "\" is missing"));
  tensors = right;
  tensors[0].tensor = at::zeros({3, 5});
  EXPECT_THAT(refusal(tensors),
              HasSubstr("\"" + right[0].name + "\" is [3, 5], but"));
}

// The seeds that each epoch trained on, in the order of the batches.
std::map<int, std::vector<int64_t>> Consumed(const std::string& log) {
  std::map<int, std::map<int, std::vector<int64_t>>> batches;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("batch")) continue;  // the start of an attempt
    batches[json["epoch"]][json["batch"]] =
        json["seeds"].get<std::vector<int64_t>>();
  }
  std::map<int, std::vector<int64_t>> epochs;
  for (const auto& [epoch, seeds] : batches) {
    for (const auto& [batch, ids] : seeds) {
      epochs[epoch].insert(epochs[epoch].end(), ids.begin(), ids.end());
    }
  }
  return epochs;
}

std::vector<int64_t> EveryThird() {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kSeeds; ++i) ids.push_back(i * 3 % kSeeds);
  return ids;
}

std::string WriteOrder(const std::filesystem::path& path,
                       std::vector<int64_t> ids, int64_t rows = 0) {
  const auto size = static_cast<int64_t>(ids.size());
  std::vector<int64_t> shape = {size};
  if (rows > 0) shape = {rows, size / rows};
  const Array array = Array::Adopt(std::move(ids), std::move(shape));
  std::filesystem::remove(path);
  EXPECT_TRUE(WriteNpy(path, array).ok());
  return path.string();
}

class OrderTest : public ::testing::TestWithParam<int> {};

TEST_P(OrderTest, BatchesAreConsecutivePieces) {
  const auto directory = TestDirectory("given_order");
  const auto source = Serve(ClassGraph(100, kSeeds), "given_order_store", 2);
  TrainOptions options = SmallRun();
  options.consumed_log = (directory / "consumed").string();
  const std::vector<int64_t> first = EveryThird();
  options.order = WriteOrder(directory / "alike.npy", first);
  TrainRanks(GetParam(), source, options);
  EXPECT_EQ(Consumed(options.consumed_log),
            (std::map<int, std::vector<int64_t>>{{0, first}, {1, first}}));

  const std::vector<int64_t> second(first.rbegin(), first.rend());
  std::vector<int64_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  options.order = WriteOrder(directory / "each.npy", both, 2);
  TrainRanks(GetParam(), source, options);
  EXPECT_EQ(Consumed(options.consumed_log),
            (std::map<int, std::vector<int64_t>>{{0, first}, {1, second}}));
}
INSTANTIATE_TEST_SUITE_P(Worlds, OrderTest, ::testing::Values(1, 2));

TEST(GivenOrderTest, AppliesToASeedsFile) {
  const auto directory = TestDirectory("given_order_list");
  const auto source = Serve(ClassGraph(100, kSeeds), "given_order_list_store");
  TrainOptions options = SmallRun();
  options.epochs = 1;
  options.seeds.emplace().ids = {70, 5, 61};
  options.consumed_log = (directory / "consumed").string();
  options.order = WriteOrder(directory / "order.npy", {61, 70, 5});
  TrainRanks(1, source, options);
  EXPECT_THAT(Consumed(options.consumed_log)[0], ElementsAre(61, 70, 5));
  options.order = WriteOrder(directory / "split.npy", EveryThird());
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr(": 0 is not one of the job's seeds"));
}

TEST(GivenOrderTest, NamesTheSeedThatDoesNotFit) {
  const auto directory = TestDirectory("given_order_refused");
  const auto refusal = [&](const std::vector<int64_t>& ids, int64_t rows) {
    TrainOptions options = SmallRun();
    options.order = WriteOrder(directory / "order.npy", ids, rows);
    const absl::Status status = Refusal(ClassGraph(100, kSeeds), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("order.npy"));
    return std::string(status.message());
  };
  std::vector<int64_t> ids = EveryThird();
  ids[7] = kSeeds + 3;  // a node of the valid split
  EXPECT_THAT(refusal(ids, 0), HasSubstr(": 43 is not one of the job's seeds"));
  ids[7] = ids[5];
  EXPECT_THAT(refusal(ids, 0), HasSubstr(": seed 15 occurs twice"));
  ids = EveryThird();
  ids.erase(ids.begin() + 5);
  EXPECT_THAT(refusal(ids, 0), HasSubstr(": seed 15 is missing"));
  EXPECT_THAT(refusal(EveryThird(), 1),
              HasSubstr(": has 1 rows, but there are 2 epochs"));
  std::vector<int64_t> both = EveryThird();
  ids = EveryThird();
  ids[0] = ids[1];
  both.insert(both.end(), ids.begin(), ids.end());
  EXPECT_THAT(refusal(both, 2), HasSubstr(": row 1: seed 3 occurs twice"));
  EXPECT_THAT(refusal(both, 4), HasSubstr(": row 0: seed 1 is missing"));
}

TEST(GivenOrderTest, RefusesWhatItCannotOrder) {
  const auto directory = TestDirectory("given_order_refused_job");
  TrainOptions options = SmallRun();
  options.order = (directory / "floats.npy").string();
  ASSERT_TRUE(
      WriteNpy(options.order, Array::Adopt(std::vector<float>{1, 2})).ok());
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr("holds float32 (2)"));
  options.order = WriteOrder(directory / "order.npy", EveryThird());
  options.seeds.emplace().ids = {1, 2, 1};
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr("seed 1 occurs twice among the job's seeds"));
}

TEST(GivenOrderTest, IsPartOfARun) {
  const auto directory = TestDirectory("given_order_run");
  const auto source = Serve(ClassGraph(100, kSeeds), "given_order_run_store");
  TrainOptions options = SmallRun();
  options.order = WriteOrder(directory / "order.npy", EveryThird());
  options.checkpoint = (directory / "run").string();
  TrainRanks(1, source, options);
  options.resume = true;
  options.epochs = 3;
  std::vector<int64_t> other = EveryThird();
  std::reverse(other.begin(), other.end());
  options.order = WriteOrder(directory / "other.npy", other);
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr(": order "));
  // The order has the same list twice, and another one for the remaining epoch.
  const std::vector<int64_t> first = EveryThird();
  std::vector<int64_t> lists = first;
  lists.insert(lists.end(), first.begin(), first.end());
  options.order = WriteOrder(directory / "two.npy", lists, 2);
  options.epochs = 2;
  EXPECT_TRUE(Refusal(ClassGraph(100, kSeeds), options).ok());
  options.epochs = 3;
  lists.insert(lists.end(), other.begin(), other.end());
  options.order = WriteOrder(directory / "three.npy", lists, 3);
  EXPECT_TRUE(Refusal(ClassGraph(100, kSeeds), options).ok());
  std::copy(other.begin(), other.end(), lists.begin() + kSeeds);
  options.order = WriteOrder(directory / "changed.npy", lists, 3);
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr(": order "));
  // The order has fewer epochs than the run has trained.
  options.epochs = 1;
  options.order = WriteOrder(directory / "one.npy", other, 1);
  EXPECT_THAT(Refusal(ClassGraph(100, kSeeds), options).message(),
              HasSubstr(" up to epoch 2"));
  // Evaluation alone needs no order.
  options.epochs = 0;
  options.order.clear();
  options.job.shuffle = false;
  TrainRanks(1, source, options);
}

TEST(GivenOrderTest, RefusesRanksWithDifferentOrders) {
  const auto directory = TestDirectory("given_order_ranks");
  const auto source = Serve(ClassGraph(100, kSeeds), "given_order_ranks_store");
  std::vector<int64_t> ids = EveryThird();
  std::vector<TrainOptions> runs(2, SmallRun());
  runs[0].order = WriteOrder(directory / "rank_0.npy", ids);
  std::swap(ids[0], ids[1]);
  runs[1].order = WriteOrder(directory / "rank_1.npy", ids);
  const absl::Status status = CreateTrainers({source, source}, runs)[1];
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank_1.npy of rank 1 differs from rank 0's"));
}

TEST(SplitOptionsTest, NamedSplitsAreEvaluated) {
  TestGraph graph = ClassGraph(100, kSeeds);
  graph.splits.push_back(
      {.type = graph.types[0].name, .name = "odd", .ids = {95, 97, 99}});
  const auto source = Serve(graph, "given_splits");
  TrainOptions options = SmallRun();
  options.valid_split = "odd";
  options.test_split = "train";
  for (const MetricsRecord& record : TrainRanks(1, source, options)) {
    const double right = *record.metrics.valid * 3;
    EXPECT_NEAR(right, std::round(right), 1e-9);
    EXPECT_EQ(record.metrics.test, record.metrics.train);
  }
}

TEST(SplitOptionsTest, NamedSplitsMustBeThere) {
  for (const bool valid : {true, false}) {
    TrainOptions options = SmallRun();
    (valid ? options.valid_split : options.test_split) = "valid3";
    const absl::Status status = Refusal(ClassGraph(100, kSeeds), options);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(status.message(), HasSubstr("has no split \"valid3\""));
  }
}

}  // namespace
}  // namespace millrace::testing
