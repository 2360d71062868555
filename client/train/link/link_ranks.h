// SPDX-License-Identifier: Apache-2.0
// Ranks of edges among all nodes, less the edges that are known ("filtered",
// Bordes et al. 2013).
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
  // The links from `from`, each once: to destinations (kDestination: `from`
  // is a source), or to sources.
  std::span<const Link> Of(LinkSide side, int64_t type, int64_t from) const;

 private:
  std::array<std::vector<Link>, 2> links_;  // by LinkSide; sorted
};

// What ranks are asked for: n edges.
struct RankQuery {
  LinkSide side = LinkSide::kDestination;
  at::Tensor query;  // [n, d] float, of the ends that stay
  at::Tensor type;   // [n] kLong; undefined: all 0
  at::Tensor from;   // [n] kLong, original ids of the ends that stay
  at::Tensor to;     // [n] kLong, of the other ends: rows of the candidates
};

// [n] kDouble: the ranks, from 1, of the edges' own ends among all
// `candidates` [N, d] without those that `known` has; a tie counts half, and a
// score that is NaN is last. Uses the threads of LibTorch.
at::Tensor RanksAmongAll(const RankQuery& query, const at::Tensor& candidates,
                         const KnownLinks& known);

}  // namespace millrace
