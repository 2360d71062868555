// SPDX-License-Identifier: Apache-2.0
// Ranks of edges among all nodes except the ends of known edges ("filtered",
// Bordes et al. 2013, TransE).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "client/train/link/link_scores.h"
#include "client/train/link/link_table.h"

namespace millrace {

// The known ends of each (end, edge type). Immutable once built; any threads.
class KnownLinks {
 public:
  explicit KnownLinks(const std::vector<const LinkTable*>& tables);

  struct Link {
    int64_t type, from, to;
    friend auto operator<=>(const Link&, const Link&) = default;
  };
  // Returns the links from `from`, each once: to destinations if `from` is a
  // source (kDestination), or to sources.
  std::span<const Link> Of(LinkSide side, int64_t type, int64_t from) const;

 private:
  std::array<std::vector<Link>, 2> links_;  // by LinkSide; sorted
};

// n edges to rank, by one of their ends.
struct RankQuery {
  LinkSide side = LinkSide::kDestination;
  at::Tensor query;  // [n, d] kFloat, of the ends that stay
  at::Tensor type;   // [n] kLong; undefined if all are 0
  at::Tensor from;   // [n] kLong, original ids of the ends that stay
  at::Tensor to;     // [n] kLong, original ids (candidate rows) of the others
};

// Returns the ranks, [n] kDouble from 1, of the edges' own ends among all
// `candidates`, [N, d] kFloat, without those that `known` has. A tie counts
// half, and a NaN score is last. Uses the threads of LibTorch. Throws what
// LibTorch throws.
at::Tensor RanksAmongAll(const RankQuery& query, const at::Tensor& candidates,
                         const KnownLinks& known);

}  // namespace millrace
