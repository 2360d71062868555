// SPDX-License-Identifier: Apache-2.0
#include "client/cli/batch_size.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/cli/fetch_one.h"
#include "common/base/dtype.h"
#include "common/base/interrupt.h"
#include "common/base/process_usage.h"
#include "common/base/status_macros.h"
#include "common/sample/batch.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/request_plan.h"

namespace millrace {
namespace {

// Follows the hops of a job as if every draw found a new node.
class LargestBatch {
 public:
  LargestBatch(const ResolvedJob& job, const Schema& schema)
      : job_(job),
        schema_(schema),
        // Without a common tree, a node counts once for each seed.
        shared_(!job.spec.disjoint &&
                job.spec.temporal == TemporalStrategy::kNone),
        frontier_(schema.node_types.size()),
        nodes_(schema.node_types.size()),
        edges_(schema.relations.size()) {}

  void Run() {
    AddSeeds();
    for (int hop = 0; hop < job_.hops; ++hop) {
      std::vector<double> found(frontier_.size());
      for (size_t i = 0; i < edges_.size(); ++i) Draw(i, hop, found);
      SetFrontier(found);
    }
  }

  const std::vector<double>& nodes() const { return nodes_; }  // by type
  const std::vector<double>& edges() const { return edges_; }  // by relation

 private:
  void AddSeeds() {
    std::vector<double> seeds(frontier_.size());
    const auto batch = static_cast<double>(job_.spec.batch_size);
    seeds[job_.seed_type] += batch;
    if (job_.spec.seed_kind == SeedKind::kEdge) {
      const TypeIndex src = schema_.relations[job_.seed_relation].src;
      seeds[src] += batch;
      const Negatives& negatives = job_.spec.negatives;
      const double drawn = DrawsNegatives(job_.spec) ? negatives.amount : 0;
      const bool once = negatives.mode == NegativeMode::kShared;
      seeds[job_.seed_type] += once ? drawn : drawn * batch;
      if (negatives.mode == NegativeMode::kBinary) seeds[src] += drawn * batch;
    }
    SetFrontier(seeds);
  }

  void Draw(size_t index, int hop, std::vector<double>& found) {
    const Relation& relation = schema_.relations[index];
    const bool in = job_.spec.direction == Direction::kIn;
    const int32_t fanout = job_.fanouts[index][static_cast<size_t>(hop)];
    const double frontier = frontier_[in ? relation.dst : relation.src];
    const auto all = static_cast<double>(relation.edge_count);
    double drawn = frontier * fanout;
    if (fanout < 0) drawn = shared_ ? all : frontier * all;
    if (shared_ && !job_.spec.replace) {
      drawn = std::min(drawn, all - edges_[index]);
    }
    edges_[index] += drawn;
    found[in ? relation.src : relation.dst] += drawn;
  }

  void SetFrontier(const std::vector<double>& found) {
    for (size_t i = 0; i < found.size(); ++i) {
      const auto count = static_cast<double>(schema_.node_types[i].count);
      frontier_[i] = shared_ ? std::min(found[i], count - nodes_[i]) : found[i];
      nodes_[i] += frontier_[i];
    }
  }

