// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/decoder.h"
#include "client/train/task/link_batch.h"
#include "client/train/task/task.h"

namespace millrace {

// Which end of a seed the negatives stand in for.
enum class LinkSide { kDestination, kSource };

// The scores of a batch of edges and of its negatives. n seeds, k negatives
// each.
struct LinkScores {
  at::Tensor positive;  // [n]
  at::Tensor negative;  // [n, k], or [m] of kPairs; undefined: none
  // [n, k] bool: false where a negative is the end that it stands in for;
  // undefined: all count.
  at::Tensor counted;
};

// `rows`: see TakeEnds. kSource: of kShared and kInBatch alone; of kShared
// the ends must be of one type. Differentiable in `rows`. Throws what LibTorch
// throws.
LinkScores ScoreLinks(const Decoder& decoder, const LinkBatch& batch,
                      const LinkEnds& rows, LinkSide side);

// kBce: a yes or no for each seed and each negative (without negatives: the
// seeds' labels, NaN left out), the sum of the cross-entropies; correct is who
// has the sign.
// kSoftmax: the seed among its negatives, once for each end where that can
// be (`one_type`: both ends are of one type); correct is who is first.
Outcome LinkOutcome(LinkLoss loss, const Decoder& decoder,
                    const LinkBatch& batch, const LinkEnds& rows,
                    bool one_type);

// [n] kDouble: the ranks of the seeds among their own negatives [n, k], from
// 1; a tie counts half, and a NaN score is last.
at::Tensor RanksAmongNegatives(const LinkScores& scores);

}  // namespace millrace
