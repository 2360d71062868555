// SPDX-License-Identifier: Apache-2.0
#include "client/train/learner.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/train/label_objective.h"
#include "common/base/field_error.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

class LearnerTest : public ::testing::Test {
 protected:
  LearnerTest() {
    JobSpec job;
    job.fanouts = {2, 2};
    job.batch_size = 20;
    batches_ = AllBatches(source_, job);  // of 20 and 10 seeds
    config_.in = 6;
    config_.hidden = 8;
    config_.out = 4;
    config_.norm = NormKind::kBatch;
  }

  std::unique_ptr<Learner> Make(Collectives& collectives) const {
    return Learner::Create(Model::Create(config_).value(), optimizer_,
                           objective_, collectives)
        .value();
  }
  Minibatch MinibatchOf(const Learner& learner, size_t batch) const {
    return MakeMinibatch(batches_[batch], const_cast<Learner&>(learner).model())
        .value();
  }
  static std::vector<at::Tensor> Copies(Learner& learner) {
    std::vector<at::Tensor> copies;
    for (const NamedTensor& named : learner.model().parameters().State()) {
      copies.push_back(named.tensor.detach().clone());
    }
    return copies;
  }
  static bool Equal(const std::vector<at::Tensor>& a,
                    const std::vector<at::Tensor>& b) {
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
  }

  const std::shared_ptr<BatchSource> source_ =
      Serve(ClassGraph(100, 30), "learner");
  const NodeObjective objective_{Task()};
  std::vector<Batch> batches_;
  ModelConfig config_;
  OptimizerConfig optimizer_ = {.weight_decay = 0.5};
};

TEST_F(LearnerTest, SaysThatTheOptimizerDoesNotFitInMemory) {
  auto model = Model::Create(config_).value();
  model->parameters().AddParameter(
      "huge", at::zeros({1}, at::kFloat).expand({int64_t{1} << 46}));
  RunRanks(1, [&](Collectives& collectives) {
    const absl::Status status =
        Learner::Create(std::move(model), optimizer_, objective_, collectives)
            .status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(ReasonOf(status), "out_of_memory");
  });
}

// Weight decay would change the weights all the same.
TEST_F(LearnerTest, AStepWithoutLabelsChangesNothing) {
  RunRanks(1, [&](Collectives& collectives) {
    const auto learner = Make(collectives);
    const std::vector<at::Tensor> before = Copies(*learner);
    const auto sums = learner->Step(nullptr, {}, 0.1);
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_EQ(sums->labelled, 0);
    EXPECT_EQ(learner->optimizer_steps(), 0);
    EXPECT_TRUE(Equal(Copies(*learner), before));
    const Minibatch minibatch = MinibatchOf(*learner, 0);
    ASSERT_TRUE(learner->Step(&minibatch, {}, 0.1).ok());
    EXPECT_EQ(learner->optimizer_steps(), 1);
    EXPECT_FALSE(Equal(Copies(*learner), before));
  });
}

TEST_F(LearnerTest, ALossThatIsNotFiniteChangesNoWeight) {
  config_.norm = NormKind::kNone;
  RunRanks(1, [&](Collectives& collectives) {
    const auto learner = Make(collectives);
    const std::vector<at::Tensor> before = Copies(*learner);
    Minibatch minibatch = MinibatchOf(*learner, 0);
    minibatch.graph.nodes[0].x =
        at::full_like(minibatch.graph.nodes[0].x, std::nan(""));
    const auto sums = learner->Step(&minibatch, {}, 0.1);
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_TRUE(std::isnan(sums->loss));
    EXPECT_EQ(sums->labelled, 20);
    EXPECT_EQ(learner->optimizer_steps(), 0);
    EXPECT_TRUE(Equal(Copies(*learner), before));
  });
}

