// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/cuda_topology_sampler.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
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
  if (!job.spec.train_graph.empty()) return "a train graph";
  if (job.spec.exclude != ExcludeSeedEdges::kNone) return "excluded edges";
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
  const SamplingDevice& device = devices_->Next();
  const std::vector<SeedList> lists = SeedLists(job, store.schema(), seeds);
  const HopJob hops = MakeHopJob(
      job, store.manifest(), device.graph->lists(job.spec.direction), request);
  std::span<const int64_t> times;
  if (job.spec.temporal != TemporalStrategy::kNone) times = seeds.times;
  const TopologyWork work{hops, lists, times, store.schema(), reserve};
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
