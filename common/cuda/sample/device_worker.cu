// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/stream.h"
#include "common/cuda/sample/cuda_queue.cuh"
#include "common/cuda/sample/device_worker.h"
#include "common/cuda/sample/downloads.cuh"
#include "common/cuda/sample/frontier_drawer.cuh"
#include "common/cuda/sample/hop_sampler.cuh"
#include "common/sample/gather.h"

namespace millrace::cuda {
namespace {

// Above this size of a block, the host first waits for the true sizes of its
// arrays.
constexpr uint64_t kMaxUnknownBytes = uint64_t{64} << 20;

// The arrays of a batch's topology, as they come from the device.
class TopologyArrays {
 public:
  TopologyArrays(const HopSampler<CudaQueue>& sampler, const TopologyWork& work,
                 const CountedArrays& rows, Batch& batch)
      : sampler_(sampler),
        work_(work),
        batch_(batch),
        downloads_(sampler.counters(),
                   work.stay == nullptr ? kHost : work.stay->device()),
        locals_(work.lists.size()),
        owner_lists_(schema().relations.size()) {
    batch.nodes.assign(schema().node_types.size(), {});
    batch.edges.assign(schema().relations.size(), {});
    AddLocals();
    AddNodes(rows);
    AddEdges(rows);
  }

  Downloads& downloads() { return downloads_; }
  uint64_t bytes() const {
    return downloads_.pinned_bytes() + downloads_.device_bytes();
  }

  // Completes the batch, once everything is there and the sampler has taken the
  // counters.
  void Finish() {
    downloads_.Finish();
    for (size_t i = 0; i < locals_.size(); ++i) {
      SetSeedLocals(work_.lists[i].role, std::move(locals_[i]), batch_);
    }
    for (size_t t = 0; t < batch_.nodes.size(); ++t) {
      batch_.nodes[t].hop_offsets =
          sampler_.nodes(static_cast<int>(t)).hop_offsets;
    }
    if (stays()) FinishEdges();
  }

 private:
  const Schema& schema() const { return work_.manifest.schema; }
  bool stays() const { return work_.stay != nullptr; }

  void AddLocals() {
    const uint32_t* local = sampler_.seed_locals();
    for (size_t i = 0; i < locals_.size(); ++i) {
      const uint64_t count = work_.lists[i].ids.size();
      downloads_.Add(local, DType::kUint32, {.more = count}, locals_[i]);
      local += count;
    }
  }

  void AddNodes(const CountedArrays& rows) {
    for (size_t t = 0; t < batch_.nodes.size(); ++t) {
      const HopNodes nodes = sampler_.nodes(static_cast<int>(t));
      const DType ids = schema().node_types[t].id_dtype();
      downloads_.Add(nodes.ids, ids, rows.nodes[t], batch_.nodes[t].id,
                     {.narrowed = ids == DType::kUint32});
      if (work_.job.disjoint) {
        downloads_.Add(nodes.trees, DType::kUint32, rows.nodes[t],
                       batch_.nodes[t].tree);
      }
    }
  }

  void AddEdges(const CountedArrays& rows) {
    const ArrayForm form{.stays = stays()};
    for (size_t r = 0; r < batch_.edges.size(); ++r) {
      const HopEdges edges = sampler_.edges(static_cast<int>(r));
      EdgeBlock& block = batch_.edges[r];
      CountedRows ends = rows.expanded[r];
      ++ends.more;
      downloads_.Add(edges.indptr, DType::kUint32, ends, block.indptr, form);
      downloads_.Add(edges.neighbor, DType::kUint32, rows.edges[r],
                     block.neighbor, form);
      if (edges.edge_id != nullptr) {
        downloads_.Add(edges.edge_id, DType::kInt64, rows.edges[r],
                       block.edge_id, form);
      }
      if (edges.feature_row == nullptr) continue;
      downloads_.Add(edges.feature_row, DType::kUint64, rows.edges[r],
                     block.feature_row);
      if (!stays() || OwnersOf(r).partition_count() == 1) continue;
      if (batch_.direction == Direction::kIn) {
        downloads_.Add(edges.indptr, DType::kUint32, ends, owner_lists_[r]);
      } else {
        downloads_.Add(edges.neighbor, DType::kUint32, rows.edges[r],
                       owner_lists_[r]);
      }
    }
  }

