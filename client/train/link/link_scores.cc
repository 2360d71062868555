// SPDX-License-Identifier: Apache-2.0
#include "client/train/link/link_scores.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "client/train/task/labels.h"

namespace millrace {
namespace {

at::Tensor PairScores(const at::Tensor& query, const at::Tensor& rows) {
  return query.mul(rows).sum(1);
}

// Repeats the types of the seeds, because each pair has the type of the seed
// that it was drawn for.
at::Tensor TypesOfPairs(const LinkBatch& batch, int64_t pairs) {
  if (!batch.edge_type.defined() || batch.size() == 0) return {};
  const int64_t repeats = (pairs + batch.size() - 1) / batch.size();
  return batch.edge_type.repeat({repeats}).narrow(0, 0, pairs);
}

void ScoreCandidates(const at::Tensor& query, const at::Tensor& own_id,
                     const at::Tensor& rows, const at::Tensor& id,
                     LinkScores& scores) {
  scores.negative = at::mm(query, rows.t());
  scores.counted = own_id.unsqueeze(1).ne(id.unsqueeze(0));
}

// Logits and targets of binary decisions; a weight of 0 leaves one out.
struct Answers {
  at::Tensor logit, target, weight;
};

Answers AnswersOf(const LinkBatch& batch, const LinkScores& scores) {
  const at::Tensor& positive = scores.positive;
  if (!scores.negative.defined()) {
    return {positive, batch.label.nan_to_num(0.0),
            Labelled(batch.label).to(at::kFloat)};
  }
  const at::Tensor negative = scores.negative.flatten();
  const at::Tensor counted = scores.counted.defined()
                                 ? scores.counted.flatten().to(at::kFloat)
                                 : at::ones_like(negative);
  return {at::cat({positive, negative}),
          at::cat({at::ones_like(positive), at::zeros_like(negative)}),
          at::cat({at::ones_like(positive), counted})};
}

Outcome BceOutcome(const LinkBatch& batch, const LinkScores& scores) {
  const Answers answers = AnswersOf(batch, scores);
  const at::Tensor right =
      answers.logit.gt(0).to(at::kFloat).eq(answers.target);
  return {at::binary_cross_entropy_with_logits(answers.logit, answers.target,
                                               answers.weight, {},
                                               at::Reduction::Sum),
          answers.weight.sum(), right.mul(answers.weight).sum()};
}

// Returns the scores of negatives, with those that do not count put last.
at::Tensor Rivals(const LinkScores& scores) {
  if (!scores.counted.defined()) return scores.negative;
  return scores.negative.masked_fill(scores.counted.logical_not(),
                                     -std::numeric_limits<double>::infinity());
}

Outcome SoftmaxOutcome(const LinkScores& scores) {
  const at::Tensor rivals = Rivals(scores);
  const at::Tensor all = at::cat({scores.positive.unsqueeze(1), rivals}, 1);
  return {at::logsumexp(all, {1}).sub(scores.positive).sum(),
          at::full({}, scores.positive.size(0),
                   scores.positive.options().dtype(at::kLong)),
          rivals.lt(scores.positive.unsqueeze(1)).all(1).sum()};
}

}  // namespace

LinkScores ScoreLinks(const Decoder& decoder, const LinkBatch& batch,
                      const LinkEnds& rows, LinkSide side) {
  const bool forward = side == LinkSide::kDestination;
  const at::Tensor& own = forward ? rows.dst : rows.src;
  const at::Tensor& own_id = forward ? batch.id.dst : batch.id.src;
  const at::Tensor query =
      decoder.Query(forward ? rows.src : rows.dst, batch.edge_type);
  LinkScores scores;
  scores.positive = PairScores(query, own);
  switch (batch.negatives) {
    case NegativeShape::kPairs:
      scores.negative = PairScores(
          decoder.Query(rows.negative_src,
                        TypesOfPairs(batch, rows.negative_src.size(0))),
          rows.negative_dst);
      break;
    case NegativeShape::kPerSeed: {
      const int64_t seeds = std::max<int64_t>(batch.size(), 1);
      scores.negative =
          rows.negative_dst
              .view({batch.size(), rows.negative_dst.size(0) / seeds, -1})
              .mul(query.unsqueeze(1))
              .sum(2);
      scores.counted = batch.id.negative_dst.view({batch.size(), -1})
                           .ne(own_id.unsqueeze(1));
      break;
    }
    case NegativeShape::kShared:
      ScoreCandidates(query, own_id, rows.negative_dst, batch.id.negative_dst,
                      scores);
      break;
    case NegativeShape::kInBatch:
      ScoreCandidates(query, own_id, own, own_id, scores);
      break;
    case NegativeShape::kNone:
      break;
  }
  return scores;
}

Outcome LinkOutcome(LinkLoss loss, const Decoder& decoder,
                    const LinkBatch& batch, const LinkEnds& rows,
                    bool one_type) {
  const LinkScores scores =
      ScoreLinks(decoder, batch, rows, LinkSide::kDestination);
  if (loss == LinkLoss::kBce) return BceOutcome(batch, scores);
  Outcome outcome = SoftmaxOutcome(scores);
  const bool both = batch.negatives == NegativeShape::kInBatch ||
                    (batch.negatives == NegativeShape::kShared && one_type);
  if (!both) return outcome;
  const Outcome reverse =
      SoftmaxOutcome(ScoreLinks(decoder, batch, rows, LinkSide::kSource));
  outcome.loss = outcome.loss.add(reverse.loss);
  outcome.counted = outcome.counted.add(reverse.counted);
  outcome.correct = outcome.correct.add(reverse.correct);
  return outcome;
}

at::Tensor RanksAmongNegatives(const LinkScores& scores) {
  const at::Tensor rivals = Rivals(scores);
  const at::Tensor own = scores.positive.unsqueeze(1);
  const at::Tensor beaten = rivals.lt(own).sum(1).to(at::kDouble);
  const at::Tensor equal = rivals.eq(own).sum(1).to(at::kDouble);
  return equal.mul(-0.5).sub(beaten).add(
      static_cast<double>(rivals.size(1) + 1));
}

}  // namespace millrace
