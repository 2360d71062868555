// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/ppr.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw/word_stream.h"

namespace millrace {
namespace {

// Maximum memory that counting takes for each visit of one node's walkers, in
// vectors that grow by doubling.
constexpr uint64_t kBytesPerVisit = 80;

constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

// The id of the node where each walker is after each step; kNowhere once it has
// ended.
using Paths = std::vector<std::vector<uint64_t>>;  // [step][walker]

class RestartingWalkers {
 public:
  RestartingWalkers(const DrawContext& context, const JobSpec& spec,
                    const Frontier& frontier, NeighborSource& source,
                    CancelPoller& poller)
      : context_(context),
        spec_(spec),
        frontier_(frontier),
        source_(source),
        poller_(poller),
        count_(frontier.ids.size() * static_cast<size_t>(spec.walks)) {}
  ~RestartingWalkers() { source_.Release(reserved_); }
  RestartingWalkers(const RestartingWalkers&) = delete;
  RestartingWalkers& operator=(const RestartingWalkers&) = delete;

  absl::Status Walk(int hop);
  const Paths& paths() const { return paths_; }

  // Reserves `bytes` more of memory, which the destructor releases.
  absl::Status Reserve(uint64_t bytes) {
    reserved_ += bytes;
    return source_.Reserve(bytes);
  }

 private:
  absl::Status Start();
  absl::Status EndSome();
  absl::Status Step();
  absl::Status NotePlaces();

  DrawContext context_;
  const JobSpec& spec_;
  const Frontier& frontier_;
  NeighborSource& source_;
  CancelPoller& poller_;
  const size_t count_;
  uint64_t reserved_ = 0;         // bytes
  std::vector<uint32_t> active_;  // numbers of the walkers that have not ended
  std::vector<uint64_t> at_;      // ids of the nodes where they are
  Paths paths_;
};

absl::Status RestartingWalkers::Walk(int hop) {
  MILLRACE_RETURN_IF_ERROR(Start());
  for (int step = 0; step < spec_.walk_length && !active_.empty(); ++step) {
    context_.hop = kMaxWalkLength * hop + step;
    if (step > 0) MILLRACE_RETURN_IF_ERROR(EndSome());
    if (active_.empty()) break;
    MILLRACE_RETURN_IF_ERROR(Step());
    MILLRACE_RETURN_IF_ERROR(NotePlaces());
  }
  return absl::OkStatus();
}

absl::Status RestartingWalkers::Start() {
  const auto walks = static_cast<size_t>(spec_.walks);
  MILLRACE_RETURN_IF_ERROR(
      Reserve(count_ * (sizeof(uint32_t) + sizeof(uint64_t))));
  active_.reserve(count_);
  at_.reserve(count_);
  return poller_.InPieces(count_, [&](size_t begin, size_t end) {
    for (size_t w = begin; w < end; ++w) {
      active_.push_back(static_cast<uint32_t>(w));
      at_.push_back(frontier_.ids[w / walks]);
    }
  });
}

// Removes the walkers that end before the step.
absl::Status RestartingWalkers::EndSome() {
  const DrawDomain domain = {.job_seed = context_.job_seed,
                             .epoch = context_.epoch,
                             .batch = context_.batch,
                             .purpose = Purpose::kStop,
                             .hop = context_.hop,
                             .relation = frontier_.relation};
  const PhiloxKey key = domain.Key();
  const auto limit = static_cast<uint64_t>(std::ldexp(spec_.restart, 32));
  size_t left = 0;
  MILLRACE_RETURN_IF_ERROR(
      poller_.InPieces(active_.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          WordStream words(domain, key, active_[i], 0);
          if (words.Word(0) < limit) continue;
          active_[left] = active_[i];
          at_[left++] = at_[i];
        }
      }));
  active_.resize(left);
  at_.resize(left);
  return absl::OkStatus();
}

// Walkers whose list is empty end here.
absl::Status RestartingWalkers::Step() {
  const Frontier here = {.relation = frontier_.relation,
                         .fanout = 1,
                         .ids = at_,
                         .trees = active_,
                         .excluded = frontier_.excluded};
  Picks picks;
  MILLRACE_RETURN_IF_ERROR(
      source_.Expand(context_, std::span(&here, 1), std::span(&picks, 1)));
  size_t left = 0;
  MILLRACE_RETURN_IF_ERROR(
      poller_.InPieces(active_.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          if (picks.counts[i] != 0) active_[left++] = active_[i];
        }
      }));
  active_.resize(left);
  at_ = std::move(picks.neighbors);
  return absl::OkStatus();
}

absl::Status RestartingWalkers::NotePlaces() {
  MILLRACE_RETURN_IF_ERROR(Reserve(count_ * sizeof(uint64_t)));
  std::vector<uint64_t>& places = paths_.emplace_back();
  places.reserve(count_);
  MILLRACE_RETURN_IF_ERROR(poller_.InPieces(
      count_, [&](size_t, size_t end) { places.resize(end, kNowhere); }));
  return poller_.InPieces(active_.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) places[active_[i]] = at_[i];
  });
}

struct Visited {
  uint64_t id;
  uint32_t visits;
  size_t first;  // position of the first visit
};

// The nodes other than `start` that the walkers [begin, end) visited, each
// once; `scratch` is (id, position).
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
    return FieldStatus(absl::StatusCode::kOutOfRange,
                       {.problem = FieldError::Problem::kTooMuch,
                        .field = "walks",
                        .value = StrCat("hop ", hop, " would have ",
                                        (end - begin) * walks, " walks"),
                        .limit = "2^32"});
  }
  context.walk = true;
  context.replace = true;
  context.edge_ids = false;
  const Frontier frontier = builder.MakeFrontier(relation, fanout, begin, end);
  CancelPoller poller([&source] { return source.CheckNotCancelled(); });
  RestartingWalkers walkers(context, spec, frontier, source, poller);
  MILLRACE_RETURN_IF_ERROR(walkers.Walk(hop));
  const size_t visits_per_node = walks * walkers.paths().size();
  MILLRACE_RETURN_IF_ERROR(walkers.Reserve(visits_per_node * kBytesPerVisit));
  Picks picks;
  std::vector<uint32_t> visits;
  std::vector<std::pair<uint64_t, size_t>> scratch;
  for (size_t f = 0; f < frontier.ids.size(); ++f) {
    MILLRACE_RETURN_IF_ERROR(poller.Count(visits_per_node));
    std::vector<Visited> visited = CountVisits(
        walkers.paths(), f * walks, (f + 1) * walks, frontier.ids[f], scratch);
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
