// SPDX-License-Identifier: Apache-2.0
#include "client/train/link/link_ranks.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr int64_t kScoresAtOnce = int64_t{1} << 24;

// The product of two rows in float32 may be off by this times |a| |b|.
constexpr float kRounding = 1e-5f;

// One edge among the candidates for one end. Scores that rounding could have
// put before or behind the edge's own are computed again, in double and in a
// fixed order, so that equal rows tie whatever the matrix product did to them.
class Standing {
 public:
  // scores: [count] of candidates [count, width]; query: [width]; bound: at
  // least |query| |candidate|.
  Standing(const float* scores, const float* query,
           const at::Tensor& candidates, int64_t own, float bound)
      : scores_(scores),
        query_(query),
        rows_(candidates.const_data_ptr<float>()),
        count_(candidates.size(0)),
        width_(candidates.size(1)),
        own_(own),
        exact_own_(Exact(own)),
        low_(scores[own] - kRounding * bound),
        high_(scores[own] + kRounding * bound) {}

  double Rank(std::span<const KnownLinks::Link> known) const {
    if (std::isnan(exact_own_)) return static_cast<double>(count_);
    int64_t ahead = 0;
    for (int64_t i = 0; i < count_; ++i) ahead += scores_[i] > high_;
    int64_t twice_ahead = 2 * ahead;
    for (int64_t i = 0; i < count_; ++i) {
      if (IsNear(i)) twice_ahead += TwiceAhead(i);
    }
    bool own_known = false;
    for (const KnownLinks::Link& link : known) {
      twice_ahead -= TwiceAhead(link.to);
      own_known |= link.to == own_;
    }
    if (!own_known) twice_ahead -= TwiceAhead(own_);
    return 1.0 + 0.5 * static_cast<double>(twice_ahead);
  }

 private:
  bool IsNear(int64_t i) const {
    return !(scores_[i] < low_) && !(scores_[i] > high_);
  }
  // Returns 2 if candidate `i` comes before the edge itself or its score is
  // NaN, 1 for a tie, and 0 otherwise.
  int64_t TwiceAhead(int64_t i) const {
    if (!IsNear(i)) return scores_[i] > high_ ? 2 : 0;
    const double exact = Exact(i);
    if (exact < exact_own_) return 0;
    return exact == exact_own_ ? 1 : 2;
  }
  double Exact(int64_t i) const {
    double sum = 0;
    for (int64_t d = 0; d < width_; ++d) {
      sum += static_cast<double>(query_[d]) *
             static_cast<double>(rows_[i * width_ + d]);
    }
    return sum;
  }

  const float* const scores_;
  const float* const query_;
  const float* const rows_;
  const int64_t count_;
  const int64_t width_;
  const int64_t own_;
  const double exact_own_;
  const float low_, high_;
};

at::Tensor RowNorms(const at::Tensor& rows) {
  return rows.square().sum(1).sqrt();
}

void AppendLinks(const at::Tensor& type, const at::Tensor& from,
                 const at::Tensor& to, std::vector<KnownLinks::Link>& links) {
  const at::Tensor columns[] = {type.contiguous(), from.contiguous(),
                                to.contiguous()};
  const auto* types = columns[0].const_data_ptr<int64_t>();
  const auto* froms = columns[1].const_data_ptr<int64_t>();
  const auto* tos = columns[2].const_data_ptr<int64_t>();
  for (int64_t i = 0; i < from.size(0); ++i) {
    links.push_back({types[i], froms[i], tos[i]});
  }
}

}  // namespace

KnownLinks::KnownLinks(const std::vector<const LinkTable*>& tables) {
  for (const LinkTable* table : tables) {
    AppendLinks(table->edge_type, table->src, table->dst, links_[0]);
    AppendLinks(table->edge_type, table->dst, table->src, links_[1]);
  }
  for (std::vector<Link>& links : links_) {
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
  }
}

std::span<const KnownLinks::Link> KnownLinks::Of(LinkSide side, int64_t type,
                                                 int64_t from) const {
  const std::vector<Link>& links = links_[static_cast<size_t>(side)];
  const auto before = [](const Link& a, const Link& b) {
    return std::pair(a.type, a.from) < std::pair(b.type, b.from);
  };
  const auto [begin, end] =
      std::equal_range(links.begin(), links.end(), Link{type, from, 0}, before);
  return {begin, end};
}

at::Tensor RanksAmongAll(const RankQuery& query, const at::Tensor& nodes,
                         const KnownLinks& known) {
  const at::Tensor candidates = nodes.contiguous();
  const at::Tensor queries = query.query.contiguous();
  const at::Tensor from = query.from.contiguous();
  const at::Tensor to = query.to.contiguous();
  const at::Tensor type =
      query.type.defined() ? query.type.contiguous() : at::Tensor();
  const int64_t edges = queries.size(0);
  const int64_t count = candidates.size(0);
  at::Tensor ranks = at::empty({edges}, at::kDouble);
  if (edges == 0) return ranks;
  const at::Tensor bounds = RowNorms(queries).mul(RowNorms(candidates).max());
  const auto rank_of = [&](int64_t edge, const float* scores) {
    const auto at_edge = [edge](const at::Tensor& ids) {
      return ids.const_data_ptr<int64_t>()[edge];
    };
    const Standing standing(
        scores, queries.const_data_ptr<float>() + edge * queries.size(1),
        candidates, at_edge(to), bounds.const_data_ptr<float>()[edge]);
    return standing.Rank(known.Of(
        query.side, type.defined() ? at_edge(type) : 0, at_edge(from)));
  };
  auto* rank = ranks.mutable_data_ptr<double>();
  const int64_t step = std::max<int64_t>(1, kScoresAtOnce / count);
  for (int64_t first = 0; first < edges; first += step) {
    const int64_t rows = std::min(step, edges - first);
    const at::Tensor scores =
        at::mm(queries.narrow(0, first, rows), candidates.t());
    const auto* score = scores.const_data_ptr<float>();
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        rank[first + i] = rank_of(first + i, score + i * count);
      }
    });
  }
  return ranks;
}

}  // namespace millrace
