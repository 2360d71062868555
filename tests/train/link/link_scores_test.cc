// SPDX-License-Identifier: Apache-2.0
// Losses and ranks of edges, compared with loops over single scores.
#include "client/train/link/link_scores.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "client/nn/parameters.h"
#include "client/train/link/link_ranks.h"

namespace millrace {
namespace {

constexpr int64_t kNodes = 9;
constexpr int64_t kWidth = 4;
constexpr int64_t kTypes = 3;

// Edges and negatives over the nodes 0 .. kNodes - 1, which are also row
// numbers.
LinkBatch SomeLinks(NegativeShape shape) {
  LinkBatch links;
  links.negatives = shape;
  links.id.src = at::tensor({0, 1, 2, 3, 1}, at::kLong);
  links.id.dst = at::tensor({4, 5, 6, 4, 2}, at::kLong);
  links.edge_type = at::tensor({0, 1, 2, 1, 0}, at::kLong);
  switch (shape) {
    case NegativeShape::kPairs:
      links.id.negative_src = at::tensor({8, 0, 3, 5, 2, 6, 7}, at::kLong);
      links.id.negative_dst = at::tensor({1, 7, 3, 0, 8, 5, 2}, at::kLong);
      break;
    case NegativeShape::kPerSeed:
      links.id.negative_dst =
          at::tensor({7, 8, 0, 1, 3, 8, 6, 5, 2, 7}, at::kLong);
      break;
    case NegativeShape::kShared:
      // One of them is the destination of some seed.
      links.id.negative_dst = at::tensor({4, 7, 0}, at::kLong);
      break;
    default:
      break;
  }
  links.row = links.id;
  return links;
}

class LinkScoresTest : public ::testing::TestWithParam<DecoderKind> {
 protected:
  LinkScoresTest()
      : initializer_(3),
        decoder_(GetParam(), kTypes, kWidth, parameters_, initializer_),
        rows_(initializer_.Uniform({kNodes, kWidth}, 1.0)) {}

  // The score of one edge by definition.
  double Score(int64_t src, int64_t type, int64_t dst) const {
    double sum = 0;
    for (int64_t d = 0; d < kWidth; ++d) {
      double term =
          rows_[src][d].item().toDouble() * rows_[dst][d].item().toDouble();
      if (GetParam() == DecoderKind::kDistMult) {
        term *= parameters_.parameters()[0].tensor[type][d].item().toDouble();
      }
      sum += term;
    }
    return sum;
  }

  Outcome Run(LinkLoss loss, const LinkBatch& links,
              bool one_type = true) const {
    return LinkOutcome(loss, decoder_, links, TakeEnds(links.row, rows_, rows_),
                       one_type);
  }

  ParameterSet parameters_;
  Initializer initializer_;
  Decoder decoder_;
  at::Tensor rows_;
};

int64_t At(const at::Tensor& tensor, int64_t i) {
  return tensor[i].item().toLong();
}

// Sums over the cross-entropies of single answers.
struct Sums {
  double loss = 0;
  int64_t counted = 0, correct = 0;

  void Answer(double score, bool yes) {
    loss += std::log1p(std::exp(yes ? -score : score));
    ++counted;
    correct += (score > 0) == yes;
  }
  void Choose(double score, const std::vector<double>& rivals) {
    double all = std::exp(score);
    bool first = true;
    for (const double rival : rivals) {
      all += std::exp(rival);
      first &= rival < score;
    }
    loss += std::log(all) - score;
    ++counted;
    correct += first;
  }
  void Expect(const Outcome& outcome) const {
    EXPECT_NEAR(outcome.loss.item().toDouble(), loss, 1e-4);
    EXPECT_EQ(outcome.counted.item().toLong(), counted);
    EXPECT_EQ(outcome.correct.item().toLong(), correct);
  }
};

TEST_P(LinkScoresTest, AnswersForPairs) {
  const LinkBatch links = SomeLinks(NegativeShape::kPairs);
  Sums sums;
  for (int64_t i = 0; i < 5; ++i) {
    sums.Answer(
        Score(At(links.id.src, i), At(links.edge_type, i), At(links.id.dst, i)),
        true);
  }
  for (int64_t i = 0; i < 7; ++i) {
    sums.Answer(Score(At(links.id.negative_src, i), At(links.edge_type, i % 5),
                      At(links.id.negative_dst, i)),
                false);
  }
  sums.Expect(Run(LinkLoss::kBce, links));
}

TEST_P(LinkScoresTest, ComparesWithNegativesOfEachSeed) {
  const LinkBatch links = SomeLinks(NegativeShape::kPerSeed);
  Sums answers, choices;
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t src = At(links.id.src, i), type = At(links.edge_type, i);
    const double own = Score(src, type, At(links.id.dst, i));
    std::vector<double> rivals;
    for (int64_t k = 0; k < 2; ++k) {
      // The last seed has its own destination as a negative.
      const int64_t negative = At(links.id.negative_dst, 2 * i + k);
      if (negative == At(links.id.dst, i)) continue;
      rivals.push_back(Score(src, type, negative));
      answers.Answer(rivals.back(), false);
    }
    answers.Answer(own, true);
    choices.Choose(own, rivals);
  }
  answers.Expect(Run(LinkLoss::kBce, links));
  choices.Expect(Run(LinkLoss::kSoftmax, links));
}

// Replaces both ends in turn; a negative equal to the end does not count.
TEST_P(LinkScoresTest, ComparesWithSharedNegativesAtBothEnds) {
  const LinkBatch links = SomeLinks(NegativeShape::kShared);
  Sums one, both;
  for (const bool reverse : {false, true}) {
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t type = At(links.edge_type, i);
      int64_t stays = At(links.id.src, i), moves = At(links.id.dst, i);
      if (reverse) std::swap(stays, moves);
      std::vector<double> rivals;
      for (int64_t k = 0; k < 3; ++k) {
        const int64_t rival = At(links.id.negative_dst, k);
        if (rival != moves) rivals.push_back(Score(stays, type, rival));
      }
      both.Choose(Score(stays, type, moves), rivals);
      if (!reverse) one.Choose(Score(stays, type, moves), rivals);
    }
  }
  both.Expect(Run(LinkLoss::kSoftmax, links, true));
  one.Expect(Run(LinkLoss::kSoftmax, links, false));
}

