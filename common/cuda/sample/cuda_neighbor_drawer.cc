// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/cuda_neighbor_drawer.h"

#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/sample/hop_job.h"
#include "common/cuda/sample/make_draw_job.h"
#include "common/cuda/sample/no_kernels.h"
#include "common/sample/draw_rule.h"

namespace millrace::cuda {
namespace {

// Returns why a draw needs the CPU, as what there are no kernels for; empty if
// the device can do it.
std::string ReasonForHost(const DrawContext& context,
                          const Frontier& frontier) {
  if (context.walk) return "walks";
  if (context.rule == DrawRule::kAmong) return "induced subgraphs";
  if (frontier.fanout > kMaxDeviceFanout) {
    return StrCat("fanouts above ", kMaxDeviceFanout);
  }
  return "";
}

// Whether the lists lack a column that the rule reads. The CPU says so.
bool LacksColumns(const Store& store, const DrawContext& context,
                  const Frontier& frontier) {
  const DrawRuleInfo& rule = InfoOf(context.rule);
  if (rule.reads_original_ids && !store.manifest().draws_by_neighbor()) {
    return true;
  }
  return rule.reads_weight_sums &&
         !store.schema().relations[frontier.relation].has_weight;
}

}  // namespace

CudaNeighborDrawer::CudaNeighborDrawer(std::shared_ptr<SamplingDevices> devices,
                                       DeviceFallback fallback)
    : devices_(std::move(devices)), fallback_(fallback) {}

absl::StatusOr<bool> CudaNeighborDrawer::Draw(const Store& store, int part,
                                              const DrawContext& context,
                                              const Frontier& frontier,
                                              Picks& picks) {
  const std::string reason = ReasonForHost(context, frontier);
  if (!reason.empty() && fallback_ == DeviceFallback::kForbid) {
    return NoKernels(reason);
  }
  if (frontier.ids.empty()) return true;
  if (!reason.empty() || LacksColumns(store, context, frontier)) return false;
  const SamplingDevice& device = devices_->Next();
  const Lists lists =
      device.graph->ListsOf(part, frontier.relation, context.direction);
  if (lists.part_count == 0) return false;
  DrawJob job = MakeDrawJob(lists, store, context, frontier);
  if (!context.within.empty()) {
    const Relation& relation = store.schema().relations[frontier.relation];
    const auto members = device.members->Find(
        store, NeighborType(relation, context.direction), context.within);
    if (absl::IsDataLoss(members.status())) return false;
    MILLRACE_RETURN_IF_ERROR(members.status());
    job.filter.members = *members;
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const HopOutcome outcome,
      device.workers->Run([&](DeviceWorker& worker, PinnedPool& pool) {
        return worker.Draw(job, pool, picks);
      }));
  return outcome == HopOutcome::kMade;
}

}  // namespace millrace::cuda