  // Who owns the features of a relation's edges.
  const PartitionBook& OwnersOf(size_t r) const {
    return work_.manifest.books[schema().relations[r].dst];
  }

  // What FeatureOwners() reads if there are several partitions.
  Array& ReadByOwners(EdgeBlock& block) const {
    return batch_.direction == Direction::kIn ? block.indptr : block.neighbor;
  }

  // Fills in what the host cannot read on the device.
  void FinishEdges() {
    for (size_t r = 0; r < batch_.edges.size(); ++r) {
      EdgeBlock& block = batch_.edges[r];
      block.list_ends = sampler_.edges(static_cast<int>(r)).list_ends;
      if (!block.feature_row.present()) continue;
      EdgeBlock on_host = block;
      if (owner_lists_[r].present()) ReadByOwners(on_host) = owner_lists_[r];
      block.feature_parts =
          FeatureOwners(batch_, schema().relations[r], on_host, OwnersOf(r));
    }
  }

  const HopSampler<CudaQueue>& sampler_;
  const TopologyWork& work_;
  Batch& batch_;
  Downloads downloads_;
  std::vector<Array> locals_;
  // By relation: what ReadByOwners() returns, on the host. Absent unless it
  // tells who owns the features of edges that stay.
  std::vector<Array> owner_lists_;
};

// Replaces bounds by the true sizes, once the counters have been read.
CountedArrays Exact(CountedArrays rows, const uint64_t* device_counters,
                    std::span<const uint64_t> counters) {
  for (std::vector<CountedRows>* list :
       {&rows.nodes, &rows.edges, &rows.expanded}) {
    for (CountedRows& one : *list) {
      one = {.more =
                 counters[static_cast<size_t>(one.count - device_counters)]};
    }
  }
  return rows;
}

template <typename T>
void Append(const Array& from, std::vector<T>& to) {
  const std::span<const T> values = from.As<T>();
  to.insert(to.end(), values.begin(), values.end());
}

}  // namespace

class DeviceWorker::State {
 public:
  State(int device, Stream stream)
      : device_(device),
        stream_(std::move(stream)),
        queue_(stream_.get()),
        sampler_(queue_),
        drawer_(queue_) {}

  int device() const { return device_; }
  const CudaQueue& queue() const { return queue_; }

  absl::StatusOr<HopOutcome> MakeTopology(const TopologyWork& work,
                                          PinnedPool& pool, Batch& batch) {
    const HopOutcome started = StartTopology(work);
    if (started != HopOutcome::kMade) return started;
    TopologyArrays arrays(sampler_, work, sampler_.arrays(), batch);
    if (arrays.bytes() <= kMaxUnknownBytes) {
      return Download(work, pool, arrays);
    }
    const std::span<const uint64_t> on_device = sampler_.counters();
    std::vector<uint64_t> counters(on_device.size());
    if (!queue_.Download(counters.data(), on_device.data(),
                         on_device.size_bytes())) {
      return HopOutcome::kFailed;
    }
    TopologyArrays exact(sampler_, work,
                         Exact(sampler_.arrays(), on_device.data(), counters),
                         batch);
    return Download(work, pool, exact);
  }

  absl::StatusOr<HopOutcome> Draw(const DrawJob& job, PinnedPool& pool,
                                  Picks& picks) {
    const HopOutcome started = drawer_.Start(job);
    if (started != HopOutcome::kMade) return started;
    Array offsets, neighbors, edge_ids, feature_rows;
    Downloads downloads(drawer_.counters());
    downloads.Add(drawer_.offsets(), DType::kUint64,
                  {.more = job.ids.size() + 1}, offsets);
    downloads.Add(drawer_.neighbors(), DType::kUint64, drawer_.picks(),
                  neighbors);
    if (job.edge_ids) {
      downloads.Add(drawer_.edge_ids(), DType::kInt64, drawer_.picks(),
                    edge_ids);
    }
    if (job.feature_rows) {
      downloads.Add(drawer_.feature_rows(), DType::kUint64, drawer_.picks(),
                    feature_rows);
    }
    MILLRACE_RETURN_IF_ERROR(Download(pool, downloads, nullptr));
    if (queue_.failed()) return HopOutcome::kFailed;
    if (downloads.counters()[0] != 0) return HopOutcome::kTrouble;
    downloads.Finish();
    const std::span<const uint64_t> ends = offsets.As<uint64_t>();
    for (size_t i = 0; i < job.ids.size(); ++i) {
      picks.counts.push_back(static_cast<uint32_t>(ends[i + 1] - ends[i]));
    }
    Append(neighbors, picks.neighbors);
    if (job.edge_ids) Append(edge_ids, picks.edge_ids);
    if (job.feature_rows) Append(feature_rows, picks.feature_rows);
    return HopOutcome::kMade;
  }

