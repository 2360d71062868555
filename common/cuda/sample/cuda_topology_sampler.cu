// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/sample/cuda_queue.cuh"
#include "common/cuda/sample/cuda_topology_sampler.h"
#include "common/cuda/sample/hop_sampler.cuh"
#include "common/cuda/sample/make_hop_job.h"
#include "common/cuda/sample/narrow_ids.cuh"
#include "common/sample/draw/sampler.h"
#include "common/sample/draw/seed_lists.h"
#include "common/sample/draw_rule.h"
#include "common/sample/local/mapped_topology_sampler.h"

namespace millrace::cuda {
namespace {

// Limit on pinned memory that is kept for later batches.
constexpr uint64_t kMaxIdlePinned = uint64_t{1} << 30;
constexpr uint64_t kArrayAlignment = 64;

// Arrays of the device that are copied to one block of pinned memory.
class Downloads {
 public:
  // `target` becomes an array of what is at `from`, once the queue has done
  // what Start() asks for.
  void Add(const void* from, DType dtype, int64_t rows, Array& target) {
    entries_.push_back({from, dtype, rows, bytes_, &target});
    const uint64_t size = static_cast<uint64_t>(rows) * ItemBytes(dtype);
    bytes_ += (size + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  }

  absl::Status Start(CudaQueue& queue, PinnedPool& pool) const {
    MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<std::byte> block,
                              pool.Allocate(bytes_));
    for (const Entry& entry : entries_) {
      *entry.target = Array::Borrow(entry.dtype, {entry.rows},
                                    block.get() + entry.at, block);
    }
    // Nothing may fail from here on, since the block must outlive the copies.
    for (const Entry& entry : entries_) {
      if (entry.rows == 0) continue;
      queue.DownloadLater(block.get() + entry.at, entry.from,
                          entry.target->total_bytes());
    }
    return absl::OkStatus();
  }

 private:
  struct Entry {
    const void* from;
    DType dtype;
    int64_t rows;
    uint64_t at;  // in the block
    Array* target;
  };
  std::vector<Entry> entries_;
  uint64_t bytes_ = 0;
};

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

// Makes one batch at a time, on a stream of its own.
class CudaTopologySampler::Worker {
 public:
  Worker(int device, cudaStream_t stream) : device_(device), stream_(stream) {
    queue_.emplace(stream);
    sampler_.emplace(*queue_);
    ids_.emplace(*queue_);
  }
  ~Worker() {
    const ScopedDevice current(device_);
    sampler_.reset();
    ids_.reset();
    queue_.reset();
    IgnoreFailure(cudaStreamSynchronize(stream_));
    IgnoreFailure(cudaStreamDestroy(stream_));
  }

  bool failed() const { return queue_->failed(); }
  cudaError_t failure() const { return queue_->failure(); }
  uint64_t waits() const { return queue_->waits(); }

  // Adds the topology to `batch`, which has only its seeds. Fails as
  // PinnedPool::Allocate() does.
  absl::StatusOr<HopOutcome> Sample(const HopJob& job,
                                    std::span<const SeedList> lists,
                                    std::span<const int64_t> times,
                                    const Schema& schema, PinnedPool& pool,
                                    Batch& batch) {
    std::vector<SeedNodes> nodes;
    for (const SeedList& list : lists) {
      nodes.push_back({list.type, list.ids, list.trees});
    }
    const HopOutcome outcome = sampler_->Sample(job, nodes, times);
    if (outcome != HopOutcome::kMade) return outcome;
    return Finish(job, lists, schema, pool, batch);
  }

