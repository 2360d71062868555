// SPDX-License-Identifier: Apache-2.0
// Every kind of job over RandomGraph(), by name.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sampled.h"

namespace millrace::testing {

struct Variant {
  std::string name;
  std::function<void(JobSpec&)> set;
  Direction direction = Direction::kIn;

  // A job with explicit seeds, which are items.
  JobSpec Job() const {
    JobSpec spec = ExplicitJob({}, "item");
    spec.direction = direction;
    spec.fanouts = {3, 2, 2};
    set(spec);
    return spec;
  }
  // PPR's edges are not edges of the graph.
  bool has_edge_ids() const { return Job().method != SampleMethod::kPpr; }
};

// All sampling methods and their options, over in-lists and over out-lists.
inline std::vector<Variant> SamplingVariants() {
  const auto walk = [](JobSpec& s, SampleMethod method) {
    s.method = method;
    s.walks = 3;
    s.walk_length = 4;
    s.metapath = {"item__cites__item"};
  };
  const std::vector<std::pair<std::string, std::function<void(JobSpec&)>>>
      sets = {
          {"uniform", [](JobSpec&) {}},
          {"all",
           [](JobSpec& s) {
             s.fanouts = {-1, -1};
           }},
          {"replace", [](JobSpec& s) { s.replace = true; }},
          {"disjoint", [](JobSpec& s) { s.disjoint = true; }},
          {"weighted", [](JobSpec& s) { s.weighted = true; }},
          {"weighted replace",
           [](JobSpec& s) { s.weighted = s.replace = true; }},
          {"labor", [](JobSpec& s) { s.method = SampleMethod::kLabor; }},
          {"labor disjoint",
           [](JobSpec& s) {
             s.method = SampleMethod::kLabor;
             s.disjoint = true;
           }},
          {"temporal",
           [](JobSpec& s) { s.temporal = TemporalStrategy::kUniform; }},
          {"temporal last",
           [](JobSpec& s) { s.temporal = TemporalStrategy::kLast; }},
          {"temporal weighted",
           [](JobSpec& s) {
             s.temporal = TemporalStrategy::kUniform;
             s.weighted = true;
           }},
          {"temporal labor",
           [](JobSpec& s) {
             s.temporal = TemporalStrategy::kUniform;
             s.method = SampleMethod::kLabor;
           }},
          {"temporal induced",
           [](JobSpec& s) {
             s.temporal = TemporalStrategy::kLast;
             s.method = SampleMethod::kInduced;
             s.fanouts = {-1, -1};
           }},
          {"induced", [](JobSpec& s) { s.method = SampleMethod::kInduced; }},
          {"induced seeds",
           [](JobSpec& s) {
             s.method = SampleMethod::kInduced;
             s.fanouts = {};
           }},
          {"induced disjoint",
           [](JobSpec& s) {
             s.method = SampleMethod::kInduced;
             s.disjoint = true;
           }},
          {"walk",
           [walk](JobSpec& s) {
             walk(s, SampleMethod::kWalk);
             s.fanouts = {};
           }},
          {"walk types",
           [walk](JobSpec& s) {
             walk(s, SampleMethod::kWalk);
             s.fanouts = {};
             s.weighted = s.disjoint = true;
             s.metapath = s.direction == Direction::kIn
                              ? std::vector<std::string>{"user__buys__item",
                                                         "item__likes__user"}
                              : std::vector<std::string>{"item__likes__user",
                                                         "user__buys__item"};
           }},
          {"walk biased",
           [walk](JobSpec& s) {
             walk(s, SampleMethod::kWalk);
             s.fanouts = {};
             s.walk_p = 0.25;
             s.walk_q = 3;
           }},
          {"walk biased disjoint inductive",
           [walk](JobSpec& s) {
             walk(s, SampleMethod::kWalk);
             s.fanouts = {};
             s.disjoint = true;
             s.train_graph = "train";
             s.walk_p = 40;
           }},
          {"ppr", [walk](JobSpec& s) { walk(s, SampleMethod::kPpr); }},
          {"ppr weighted",
           [walk](JobSpec& s) {
             walk(s, SampleMethod::kPpr);
             s.weighted = true;
           }},
          {"inductive", [](JobSpec& s) { s.train_graph = "train"; }},
          {"inductive weighted",
           [](JobSpec& s) {
             s.train_graph = "train";
             s.weighted = true;
           }},
          {"inductive labor",
           [](JobSpec& s) {
             s.train_graph = "train";
             s.method = SampleMethod::kLabor;
           }},
          {"inductive induced",
           [](JobSpec& s) {
             s.train_graph = "train";
             s.method = SampleMethod::kInduced;
           }},
          {"inductive ppr", [walk](JobSpec& s) {
             walk(s, SampleMethod::kPpr);
             s.train_graph = "train";
           }}};
  std::vector<Variant> variants;
  for (const auto& [name, set] : sets) {
    variants.push_back({name + " in", set, Direction::kIn});
    variants.push_back({name + " out", set, Direction::kOut});
  }
  return variants;
}

// Items as explicit seeds of a job; also with times if the job is temporal.
inline std::vector<Seeds> SeedsFor(const JobSpec& spec) {
  const std::vector<int64_t> ids = {0, 8, 8, 13, 27, 30};
  if (spec.temporal == TemporalStrategy::kNone) return {{ids, {}}};
  return {{ids, {}}, {ids, {5, 2, 9, -1, 7, 100}}};
}

// Expects each edge of a batch to have the ends and the feature that the user's
// list has at its edge id; returns the number of features.
inline int ExpectFeaturesOfEdges(const Batch& batch, const TestGraph& graph,
                                 const Schema& schema) {
  int count = 0;
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    const TestRelation& relation = graph.relations[r];
    const Array& feature = batch.edges[r].feature;
    EXPECT_EQ(feature.present(), relation.feature.present());
    const auto edges = EdgesOf(batch, schema, static_cast<RelationIndex>(r));
    for (size_t e = 0; e < edges.size(); ++e) {
      const bool in = batch.direction == Direction::kIn;
      const SampledEdge& edge = edges[e];
      EXPECT_EQ(relation.edges.at(edge.edge_id),
                std::pair(in ? edge.neighbor.original : edge.owner.original,
                          in ? edge.owner.original : edge.neighbor.original));
    }
    if (!feature.present()) continue;
    EXPECT_EQ(feature.dtype(), relation.feature.dtype());
    EXPECT_EQ(feature.row_bytes(), relation.feature.row_bytes());
    EXPECT_EQ(feature.rows(), static_cast<int64_t>(edges.size()));
    const size_t bytes = relation.feature.row_bytes();
    for (size_t e = 0; e < edges.size(); ++e, ++count) {
      EXPECT_EQ(std::memcmp(feature.data() + e * bytes,
                            relation.feature.data() +
                                static_cast<size_t>(edges[e].edge_id) * bytes,
                            bytes),
                0)
          << "edge " << edges[e].edge_id << " of " << relation.name;
    }
  }
  return count;
}

}  // namespace millrace::testing