// This holds even if the two ends have different types; equal ends do not
// compete.
TEST_P(LinkScoresTest, ComparesWithTheOtherSeeds) {
  const LinkBatch links = SomeLinks(NegativeShape::kInBatch);
  Sums sums;
  for (const bool reverse : {false, true}) {
    const at::Tensor& stay = reverse ? links.id.dst : links.id.src;
    const at::Tensor& move = reverse ? links.id.src : links.id.dst;
    for (int64_t i = 0; i < 5; ++i) {
      std::vector<double> rivals;
      for (int64_t j = 0; j < 5; ++j) {
        if (At(move, j) == At(move, i)) continue;
        rivals.push_back(
            Score(At(stay, i), At(links.edge_type, i), At(move, j)));
      }
      sums.Choose(Score(At(stay, i), At(links.edge_type, i), At(move, i)),
                  rivals);
    }
  }
  sums.Expect(Run(LinkLoss::kSoftmax, links, false));
}

TEST_P(LinkScoresTest, UsesLabelsWithoutNegatives) {
  LinkBatch links = SomeLinks(NegativeShape::kNone);
  const double none = std::nan("");
  links.label = at::tensor({1.0, 0.0, none, none, 1.0}, at::kFloat);
  Sums sums;
  for (const int64_t i : {0, 1, 4}) {
    sums.Answer(
        Score(At(links.id.src, i), At(links.edge_type, i), At(links.id.dst, i)),
        i != 1);
  }
  sums.Expect(Run(LinkLoss::kBce, links));
}

// A score of 0 says that a pair is not an edge.
TEST_P(LinkScoresTest, AScoreOfZeroMeansNotAnEdge) {
  rows_.zero_();
  const Outcome pairs = Run(LinkLoss::kBce, SomeLinks(NegativeShape::kPairs));
  EXPECT_EQ(pairs.counted.item().toLong(), 5 + 7);
  EXPECT_EQ(pairs.correct.item().toLong(), 7);
  EXPECT_NEAR(pairs.loss.item().toDouble(), 12 * std::log(2.0), 1e-5);
  // Nor does a tie make an edge the first.
  EXPECT_EQ(Run(LinkLoss::kSoftmax, SomeLinks(NegativeShape::kShared))
                .correct.item()
                .toLong(),
            0);
}

TEST_P(LinkScoresTest, RanksAmongAllExceptKnownOnes) {
  const LinkBatch links = SomeLinks(NegativeShape::kNone);
  // Equal rows give ties.
  rows_[7].copy_(rows_[4]);
  rows_[8].copy_(rows_[4]);
  const LinkTable own{links.id.src, links.id.dst, links.edge_type};
  // The known edges are one of the ties, and another edge twice.
  const LinkTable other{at::tensor({0, 0, 0, 7}, at::kLong),
                        at::tensor({7, 1, 1, 5}, at::kLong),
                        at::tensor({0, 0, 0, 1}, at::kLong)};
  const KnownLinks known({&own, &other});
  const auto is_known = [&](int64_t src, int64_t type, int64_t dst) {
    for (const LinkTable* table : {&own, &other}) {
      for (int64_t i = 0; i < table->size(); ++i) {
        if (At(table->src, i) == src && At(table->dst, i) == dst &&
            At(table->edge_type, i) == type) {
          return true;
        }
      }
    }
    return false;
  };
  for (const bool reverse : {false, true}) {
    const at::Tensor& stay = reverse ? links.id.dst : links.id.src;
    const at::Tensor& move = reverse ? links.id.src : links.id.dst;
    const at::Tensor ranks = RanksAmongAll(
        {reverse ? LinkSide::kSource : LinkSide::kDestination,
         decoder_.Query(rows_.index_select(0, stay), links.edge_type),
         links.edge_type, stay, move},
        rows_, known);
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t type = At(links.edge_type, i);
      const double score = Score(At(stay, i), type, At(move, i));
      double rank = 1;
      for (int64_t v = 0; v < kNodes; ++v) {
        if (reverse ? is_known(v, type, At(stay, i))
                    : is_known(At(stay, i), type, v)) {
          continue;
        }
        const double rival = Score(At(stay, i), type, v);
        if (std::abs(rival - score) < 1e-9) {
          rank += 0.5;
        } else if (rival > score) {
          rank += 1;
        }
      }
      EXPECT_EQ(ranks[i].item().toDouble(), rank) << reverse << " " << i;
    }
  }
}