 private:
  // Adds what was sampled to the batch.
  absl::StatusOr<HopOutcome> Finish(const HopJob& job,
                                    std::span<const SeedList> lists,
                                    const Schema& schema, PinnedPool& pool,
                                    Batch& batch) {
    batch.nodes.resize(schema.node_types.size());
    batch.edges.resize(schema.relations.size());
    Downloads downloads;
    std::vector<Array> locals(lists.size());
    const uint32_t* local = sampler_->seed_locals();
    for (size_t i = 0; i < lists.size(); ++i) {
      const auto count = static_cast<int64_t>(lists[i].ids.size());
      downloads.Add(local, DType::kUint32, count, locals[i]);
      local += count;
    }
    if (!AddNodes(job, schema, downloads, batch)) return HopOutcome::kNoMemory;
    for (size_t r = 0; r < batch.edges.size(); ++r) {
      AddEdges(sampler_->edges(static_cast<int>(r)), downloads, batch.edges[r]);
    }
    MILLRACE_RETURN_IF_ERROR(downloads.Start(*queue_, pool));
    if (!queue_->Wait()) return HopOutcome::kFailed;
    for (size_t i = 0; i < lists.size(); ++i) {
      SetSeedLocals(lists[i].role, std::move(locals[i]), batch);
    }
    return HopOutcome::kMade;
  }

  // Returns false if there is not enough memory.
  bool AddNodes(const HopJob& job, const Schema& schema, Downloads& downloads,
                Batch& batch) {
    uint64_t narrow = 0;  // ids of 32 bits
    for (size_t t = 0; t < batch.nodes.size(); ++t) {
      NodeBlock& block = batch.nodes[t];
      block.hop_offsets = sampler_->nodes(static_cast<int>(t)).hop_offsets;
      if (schema.node_types[t].id_dtype() == DType::kUint32) {
        narrow += block.count();
      }
    }
    if (!ids_->Reserve(narrow + 1)) return false;
    uint32_t* ids = ids_->data();
    for (size_t t = 0; t < batch.nodes.size(); ++t) {
      NodeBlock& block = batch.nodes[t];
      const HopNodes nodes = sampler_->nodes(static_cast<int>(t));
      if (schema.node_types[t].id_dtype() == DType::kUint32) {
        if (block.count() > 0) {
          queue_->LaunchEach(NarrowIds, block.count(), nodes.ids,
                             uint64_t{block.count()}, ids);
        }
        downloads.Add(ids, DType::kUint32, block.count(), block.id);
        ids += block.count();
      } else {
        downloads.Add(nodes.ids, DType::kUint64, block.count(), block.id);
      }
      if (job.disjoint) {
        downloads.Add(nodes.trees, DType::kUint32, block.count(), block.tree);
      }
    }
    return true;
  }

  static void AddEdges(const HopEdges& edges, Downloads& downloads,
                       EdgeBlock& block) {
    const auto count = static_cast<int64_t>(edges.count);
    downloads.Add(edges.indptr, DType::kUint32,
                  static_cast<int64_t>(edges.expanded) + 1, block.indptr);
    downloads.Add(edges.neighbor, DType::kUint32, count, block.neighbor);
    if (edges.edge_id != nullptr) {
      downloads.Add(edges.edge_id, DType::kInt64, count, block.edge_id);
    }
    if (edges.feature_row != nullptr) {
      downloads.Add(edges.feature_row, DType::kUint64, count,
                    block.feature_row);
    }
  }

  const int device_;
  const cudaStream_t stream_;
  std::optional<CudaQueue> queue_;
  std::optional<HopSampler<CudaQueue>> sampler_;
  std::optional<DeviceArray<CudaQueue, uint32_t>> ids_;  // of 32 bits
};

CudaTopologySampler::CudaTopologySampler(std::shared_ptr<const Store> store,
                                         std::unique_ptr<DeviceGraph> graph,
                                         DeviceFallback fallback)
    : store_(std::move(store)),
      graph_(std::move(graph)),
      fallback_(fallback),
      host_sampler_(std::make_unique<MappedTopologySampler>(store_)),
      pinned_(PinnedPool::Create(graph_->device(), kMaxIdlePinned)) {}

CudaTopologySampler::~CudaTopologySampler() = default;

absl::StatusOr<std::unique_ptr<CudaTopologySampler>>
CudaTopologySampler::Create(std::shared_ptr<const Store> store, int device,
                            ColumnPlace place, DeviceFallback fallback) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<DeviceGraph> graph,
                            DeviceGraph::Create(*store, device, place));
  return std::unique_ptr<CudaTopologySampler>(
      new CudaTopologySampler(std::move(store), std::move(graph), fallback));
}

