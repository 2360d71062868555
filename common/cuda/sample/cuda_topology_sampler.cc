// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/cuda_topology_sampler.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/sample/make_hop_filter.h"
#include "common/cuda/sample/make_hop_job.h"
#include "common/cuda/sample/no_kernels.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/draw/seed_lists.h"
#include "common/sample/draw_rule.h"

namespace millrace::cuda {
namespace {

// Whether lists lack a column that the job's draws read. The CPU says so.
bool LacksColumns(const ResolvedJob& job, const Manifest& manifest) {
  const DrawRuleInfo& rule = InfoOf(RuleOf(job.spec));
  if (rule.reads_original_ids && !manifest.draws_by_neighbor()) return true;
  if (!rule.reads_weight_sums) return false;
  for (size_t r = 0; r < job.fanouts.size(); ++r) {
    const bool drawn =
        std::ranges::any_of(job.fanouts[r], [](int32_t f) { return f != 0; });
    if (drawn && !manifest.schema.relations[r].has_weight) return true;
  }
  return false;
}

// The members of the job's train graph, by relation; empty if it has none.
absl::StatusOr<std::vector<const uint64_t*>> FindMembers(const Store& store,
                                                         const ResolvedJob& job,
                                                         DeviceMembers& sets) {
  std::vector<const uint64_t*> members;
  if (job.spec.train_graph.empty()) return members;
  for (const Relation& relation : store.schema().relations) {
    MILLRACE_ASSIGN_OR_RETURN(
        members.emplace_back(),
        sets.Find(store, NeighborType(relation, job.spec.direction),
                  job.spec.train_graph));
  }
  return members;
}

}  // namespace

std::string ReasonForHost(const ResolvedJob& job) {
  switch (job.spec.method) {
    case SampleMethod::kUniform:
    case SampleMethod::kLabor:
      break;
    case SampleMethod::kWalk:
      return "walks";
    case SampleMethod::kPpr:
      return "ppr";
    case SampleMethod::kInduced:
      return "induced subgraphs";
  }
  for (const Fanouts& fanouts : job.fanouts) {
    if (std::ranges::any_of(fanouts,
                            [](int32_t f) { return f > kMaxDeviceFanout; })) {
      return StrCat("fanouts above ", kMaxDeviceFanout);
    }
  }
  return "";
}

CudaTopologySampler::CudaTopologySampler(
    std::shared_ptr<SamplingDevices> devices, DeviceFallback fallback)
    : devices_(std::move(devices)), fallback_(fallback) {}

absl::StatusOr<std::optional<Batch>> CudaTopologySampler::Sample(
    const Store& store, const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds, const Reserve& reserve) {
  MILLRACE_RETURN_IF_ERROR(CheckTopologyInput(job, request, seeds));
  const std::string reason = ReasonForHost(job);
  if (!reason.empty() && fallback_ == DeviceFallback::kForbid) {
    return NoKernels(reason);
  }
  if (!reason.empty() || LacksColumns(job, store.manifest())) {
    return std::nullopt;
  }
  const int wanted = DeviceOf(request.memory);
  const SamplingDevice& device = devices_->Next(wanted);
  const auto members = FindMembers(store, job, *device.members);
  if (absl::IsDataLoss(members.status())) return std::nullopt;
  MILLRACE_RETURN_IF_ERROR(members.status());
  const std::vector<SeedList> lists = SeedLists(job, store.schema(), seeds);
  HopJob hops = MakeHopJob(job, store.manifest(),
                           device.graph->lists(job.spec.direction), request);
  AddFilters(job, store.schema(), seeds, *members, hops);
  std::span<const int64_t> times;
  if (job.spec.temporal != TemporalStrategy::kNone) times = seeds.times;
  TopologyWork work{hops, lists, times, store.manifest(), reserve};
  if (device.graph->device() == wanted) work.stay = &device.workers->arrays();
  std::optional<Batch> batch;
  MILLRACE_ASSIGN_OR_RETURN(
      const HopOutcome outcome,
      device.workers->Run([&](DeviceWorker& worker, PinnedPool& pool) {
        batch = BatchOfSeeds(job, seeds, request.epoch, request.batch);
        return worker.MakeTopology(work, pool, *batch);
      }));
  if (outcome != HopOutcome::kMade) batch.reset();
  return batch;
}

}  // namespace millrace::cuda
