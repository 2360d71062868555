// SPDX-License-Identifier: Apache-2.0
// Trainer's tasks whose seeds are edges.
#include <algorithm>
#include <utility>

#include "client/train/link_evaluator.h"
#include "client/train/link_table.h"
#include "client/train/trainer.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {

// Edges that evaluation, or the size of the model, depends on.
struct Trainer::LinkTables {
  std::optional<LinkTable> train, listed, valid, test;

  std::vector<const LinkTable*> All() const {
    std::vector<const LinkTable*> all;
    for (const auto* table : {&train, &listed, &valid, &test}) {
      if (table->has_value()) all.push_back(&**table);
    }
    return all;
  }
};

absl::Status Trainer::CheckLinks() const {
  const Task& task = options_.task;
  if (options_.model.decoder == DecoderKind::kNone) {
    return absl::InvalidArgumentError("--task link needs a --decoder");
  }
  if (!options_.order.empty()) {
    return absl::UnimplementedError(
        "--order names nodes and graphs, not edges\ngive the edges in their "
        "order by --seeds-file F.npy, [n, 2], and --no-shuffle");
  }
  const Manifest& manifest = source_->manifest();
  const bool listed = options_.seeds.has_value();
  if (listed && manifest.schema.relations[seed_relation_].has_type &&
      options_.model.decoder == DecoderKind::kDistMult) {
    return absl::InvalidArgumentError(
        "--seeds-file has no edge types, which --decoder distmult needs "
        "here\nmake a split: millrace split --pairs F --edge-types F");
  }
  const EdgeSplitInfo* split =
      listed ? nullptr : manifest.EdgeSplit(seed_relation_, options_.job.split);
  const bool given = split != nullptr && split->negatives > 0;
  const bool labels = split != nullptr && split->label.present();
  const bool none = task.negatives == NegativeMode::kNone;
  if (labels && !none) {
    return absl::InvalidArgumentError(StrCat(
        "--negatives adds pairs that are not edges, but the labels of split ",
        options_.job.split,
        " name those already\nleave out --negatives, or make a split "
        "without --labels"));
  }
  if (labels && given) {
    return absl::FailedPreconditionError(
        StrCat("split ", options_.job.split,
               " has labels, which say what is an edge, and negatives\nmake a "
               "split without --labels or without --negatives"));
  }
  if (task.loss == LinkLoss::kSoftmax &&
      (task.negatives == NegativeMode::kBinary || (none && !given))) {
    return absl::InvalidArgumentError(
        "--loss softmax compares an edge with negatives of its own\nuse "
        "--negatives triplet:K, shared:K or in-batch, or --loss bce");
  }
  if (!none || given || labels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("--task link also needs pairs that are not edges, but there are "
             "neither --negatives nor negatives or labels in ",
             listed ? "--seeds-file" : StrCat("split ", options_.job.split),
             "\nuse --negatives binary:1, triplet:K, shared:K or in-batch"));
}

LinkEvaluator::Splits Trainer::LinkSplits() const {
  const auto name = [&](const std::string& named,
                        const char* usual) -> std::optional<std::string> {
    if (!named.empty()) return named;
    return source_->manifest().EdgeSplit(seed_relation_, usual) == nullptr
               ? std::nullopt
               : std::optional<std::string>(usual);
  };
  return {name(options_.valid_split, "valid"),
          name(options_.test_split, "test"),
          {}};
}

absl::Status Trainer::ReadLinkTables(LinkTables& tables) {
  const JobSpec& job = options_.job;
  const auto& manifest = source_->manifest();
  if (manifest.EdgeSplit(seed_relation_, job.split) != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(tables.train,
                              ReadLinkTable(source_, job, job.split));
  }
  if (options_.seeds.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(
        tables.listed, ReadLinkTable(source_, job, job.split, options_.seeds));
  }
  const LinkEvaluator::Splits splits = LinkSplits();
  if (splits.valid.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(tables.valid,
                              ReadLinkTable(source_, job, *splits.valid));
  }
  if (splits.test.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(tables.test,
                              ReadLinkTable(source_, job, *splits.test));
  }
  return absl::OkStatus();
}

absl::Status Trainer::MakeLinkEvaluator() {
  MILLRACE_RETURN_IF_ERROR(CheckLinks());
  LinkTables tables;
  const bool typed =
      source_->manifest().schema.relations[seed_relation_].has_type &&
      options_.model.decoder == DecoderKind::kDistMult;
  const EvaluationOptions& evaluation = options_.evaluation;
  const bool ranked = options_.task.ranks() &&
                      evaluation.kind == InferenceKind::kFull &&
                      (evaluation.negatives == EvalNegatives::kDefault ||
                       evaluation.negatives == EvalNegatives::kAll);
  if (typed || ranked) {
    MILLRACE_RETURN_IF_ERROR(ReadLinkTables(tables));
  }
  for (const LinkTable* table : tables.All()) {
    options_.model.edge_types =
        std::max(options_.model.edge_types, table->edge_types());
  }
  options_.model.out = options_.model.hidden;
  MILLRACE_RETURN_IF_ERROR(MakeModel());
  LinkEvaluator::Splits splits = LinkSplits();
  if (ranked) splits.known = tables.All();
  MILLRACE_ASSIGN_OR_RETURN(
      evaluator_, LinkEvaluator::Create(source_, options_.job, *model_,
                                        collectives_, splits, evaluation));
  return absl::OkStatus();
}

}  // namespace millrace
