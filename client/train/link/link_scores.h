// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/decoder.h"
#include "client/train/task/link_batch.h"
#include "client/train/task/task.h"

namespace millrace {

// The end of a seed that negatives take the place of.
enum class LinkSide { kDestination, kSource };

// The scores of a batch of n edges and of the k negatives of each.
struct LinkScores {
  at::Tensor positive;  // [n]
  at::Tensor negative;  // [n, k], or [m] for kPairs; undefined if none
  // [n, k] bool: false for a negative that equals the end that it replaces;
  // undefined if all count.
  at::Tensor counted;
};

// Scores a batch, whose `rows` are from TakeEnds(). kSource is only for
// kInBatch and, if both ends are of one type, kShared. Differentiable in
// `rows`. Throws what LibTorch throws.
LinkScores ScoreLinks(const Decoder& decoder, const LinkBatch& batch,
                      const LinkEnds& rows, LinkSide side);

// kBce: the sum of binary cross-entropies over all seeds and negatives (or, if
// there are no negatives, over seeds with their labels, without NaN). A score
// with the right sign is correct.
// kSoftmax: the sum of cross-entropies of each seed among its negatives, for
// each end if possible (`one_type` says whether both ends are of one type). A
// seed that comes first is correct.
Outcome LinkOutcome(LinkLoss loss, const Decoder& decoder,
                    const LinkBatch& batch, const LinkEnds& rows,
                    bool one_type);

// Returns the ranks, [n] kDouble from 1, of the seeds among their own
// negatives, [n, k]. A tie counts half, and a NaN score is last.
at::Tensor RanksAmongNegatives(const LinkScores& scores);

}  // namespace millrace
