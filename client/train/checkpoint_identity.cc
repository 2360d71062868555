// SPDX-License-Identifier: Apache-2.0
#include "client/train/checkpoint_identity.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/train/task/task.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

std::string HexText(uint64_t checksum) {
  return StrCat(absl::Hex(checksum, absl::kZeroPad16));
}

std::string SeedsText(const RunPlan& plan) {
  const std::optional<ExplicitSeeds>& seeds = plan.options.seeds;
  if (!seeds.has_value()) return "none";
  return StrCat(seeds->size(), " rows of checksum ",
                HexText(plan.seeds_checksum));
}

// Covers the seeds of the epochs that have begun; later ones may change.
std::string OrderText(const RunInputs& inputs, const RunState& state) {
  if (!inputs.order.has_value()) return "none";
  const uint32_t begun = state.epoch + (state.next_batch > 0 ? 1 : 0);
  return StrCat(HexText(inputs.order->ChecksumOf(begun)), " up to epoch ",
                begun);
}

}  // namespace

RunIdentity CheckpointIdentity(const RunPlan& plan, const RunInputs& inputs,
                               const Model& model, const RunState& state) {
  const TrainOptions& options = plan.options;
  RunIdentity identity = IdentifyRun(options);
  identity.insert(plan.splits.begin(), plan.splits.end());
  identity["dataset fingerprint"] = plan.dataset;
  identity[IdentityKey("seed_type")] = plan.seeds_name;
  identity[IdentityKey("seeds")] = SeedsText(plan);
  if (model.script() != nullptr) {
    identity[IdentityKey("model")] =
        StrCat("script of checksum ", HexText(model.script()->checksum()));
  }
  identity["features"] = absl::StrCat(inputs.model.in);
  identity["classes"] = absl::StrCat(inputs.model.out);
  if (plan.learns_links()) {
    identity["edge types"] = absl::StrCat(inputs.model.edge_types);
  }
  // A model may be evaluated by other metrics than the one that chose it.
  if (options.epochs > 0) {
    identity[IdentityKey("metric")] = MetricName(options.task);
    identity[IdentityKey("order")] = OrderText(inputs, state);
    if (plan.learns_links()) {
      identity[IdentityKey("eval_negatives")] =
          EvalNegativesText(options.evaluation);
    }
    identity[IdentityKey("valid_split")] =
        EvaluatedSplit(options.valid_split, kValidSplit);
  }
  return identity;
}

}  // namespace millrace
