// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/divide_edges.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/edge_reader.h"
#include "common/ingest/select_edges.h"
#include "common/ingest/split_import.h"
#include "common/random/philox.h"
#include "common/sample/draw/draw.h"

namespace millrace {
namespace {

constexpr int kShares = 3;

// Bytes per edge: its key twice and, with --coalesce, its pair.
constexpr int64_t kKeyBytes = 2 * sizeof(uint64_t);
constexpr int64_t kPairBytes = 3 * sizeof(uint64_t);

absl::StatusOr<size_t> FindRelation(const RawGraph& graph,
                                    const std::string& name) {
  if (name.empty() && graph.edges.size() == 1) return 0;
  std::vector<std::string> names;
  for (const RawEdges& edges : graph.edges) {
    names.push_back(graph.RelationName(edges));
    if (names.back() == name) return names.size() - 1;
  }
  const std::string all = absl::StrJoin(names, ", ");
  if (name.empty()) {
    return InvalidField({.problem = FieldError::Problem::kMissing,
                         .field = "edge_split_type",
                         .limit = StrCat("the relations are ", all)});
  }
  return InvalidField(
      {.field = "edge_split_type",
       .value = name,
       .limit = StrCat("there is no such relation; the relations are ", all)});
}

// Maps times to unsigned numbers in the same order.
uint64_t TimeKey(int64_t time) {
  return static_cast<uint64_t>(time) ^ (uint64_t{1} << 63);
}

struct Pair {
  int64_t first, second;
};

struct PairedEdge {
  int64_t first, second, id;
  friend auto operator<=>(const PairedEdge&, const PairedEdge&) = default;
};

class EdgeDivider {
 public:
  EdgeDivider(const RawGraph& graph, const ImportOptions& options,
              size_t relation)
      : graph_(graph),
        options_(options),
        edges_(graph.edges[relation]),
        same_type_(edges_.src == edges_.dst) {
    division_.edges = relation;
    DrawDomain domain;
    domain.job_seed = options.split_seed;
    domain.purpose = Purpose::kShuffle;
    domain.relation = static_cast<int>(relation);
    hash_key_ = domain.Key();
  }

  absl::StatusOr<EdgeDivision> Run() {
    MILLRACE_RETURN_IF_ERROR(Read());
    SkipRepeated();
    FindCuts();
    Divide();
    return std::move(division_);
  }

 private:
  absl::Status Read();
  uint64_t Key(const EdgeChunk& chunk, int64_t i) const;
  void SkipRepeated();
  void FindCuts();
  void Divide();

  // The ends of an edge; unless `directed`, the smaller id comes first.
  static Pair PairOf(const EdgeChunk& chunk, int64_t i, bool directed) {
    const int64_t src = chunk.src(i), dst = chunk.dst(i);
    if (directed || src < dst) return {src, dst};
    return {dst, src};
  }

  const RawGraph& graph_;
  const ImportOptions& options_;
  const RawEdges& edges_;
  const bool same_type_;
  PhiloxKey hash_key_;

  std::vector<uint64_t> keys_;     // by position
  std::vector<bool> loops_;        // by position; neither seeds nor held out
  std::vector<bool> repeated_;     // by position; not seeds; empty if none
  std::vector<PairedEdge> pairs_;  // filled with `coalesce`
  std::optional<uint64_t> cuts_[kShares];  // the largest key of each share
  EdgeDivision division_;
};

uint64_t EdgeDivider::Key(const EdgeChunk& chunk, int64_t i) const {
  if (options_.edge_split_by == EdgeSplitBy::kTime) {
    return TimeKey(chunk.time[i]);
  }
  const Pair pair = PairOf(chunk, i, !same_type_);
  const PhiloxWords words =
      Philox(hash_key_, {static_cast<uint32_t>(pair.first),
                         static_cast<uint32_t>(pair.first >> 32),
                         static_cast<uint32_t>(pair.second),
                         static_cast<uint32_t>(pair.second >> 32)});
  return words[0] | (uint64_t{words[1]} << 32);
}

absl::Status EdgeDivider::Read() {
  const RawEdges slim = WithoutWeights(edges_);
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<EdgeReader> reader,
                            EdgeReader::Open(graph_, slim));
  const bool skips_loops =
      same_type_ && options_.self_loops != SelfLoops::kKeep;
  const bool directed = !(same_type_ && options_.undirected);
  EdgeChunk chunk;
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const bool more, reader->Next(chunk));
    if (!more) return absl::OkStatus();
    for (int64_t i = 0; i < chunk.count; ++i) {
      keys_.push_back(Key(chunk, i));
      loops_.push_back(skips_loops && chunk.src(i) == chunk.dst(i));
      if (!options_.coalesce) continue;
      const Pair pair = PairOf(chunk, i, directed);
      pairs_.push_back({pair.first, pair.second, chunk.first + i});
    }
  }
}