absl::StatusOr<std::unique_ptr<CudaTopologySampler::Worker>>
CudaTopologySampler::TakeWorker() {
  {
    const MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  cudaStream_t stream = nullptr;
  MILLRACE_RETURN_IF_ERROR(CudaStatus(
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
      StrCat("cannot make a stream of CUDA device ", graph_->device())));
  return std::make_unique<Worker>(graph_->device(), stream);
}

void CudaTopologySampler::ReturnWorker(std::unique_ptr<Worker> worker) {
  const MutexLock lock(&mutex_);
  idle_.push_back(std::move(worker));
}

void CudaTopologySampler::DropIdleWorkers() {
  std::vector<std::unique_ptr<Worker>> dropped;
  const MutexLock lock(&mutex_);
  dropped.swap(idle_);
}

absl::StatusOr<Batch> CudaTopologySampler::SampleOnHost(
    const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds) {
  ++host_batches_;
  return host_sampler_->Sample(job, request, seeds);
}

absl::StatusOr<HopOutcome> CudaTopologySampler::SampleOnDevice(
    const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds, Batch& batch) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, TakeWorker());
  const std::vector<SeedList> lists = SeedLists(job, store_->schema(), seeds);
  const HopJob hops = MakeHopJob(job, store_->manifest(),
                                 graph_->lists(job.spec.direction), request);
  std::span<const int64_t> times;
  if (job.spec.temporal != TemporalStrategy::kNone) times = seeds.times;
  batch = BatchOfSeeds(job, seeds, request.epoch, request.batch);
  const uint64_t waits = worker->waits();
  const absl::StatusOr<HopOutcome> outcome =
      worker->Sample(hops, lists, times, store_->schema(), *pinned_, batch);
  waits_ += worker->waits() - waits;
  // A worker that has failed does nothing more.
  if (worker->failure() == cudaErrorMemoryAllocation) {
    return HopOutcome::kNoMemory;
  }
  if (worker->failed()) {
    return CudaStatus(worker->failure(),
                      StrCat("CUDA device ", graph_->device(), " has failed"));
  }
  // Keeps no memory in one that others may need.
  if (outcome.ok() && *outcome != HopOutcome::kNoMemory) {
    ReturnWorker(std::move(worker));
  }
  return outcome;
}

absl::StatusOr<Batch> CudaTopologySampler::Sample(
    const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds) {
  MILLRACE_RETURN_IF_ERROR(CheckTopologyInput(job, request, seeds));
  const std::string reason = ReasonForHost(job);
  if (!reason.empty() && fallback_ == DeviceFallback::kForbid) {
    return FieldStatus(absl::StatusCode::kFailedPrecondition,
                       {.field = "device_fallback",
                        .value = "forbid",
                        .limit = StrCat("there are no kernels for ", reason)});
  }
  if (!reason.empty() || LacksColumns(job, store_->manifest())) {
    return SampleOnHost(job, request, seeds);
  }
  const ScopedDevice current(graph_->device());
  MILLRACE_RETURN_IF_ERROR(current.status());
  Batch batch;
  MILLRACE_ASSIGN_OR_RETURN(HopOutcome outcome,
                            SampleOnDevice(job, request, seeds, batch));
  if (outcome == HopOutcome::kNoMemory) {
    DropIdleWorkers();
    MILLRACE_ASSIGN_OR_RETURN(outcome,
                              SampleOnDevice(job, request, seeds, batch));
  }
  if (outcome == HopOutcome::kTrouble) {
    // The CPU makes the batch, or says exactly what is wrong.
    return SampleOnHost(job, request, seeds);
  }
  if (outcome == HopOutcome::kNoMemory) {
    return absl::ResourceExhaustedError(
        StrCat("the batch does not fit into the memory of CUDA device ",
               graph_->device(),
               "\nuse a smaller batch size or fanouts, or fewer threads"));
  }
  ++device_batches_;
  return batch;
}

}  // namespace millrace::cuda