TEST_F(LearnerTest, GoesOnFromACheckpoint) {
  RunRanks(1, [&](Collectives& collectives) {
    const auto whole = Make(collectives);
    const auto rest = Make(collectives);
    const Minibatch first = MinibatchOf(*whole, 0);
    const Minibatch second = MinibatchOf(*whole, 1);
    ASSERT_TRUE(whole->Step(&first, {}, 0.1).ok());
    Checkpoint checkpoint;
    ASSERT_TRUE(whole->SaveTo(checkpoint).ok());
    EXPECT_EQ(checkpoint.model.size(), Copies(*whole).size());
    EXPECT_FALSE(checkpoint.optimizer.empty());
    EXPECT_TRUE(checkpoint.ranks.empty());
    const std::vector<at::Tensor> saved = Copies(*whole);
    // The checkpoint has copies, which further steps leave alone.
    ASSERT_TRUE(whole->Step(&second, {}, 0.1).ok());
    ASSERT_TRUE(rest->Load(checkpoint, 1, /*same_world=*/true).ok());
    EXPECT_TRUE(Equal(Copies(*rest), saved));
    EXPECT_EQ(rest->optimizer_steps(), 1);
    ASSERT_TRUE(rest->Step(&second, {}, 0.1).ok());
    EXPECT_TRUE(Equal(Copies(*rest), Copies(*whole)));
  });
}

const at::Tensor& Find(const std::vector<NamedTensor>& tensors,
                       const std::string& name) {
  const auto found = std::find_if(
      tensors.begin(), tensors.end(),
      [&](const NamedTensor& named) { return named.name == name; });
  EXPECT_NE(found, tensors.end()) << name;
  return found->tensor;
}

// Each rank has its own running statistics until they are averaged. The model
// in the checkpoint has the mean by seeds, for another number of ranks.
TEST_F(LearnerTest, ACheckpointHasTheStatisticsOfEveryRank) {
  Checkpoint saved;
  std::vector<at::Tensor> own(2);
  RunRanks(2, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    const auto learner = Make(collectives);
    const Minibatch minibatch = MinibatchOf(*learner, rank);
    ASSERT_TRUE(learner->Step(&minibatch, {}, 0.1).ok());
    const at::Tensor buffer = learner->model().parameters().buffers()[0].tensor;
    own[rank] = buffer.clone();
    Checkpoint checkpoint;
    ASSERT_TRUE(learner->SaveTo(checkpoint).ok());
    EXPECT_TRUE(buffer.equal(own[rank]));
    // Only rank 0 writes it.
    EXPECT_EQ(checkpoint.model.empty(), rank == 1);
    EXPECT_EQ(checkpoint.optimizer.empty(), rank == 1);
    if (rank == 0) saved = checkpoint;
  });
  const std::string name =
      Model::Create(config_).value()->parameters().buffers()[0].name;
  const at::Tensor& rows = Find(saved.ranks, name);
  EXPECT_TRUE(rows[0].equal(own[0]));
  EXPECT_TRUE(rows[1].equal(own[1]));
  EXPECT_FALSE(own[0].equal(own[1]));
  const at::Tensor mean = (rows[0] * 20 + rows[1] * 10) / 30;
  EXPECT_TRUE(at::allclose(Find(saved.model, name), mean));
  EXPECT_TRUE(Find(saved.ranks, TrainStep::kRankSeeds)
                  .equal(at::tensor({20, 10}, at::kLong)));

  RunRanks(2, [&](Collectives& collectives) {
    for (const bool same_world : {false, true}) {
      const auto learner = Make(collectives);
      ASSERT_TRUE(learner->Load(saved, 1, same_world).ok());
      const at::Tensor loaded =
          learner->model().parameters().buffers()[0].tensor;
      EXPECT_TRUE(
          at::allclose(loaded, same_world ? own[collectives.rank()] : mean));
      ASSERT_TRUE(learner->AverageBuffers().ok());
      // Without the ranks' rows nothing has been trained since the average.
      EXPECT_TRUE(at::allclose(loaded, mean));
    }
  });
}

}  // namespace
}  // namespace millrace::testing