void EdgeDivider::SkipRepeated() {
  if (!options_.coalesce) return;
  repeated_.assign(keys_.size(), false);
  std::sort(pairs_.begin(), pairs_.end());
  for (size_t i = 1; i < pairs_.size(); ++i) {
    if (pairs_[i].first == pairs_[i - 1].first &&
        pairs_[i].second == pairs_[i - 1].second) {
      repeated_[pairs_[i].id] = true;
    }
  }
  std::vector<PairedEdge>().swap(pairs_);
}

void EdgeDivider::FindCuts() {
  std::vector<uint64_t> keys;  // keys of the seeds
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (loops_[i] || (!repeated_.empty() && repeated_[i])) continue;
    keys.push_back(keys_[i]);
  }
  double share = 0;
  for (int i = 0; i < kShares; ++i) {
    share += options_.edge_split_fractions[i];
    const auto end = std::min<int64_t>(
        static_cast<int64_t>(keys.size()),
        std::llround(share * static_cast<double>(keys.size())));
    if (end == 0) continue;
    const auto last = keys.begin() + (end - 1);
    std::nth_element(keys.begin(), last, keys.end());
    cuts_[i] = *last;
  }
}

void EdgeDivider::Divide() {
  const bool holds_out = options_.edge_split_by == EdgeSplitBy::kRandom;
  if (holds_out) division_.held_out.assign(keys_.size(), false);
  for (size_t id = 0; id < keys_.size(); ++id) {
    if (loops_[id]) continue;
    int share = 0;
    while (share < kShares && !(cuts_[share] && keys_[id] <= *cuts_[share])) {
      ++share;
    }
    if (share == kShares) continue;
    if (holds_out && share > 0) division_.held_out[id] = true;
    if (!repeated_.empty() && repeated_[id]) continue;
    division_.ids[share].push_back(static_cast<int64_t>(id));
  }
}

}  // namespace

absl::Status CheckEdgeDivision(const RawGraph& graph,
                               const ImportOptions& options) {
  MILLRACE_RETURN_IF_ERROR(
      CheckFractions("edge_split_fractions", options.edge_split_fractions));
  MILLRACE_ASSIGN_OR_RETURN(const size_t relation,
                            FindRelation(graph, options.edge_split_type));
  const RawEdges& edges = graph.edges[relation];
  for (const RawEdgeSplit& split : graph.edge_splits) {
    if (split.edges != relation) continue;
    return WithAdvice(
        InvalidField({.field = "edge_split_fractions",
                      .limit = StrCat(graph.RelationName(edges),
                                      " already has splits in this input")}),
        "leave them out");
  }
  if (options.edge_split_by == EdgeSplitBy::kTime && edges.time == nullptr) {
    return WithAdvice(
        InvalidField(
            {.field = "edge_split_by",
             .value = "time",
             .limit = StrCat("the edges of ", graph.RelationName(edges),
                             " have no times in this input")}),
        "give edge times, or divide the edges at random");
  }
  const int64_t count = edges.endpoints->rows();  // -1 if unknown
  return CheckMemory(
      StrCat("dividing ", count, " edges into splits"),
      SaturatedProduct(
          {count, options.coalesce ? kKeyBytes + kPairBytes : kKeyBytes}),
      "do without, give the splits as files, or use a host with more memory");
}

absl::StatusOr<EdgeDivision> DivideEdges(const RawGraph& graph,
                                         const ImportOptions& options) {
  MILLRACE_ASSIGN_OR_RETURN(const size_t relation,
                            FindRelation(graph, options.edge_split_type));
  return EdgeDivider(graph, options, relation).Run();
}

}  // namespace millrace
