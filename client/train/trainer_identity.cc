// SPDX-License-Identifier: Apache-2.0
// What a resumed Trainer must share with the one that wrote its checkpoint.
#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/train/train_check.h"
#include "client/train/trainer.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

std::string FanoutsText(const JobSpec& job) {
  std::string text = absl::StrJoin(job.fanouts, ",");
  for (const auto& [relation, fanouts] : job.relation_fanouts) {
    absl::StrAppend(&text, " ", relation, "=", absl::StrJoin(fanouts, ","));
  }
  return text;
}

const char* YesNo(bool value) { return value ? "yes" : "no"; }

const char* NormName(NormKind norm) {
  switch (norm) {
    case NormKind::kBatch:
      return "batch";
    case NormKind::kLayer:
      return "layer";
    case NormKind::kNone:
      break;
  }
  return "none";
}

// The --method, with what belongs to it.
std::string MethodText(const JobSpec& job) {
  const auto walks = [&job](const char* name) {
    return StrCat(name, " ", job.walks, " of ", job.walk_length, " ",
                  absl::StrJoin(job.metapath, ","));
  };
  switch (job.method) {
    case SampleMethod::kLabor:
      return "labor";
    case SampleMethod::kWalk:
      return walks("walk");
    case SampleMethod::kPpr:
      return StrCat(walks("ppr"), " restart ", job.restart);
    case SampleMethod::kInduced:
      return "induced";
    case SampleMethod::kUniform:
      break;
  }
  return "uniform";
}

const char* TemporalName(TemporalStrategy strategy) {
  switch (strategy) {
    case TemporalStrategy::kUniform:
      return "uniform";
    case TemporalStrategy::kLast:
      return "last";
    case TemporalStrategy::kNone:
      break;
  }
  return "none";
}

const char* AggregationName(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::kSum:
      return "sum";
    case Aggregation::kMax:
      return "max";
    case Aggregation::kMean:
      break;
  }
  return "mean";
}

std::string NegativesText(const Negatives& negatives) {
  switch (negatives.mode) {
    case NegativeMode::kBinary:
      return StrCat("binary:", negatives.amount);
    case NegativeMode::kTriplet:
      return StrCat("triplet:", negatives.amount);
    case NegativeMode::kShared:
      return StrCat("shared:", negatives.amount);
    case NegativeMode::kInBatch:
      return "in-batch";
    case NegativeMode::kNone:
      break;
  }
  return "none";
}

const char* ExcludeName(ExcludeSeedEdges exclude) {
  switch (exclude) {
    case ExcludeSeedEdges::kSelf:
      return "self";
    case ExcludeSeedEdges::kReverse:
      return "reverse";
    case ExcludeSeedEdges::kNone:
      break;
  }
  return "none";
}

const char* OptimizerName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kAdam:
      break;
  }
  return "adam";
}

// Batches are the same for all partitionings of a dataset, unless seeds are
// taken partition by partition.
std::string DatasetOf(const JobSpec& job, const Manifest& manifest) {
  return job.seed_order == SeedOrder::kLocal ? manifest.fingerprint
                                             : manifest.dataset_fingerprint;
}

uint64_t ChecksumOf(const SeedList& seeds) {
  uint64_t checksum = 0;
  const auto add = [&checksum](const void* data, uint64_t bytes) {
    // Where a column ends counts too.
    checksum = XXH3_64bits_withSeed(&bytes, sizeof(bytes), checksum);
    checksum = XXH3_64bits_withSeed(data, bytes, checksum);
  };
  for (const auto* column :
       {&seeds.ids, &seeds.times, &seeds.dst, &seeds.negatives}) {
    add(column->data(), column->size() * sizeof(int64_t));
  }
  add(seeds.edge_types.data(), seeds.edge_types.size() * sizeof(int32_t));
  add(seeds.labels.data(), seeds.labels.total_bytes());
  return checksum;
}

}  // namespace

absl::Status Trainer::NameSeeds() {
  uint64_t checksum = 0;
  if (options_.seeds.has_value()) {
    checksum = ChecksumOf(*options_.seeds);
    seeds_text_ = StrCat(options_.seeds->size(), " rows of checksum ",
                         absl::Hex(checksum, absl::kZeroPad16));
  }
  return CheckSameOnAllRanks(collectives_, "--seeds-file", checksum);
}

std::string Trainer::SeedTypeName() const {
  const Schema& schema = source_->manifest().schema;
  return learns_links() ? schema.RelationName(seed_relation_)
                        : schema.node_types[seed_type_].name;
}