 private:
  HopOutcome StartTopology(const TopologyWork& work) {
    std::vector<SeedNodes> seeds;
    for (const SeedList& list : work.lists) {
      seeds.push_back({list.type, list.ids, list.trees});
    }
    return sampler_.Start(work.job, seeds, work.times);
  }

  absl::StatusOr<HopOutcome> Download(const TopologyWork& work,
                                      PinnedPool& pool,
                                      TopologyArrays& arrays) {
    if (work.reserve != nullptr) {
      MILLRACE_RETURN_IF_ERROR(work.reserve(
          BlockPool::BlockBytes(arrays.downloads().pinned_bytes())));
    }
    std::shared_ptr<std::byte> stays;
    if (work.stay != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(
          stays, work.stay->AllocateIfRoom(arrays.downloads().device_bytes()));
      if (stays == nullptr) return HopOutcome::kNoMemory;
    }
    MILLRACE_RETURN_IF_ERROR(
        Download(pool, arrays.downloads(), std::move(stays)));
    if (queue_.failed()) return HopOutcome::kFailed;
    const HopOutcome outcome =
        sampler_.TakeCounters(arrays.downloads().counters());
    if (outcome == HopOutcome::kMade) arrays.Finish();
    return outcome;
  }

  // Copies, and waits. `stays` is the block of the device.
  absl::Status Download(PinnedPool& pool, Downloads& downloads,
                        std::shared_ptr<std::byte> stays) {
    MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> pinned,
                              pool.Allocate(downloads.pinned_bytes()));
    downloads.Start(queue_, {std::move(pinned), std::move(stays)});
    // Even after a failure, since the blocks must outlive what has begun.
    queue_.Wait();
    return absl::OkStatus();
  }

  const int device_;
  const Stream stream_;
  CudaQueue queue_;
  HopSampler<CudaQueue> sampler_;
  FrontierDrawer<CudaQueue> drawer_;
};

DeviceWorker::DeviceWorker(std::unique_ptr<State> state)
    : device_(state->device()), state_(std::move(state)) {}

DeviceWorker::~DeviceWorker() {
  const ScopedDevice current(device_);
  state_.reset();
}

absl::StatusOr<std::unique_ptr<DeviceWorker>> DeviceWorker::Create(int device) {
  MILLRACE_ASSIGN_OR_RETURN(Stream stream, Stream::Create(device));
  return std::unique_ptr<DeviceWorker>(
      new DeviceWorker(std::make_unique<State>(device, std::move(stream))));
}

absl::StatusOr<HopOutcome> DeviceWorker::Checked(
    absl::StatusOr<HopOutcome> outcome) const {
  const cudaError_t failure = state_->queue().failure();
  if (failure == cudaErrorMemoryAllocation) return HopOutcome::kNoMemory;
  if (failure == cudaSuccess) return outcome;
  return DeviceFailureStatus(failure, device_);
}

absl::StatusOr<HopOutcome> DeviceWorker::MakeTopology(const TopologyWork& work,
                                                      PinnedPool& pool,
                                                      Batch& batch) {
  return Checked(state_->MakeTopology(work, pool, batch));
}

absl::StatusOr<HopOutcome> DeviceWorker::Draw(const DrawJob& job,
                                              PinnedPool& pool, Picks& picks) {
  return Checked(state_->Draw(job, pool, picks));
}

bool DeviceWorker::failed() const { return state_->queue().failed(); }
uint64_t DeviceWorker::waits() const { return state_->queue().waits(); }

}  // namespace millrace::cuda
