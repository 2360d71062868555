// SPDX-License-Identifier: Apache-2.0
#include "common/sample/ppr.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw.h"
#include "common/sample/word_stream.h"

namespace millrace {
namespace {

constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

// Where each walker is after each step; kNowhere once it has ended.
using Paths = std::vector<std::vector<uint64_t>>;  // [step][walker]

// Takes out the walkers that end before step `step`.
void EndSome(const DrawContext& context, RelationIndex relation, double restart,
             std::vector<uint32_t>& active, std::vector<uint64_t>& at) {
  const DrawDomain domain = {.job_seed = context.job_seed,
                             .epoch = context.epoch,
                             .batch = context.batch,
                             .purpose = Purpose::kStop,
                             .hop = context.hop,
                             .relation = relation};
  const PhiloxKey key = domain.Key();
  const auto limit = static_cast<uint64_t>(std::ldexp(restart, 32));
  size_t left = 0;
  for (size_t i = 0; i < active.size(); ++i) {
    if (WordStream(domain, key, active[i], 0).Word(0) < limit) continue;
    active[left] = active[i];
    at[left++] = at[i];
  }
  active.resize(left);
  at.resize(left);
}

absl::StatusOr<Paths> Walk(int hop, DrawContext context, const JobSpec& spec,
                           RelationIndex relation, const Frontier& frontier,
                           NeighborSource& source) {
  const auto walks = static_cast<size_t>(spec.walks);
  const size_t walkers = frontier.ids.size() * walks;
  std::vector<uint32_t> active(walkers);
  std::vector<uint64_t> at(walkers);
  for (size_t w = 0; w < walkers; ++w) {
    active[w] = static_cast<uint32_t>(w);
    at[w] = frontier.ids[w / walks];
  }
  Paths paths;
  for (int step = 0; step < spec.walk_length && !active.empty(); ++step) {
    context.hop = kMaxWalkLength * hop + step;
    if (step > 0) EndSome(context, relation, spec.restart, active, at);
    if (active.empty()) break;
    const Frontier here = {.relation = relation,
                           .fanout = 1,
                           .ids = at,
                           .trees = active,
                           .excluded = frontier.excluded};
    Picks picks;
    MILLRACE_RETURN_IF_ERROR(
        source.Expand(context, std::span(&here, 1), std::span(&picks, 1)));
    size_t left = 0;
    for (size_t i = 0; i < active.size(); ++i) {
      if (picks.counts[i] != 0) active[left++] = active[i];
    }
    active.resize(left);
    at = std::move(picks.neighbors);
    std::vector<uint64_t>& places = paths.emplace_back(walkers, kNowhere);
    for (size_t i = 0; i < left; ++i) places[active[i]] = at[i];
  }
  return paths;
}

struct Visited {
  uint64_t id;
  uint32_t visits;
  size_t first;  // place of the first visit
};

// The nodes that walkers `begin` to below `end` visited, each once; `scratch`
// is (id, place).
std::vector<Visited> CountVisits(
    const Paths& paths, size_t begin, size_t end, uint64_t start,
    std::vector<std::pair<uint64_t, size_t>>& scratch) {
  scratch.clear();
  for (size_t walker = begin; walker < end; ++walker) {
    for (const std::vector<uint64_t>& places : paths) {
      if (places[walker] == kNowhere) break;
      if (places[walker] == start) continue;
      scratch.emplace_back(places[walker], scratch.size());
    }
  }
  std::sort(scratch.begin(), scratch.end());
  std::vector<Visited> visited;
  for (const auto& [id, place] : scratch) {
    if (visited.empty() || visited.back().id != id) {
      visited.push_back({id, 0, place});
    }
    ++visited.back().visits;
  }
  return visited;
}

void KeepMostVisited(int32_t fanout, std::vector<Visited>& visited) {
  std::sort(
      visited.begin(), visited.end(), [](const Visited& a, const Visited& b) {
        return a.visits != b.visits ? a.visits > b.visits : a.first < b.first;
      });
  if (fanout != kAllNeighbors && visited.size() > static_cast<size_t>(fanout)) {
    visited.resize(fanout);
  }
}

}  // namespace

absl::Status AddPprHop(int hop, DrawContext context, TopologyBuilder& builder,
                       NeighborSource& source) {
  const JobSpec& spec = builder.job().spec;
  const RelationIndex relation = builder.job().metapath[0];
  const int32_t fanout = builder.job().fanouts[relation][hop];
  const TypeIndex type = builder.list_type(relation);
  const uint32_t begin = builder.frontier_begin(type);
  const uint32_t end = builder.frontier_end(type);
  if (fanout == 0 || begin == end) return builder.CloseHop();
  const auto walks = static_cast<uint64_t>(spec.walks);
  if ((end - begin) * walks > std::numeric_limits<uint32_t>::max()) {
    return absl::OutOfRangeError(StrCat(
        "hop ", hop, " would have ", (end - begin) * walks,
        " walks; the limit is 2^32\nuse a smaller --batch-size or --walks"));
  }
  context.walk = true;
  context.replace = true;
  context.edge_ids = false;
  const Frontier frontier = builder.FrontierOf(relation, fanout, begin, end);
  MILLRACE_ASSIGN_OR_RETURN(
      const Paths paths, Walk(hop, context, spec, relation, frontier, source));
  Picks picks;
  std::vector<uint32_t> visits;
  std::vector<std::pair<uint64_t, size_t>> scratch;
  for (size_t f = 0; f < frontier.ids.size(); ++f) {
    std::vector<Visited> visited = CountVisits(
        paths, f * walks, (f + 1) * walks, frontier.ids[f], scratch);
    KeepMostVisited(fanout, visited);
    picks.counts.push_back(static_cast<uint32_t>(visited.size()));
    for (const Visited& node : visited) {
      picks.neighbors.push_back(node.id);
      visits.push_back(node.visits);
    }
  }
  picks.edge_ids.assign(picks.neighbors.size(), -1);
  MILLRACE_RETURN_IF_ERROR(builder.AddPicks(relation, begin, picks, visits));
  return builder.CloseHop();
}

}  // namespace millrace