std::string Trainer::EvalNegativesText() const {
  switch (options_.evaluation.negatives) {
    case EvalNegatives::kAll:
      return "all";
    case EvalNegatives::kGiven:
      return "given";
    case EvalNegatives::kDrawn:
      return NegativesText(options_.evaluation.drawn);
    case EvalNegatives::kDefault:
      break;
  }
  return options_.evaluation.kind == InferenceKind::kFull ? "default, full"
                                                          : "default, sampled";
}

// The seeds of the epochs that have begun; later ones may change.
std::string Trainer::OrderText() const {
  if (!order_.has_value()) return "none";
  const uint32_t begun = at_.epoch + (at_.next_batch > 0 ? 1 : 0);
  return StrCat(absl::Hex(order_->ChecksumOf(begun), absl::kZeroPad16),
                " up to epoch ", begun);
}

std::map<std::string, std::string> Trainer::Identity() const {
  const JobSpec& job = options_.job;
  const ModelConfig& model = options_.model;
  const OptimizerConfig& optimizer = options_.optimizer;
  std::map<std::string, std::string> identity = {
      {"dataset fingerprint", DatasetOf(job, source_->manifest())},
      {"--seed", absl::StrCat(job.seed)},
      {"--type", SeedTypeName()},
      {"--split", job.split},
      {"--seeds-file", seeds_text_},
      {"--fanouts", FanoutsText(job)},
      {"--batch-size", absl::StrCat(job.batch_size)},
      {"--shuffle", YesNo(job.shuffle)},
      {"--seed-order",
       job.seed_order == SeedOrder::kLocal ? "local" : "global"},
      {"--drop-last", YesNo(job.drop_last)},
      {"--replace", YesNo(job.replace)},
      {"--disjoint", YesNo(job.disjoint)},
      {"--direction", std::string(DirectionName(job.direction))},
      {"--method", MethodText(job)},
      {"--weighted", YesNo(job.weighted)},
      {"--temporal", TemporalName(job.temporal)},
      {"--train-graph",
       job.train_graph.empty() ? "full" : StrCat("induced:", job.train_graph)},
      {"--model",
       model_->script() == nullptr
           ? model.kind
           : StrCat("script of checksum ",
                    absl::Hex(model_->script()->checksum(), absl::kZeroPad16))},
      {"--hidden", absl::StrCat(model.hidden)},
      {"--layers", absl::StrCat(model.layers)},
      {"--dropout", absl::StrCat(model.dropout)},
      {"--norm", NormName(model.norm)},
      {"--gcn-norm", model.gcn_norm == GcnNorm::kSampled ? "sampled" : "full"},
      {"--heads", absl::StrCat(model.heads)},
      {"--aggr", AggregationName(model.aggregation)},
      {"--num-bases", absl::StrCat(model.bases)},
      {"--gin-mlp", absl::StrCat(model.gin_mlp)},
      {"--readout", AggregationName(model.readout)},
      {"--graph-head", model.graph_head ? "mlp" : "none"},
      {"--seeds", job.seed_kind == SeedKind::kGraph  ? "graph"
                  : job.seed_kind == SeedKind::kEdge ? "edge"
                                                     : "node"},
      {"--task", TaskName(options_.task.kind)},
      {"--model-seed", absl::StrCat(model.seed)},
      {"features", absl::StrCat(model.in)},
      {"classes", absl::StrCat(model.out)},
      {"--optimizer", OptimizerName(optimizer.kind)},
  };
  if (learns_links()) {
    identity["--negatives"] = NegativesText(job.negatives);
    identity["--exclude-seed-edges"] = ExcludeName(job.exclude);
    identity["--loss"] =
        options_.task.loss == LinkLoss::kSoftmax ? "softmax" : "bce";
    identity["--decoder"] =
        model.decoder == DecoderKind::kDistMult ? "distmult" : "dot";
    identity["edge types"] = absl::StrCat(model.edge_types);
  }
  // A model may be evaluated by other metrics than the one that chose it.
  if (options_.epochs > 0) {
    identity["--metric"] = MetricName(options_.task);
    identity["--order"] = OrderText();
    if (learns_links()) identity["--eval-negatives"] = EvalNegativesText();
    identity["--valid-split"] =
        options_.valid_split.empty() ? "valid" : options_.valid_split;
  }
  return identity;
}

}  // namespace millrace