  const ResolvedJob& job_;
  const Schema& schema_;
  const bool shared_;
  std::vector<double> frontier_, nodes_, edges_;
};

double WireRowBytes(const ColumnSpec& feature, DType wire) {
  if (!feature.present()) return 0;
  const auto stored = static_cast<double>(feature.row_bytes());
  if (wire == DType::kNone) return stored;
  return stored * static_cast<double>(ItemBytes(wire)) /
         static_cast<double>(ItemBytes(feature.dtype));
}

// docs/protocol.md, section 2.
double NodeBytes(const ResolvedJob& job, const Columns& columns,
                 const Schema& schema, TypeIndex type, double nodes) {
  const NodeType& info = schema.node_types[type];
  double bytes = nodes * (static_cast<double>(ItemBytes(info.id_dtype())) + 4);
  if (columns.features) {
    bytes += nodes * WireRowBytes(info.feature, columns.feature_dtype);
  }
  const auto label =
      static_cast<double>(info.label.present() ? info.label.row_bytes() : 0);
  if (columns.labels == LabelRows::kAll) bytes += nodes * label;
  if (columns.labels == LabelRows::kSeeds && LabelsSeeds(job, type)) {
    bytes += static_cast<double>(job.spec.batch_size) * label;
  }
  return bytes;
}

void AddBatch(const Batch& batch, BatchSize& sum) {
  sum.bytes += static_cast<double>(batch.total_bytes());
  for (const NodeBlock& block : batch.nodes) {
    sum.nodes += static_cast<double>(block.count());
  }
  for (const EdgeBlock& block : batch.edges) {
    sum.edges += static_cast<double>(block.edge_count());
  }
}

// The first `batches` batches of an epoch, all together. They are made one
// after the other, so that no CPU time of further ones counts.
absl::StatusOr<BatchSize> MakeBatches(BatchSource& source,
                                      const ResolvedJob& job,
                                      const RequestPlan& plan,
                                      const Columns& columns,
                                      uint32_t batches) {
  BatchSize sum;
  const double before = ProcessCpuSeconds();
  for (uint32_t i = 0; i < batches; ++i) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(BatchRequest request,
                              plan.Request(/*epoch=*/0, i, columns));
    MILLRACE_ASSIGN_OR_RETURN(const Batch batch,
                              FetchOne(source, job, std::move(request)));
    AddBatch(batch, sum);
  }
  sum.cpu_seconds = ProcessCpuSeconds() - before;
  return sum;
}

}  // namespace

absl::StatusOr<BatchSize> BoundBatch(const ResolvedJob& job,
                                     const Columns& columns,
                                     const Schema& schema) {
  const bool by_fanouts = job.spec.method == SampleMethod::kUniform ||
                          job.spec.method == SampleMethod::kLabor;
  if (!by_fanouts || job.spec.seed_kind == SeedKind::kGraph) {
    return absl::FailedPreconditionError(
        "the size of such batches cannot be computed from the graph's "
        "figures\ngive a dataset or store, so that some can be made");
  }
  LargestBatch largest(job, schema);
  largest.Run();
  BatchSize size;
  for (size_t i = 0; i < largest.nodes().size(); ++i) {
    size.nodes += largest.nodes()[i];
    size.bytes += NodeBytes(job, columns, schema, static_cast<TypeIndex>(i),
                            largest.nodes()[i]);
  }
  for (size_t i = 0; i < largest.edges().size(); ++i) {
    const double edges = largest.edges()[i];
    size.edges += edges;
    size.bytes += edges * 4;
    if (columns.edge_features) {
      size.bytes += edges * (8 + WireRowBytes(schema.relations[i].feature,
                                              columns.feature_dtype));
    }
  }
  return size;
}

absl::StatusOr<BatchSize> MeasureBatch(BatchSource& source, const JobSpec& spec,
                                       const Columns& columns,
                                       uint32_t batches) {
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(spec, source.manifest()));
  MILLRACE_ASSIGN_OR_RETURN(const RequestPlan plan,
                            RequestPlan::Create(job, source.manifest()));
  const uint32_t made = std::min(batches, plan.batch_count());
  MILLRACE_ASSIGN_OR_RETURN(BatchSize sum,
                            MakeBatches(source, job, plan, columns, made));
  MILLRACE_ASSIGN_OR_RETURN(sum, MakeBatches(source, job, plan, columns, made));
  const double count = std::max<uint32_t>(1, made);
  return BatchSize{.nodes = sum.nodes / count,
                   .edges = sum.edges / count,
                   .bytes = sum.bytes / count,
                   .cpu_seconds = sum.cpu_seconds / count};
}

}  // namespace millrace