TEST_P(LinkScoresTest, AnEdgeThatIsNotKnownDoesNotCompeteWithItself) {
  const LinkBatch links = SomeLinks(NegativeShape::kNone);
  const at::Tensor query =
      decoder_.Query(rows_.index_select(0, links.id.src), links.edge_type);
  const RankQuery asked = {LinkSide::kDestination, query, links.edge_type,
                           links.id.src, links.id.dst};
  const at::Tensor ranks = RanksAmongAll(asked, rows_, KnownLinks({}));
  for (int64_t i = 0; i < 5; ++i) {
    const auto score_of = [&](int64_t v) {
      return Score(At(links.id.src, i), At(links.edge_type, i), v);
    };
    const int64_t to = At(links.id.dst, i);
    double rank = 1;
    for (int64_t v = 0; v < kNodes; ++v) {
      if (v == to) continue;
      if (std::abs(score_of(v) - score_of(to)) < 1e-9) {
        rank += 0.5;
      } else if (score_of(v) > score_of(to)) {
        rank += 1;
      }
    }
    EXPECT_EQ(ranks[i].item().toDouble(), rank) << i;
  }
}

// Other known edges do not improve the rank of an edge whose score is NaN.
TEST_P(LinkScoresTest, NanRanksLastOfAllNodesWhateverIsKnown) {
  const LinkBatch links = SomeLinks(NegativeShape::kNone);
  const LinkTable own{links.id.src, links.id.dst, links.edge_type};
  const at::Tensor query =
      at::full_like(rows_.index_select(0, links.id.src), std::nan(""));
  const RankQuery asked = {LinkSide::kDestination, query, links.edge_type,
                           links.id.src, links.id.dst};
  const LinkTable known{
      at::tensor({At(links.id.src, 0)}, at::kLong),
      at::tensor({(At(links.id.dst, 0) + 1) % kNodes}, at::kLong),
      at::tensor({At(links.edge_type, 0)}, at::kLong)};
  const at::Tensor ranks =
      RanksAmongAll(asked, rows_, KnownLinks({&own, &known}));
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ranks[i].item().toDouble(), kNodes) << i;
  }
}

TEST(LinkTableTest, EdgeTypesAreThoseUpToTheLargest) {
  const at::Tensor ids = at::tensor({5, 6, 7}, at::kLong);
  EXPECT_EQ(
      (LinkTable{ids, ids, at::tensor({0, 0, 0}, at::kLong)}.edge_types()), 1);
  EXPECT_EQ(
      (LinkTable{ids, ids, at::tensor({0, 3, 1}, at::kLong)}.edge_types()), 4);
  const at::Tensor none = at::empty({0}, at::kLong);
  EXPECT_EQ((LinkTable{none, none, none}.edge_types()), 1);
}

INSTANTIATE_TEST_SUITE_P(Decoders, LinkScoresTest,
                         ::testing::Values(DecoderKind::kDot,
                                           DecoderKind::kDistMult),
                         [](const auto& info) {
                           return info.param == DecoderKind::kDot
                                      ? std::string("dot")
                                      : std::string("distmult");
                         });

TEST(LinkRanks, TiesCountHalfAndNanIsLast) {
  LinkScores scores;
  scores.positive = at::tensor({1.0, std::nan(""), 3.0}, at::kFloat);
  scores.negative =
      at::tensor({1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 9.0, 3.0, 3.0}, at::kFloat)
          .view({3, 3});
  scores.counted = at::ones({3, 3}, at::kBool);
  scores.counted[2][0] = false;
  const at::Tensor ranks = RanksAmongNegatives(scores);
  EXPECT_EQ(ranks[0].item().toDouble(), 2.5);
  EXPECT_EQ(ranks[1].item().toDouble(), 4.0);
  EXPECT_EQ(ranks[2].item().toDouble(), 2.0);
}

}  // namespace
}  // namespace millrace
