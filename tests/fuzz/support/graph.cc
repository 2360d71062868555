// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/support/graph.h"

#include <utility>

#include "common/base/check.h"
#include "tests/fuzz/support/input.h"
#include "tests/support/store_builder.h"

namespace millrace::fuzz {
namespace {

JobSpec Papers() {
  JobSpec spec;
  spec.seed_type = "paper";
  spec.fanouts = {2, 2};
  spec.batch_size = 2;
  return spec;
}

Columns AllColumns() {
  Columns columns;
  columns.original_ids = columns.edge_ids = columns.degrees = true;
  columns.labels = LabelRows::kAll;
  return columns;
}

FuzzJob Uniform() { return {Papers(), AllColumns(), std::nullopt}; }

FuzzJob Labor() {
  FuzzJob job = Uniform();
  job.spec.method = SampleMethod::kLabor;
  job.columns.feature_dtype = DType::kFloat16;
  return job;
}

FuzzJob Walk() {
  FuzzJob job = Uniform();
  job.spec.method = SampleMethod::kWalk;
  job.spec.fanouts.clear();
  job.spec.walks = 2;
  job.spec.walk_length = 3;
  job.spec.metapath = {"paper__cites__paper"};
  return job;
}

FuzzJob Ppr() {
  FuzzJob job = Walk();
  job.spec.method = SampleMethod::kPpr;
  job.spec.fanouts = {2};
  return job;
}

FuzzJob Induced() {
  FuzzJob job = Uniform();
  job.spec.method = SampleMethod::kInduced;
  job.columns.edge_features = true;
  return job;
}

FuzzJob Temporal() {
  FuzzJob job = Uniform();
  job.spec.temporal = TemporalStrategy::kLast;
  job.columns.edge_features = true;
  return job;
}

FuzzJob Weighted() {
  FuzzJob job = Uniform();
  job.spec.fanouts.clear();
  job.spec.relation_fanouts["author__writes__paper"] = {2};
  job.spec.weighted = true;
  job.spec.disjoint = true;
  job.spec.replace = true;
  return job;
}

FuzzJob Authors() {
  FuzzJob job = Uniform();
  job.spec.seed_type = "author";
  job.spec.split.clear();
  job.spec.fanouts = {kAllNeighbors};
  job.explicit_seeds = ExplicitSeeds{.ids = {1, 4, 1}};
  return job;
}

FuzzJob Edges() {
  FuzzJob job = Uniform();
  job.spec.seed_kind = SeedKind::kEdge;
  job.spec.seed_type = "author__writes__paper";
  job.spec.split.clear();
  job.spec.negatives = {NegativeMode::kTriplet, 2};
  job.spec.exclude = ExcludeSeedEdges::kSelf;
  job.explicit_seeds = ExplicitSeeds{.ids = {0, 2}, .dst = {0, 3}};
  return job;
}

}  // namespace

void BuildRichStore(const std::filesystem::path& target) {
  MILLRACE_CHECK(
      testing::WriteGraph(testing::RichGraph(), kParts, target).ok());
}

const std::shared_ptr<const Store>& RichStore() {
  static const auto* const store = [] {
    const std::filesystem::path path = Scratch() / "rich";
    BuildRichStore(path);
    auto opened = Store::Open(path);
    MILLRACE_CHECK(opened.ok());
    std::filesystem::remove_all(path);  // the mappings stay valid
    return new std::shared_ptr<const Store>(*std::move(opened));
  }();
  return *store;
}

const std::vector<FuzzJob>& RichJobs() {
  static const auto* const jobs = new std::vector<FuzzJob>{
      Uniform(),  Labor(),    Walk(),    Ppr(),  Induced(),
      Temporal(), Weighted(), Authors(), Edges()};
  return *jobs;
}

}  // namespace millrace::fuzz
