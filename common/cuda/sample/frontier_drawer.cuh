// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/sample/copy_picks.cuh"
#include "common/cuda/sample/device_array.cuh"
#include "common/cuda/sample/find_lists.cuh"
#include "common/cuda/sample/hop_job.h"
#include "common/cuda/sample/hop_step.cuh"
#include "common/cuda/sample/list_filter.cuh"
#include "common/cuda/sample/pick_step.cuh"

namespace millrace::cuda {

// Draws from the lists of one frontier on a device, bit for bit as
// DrawNeighbors() (common/sample/draw/draw.h). See HopSampler for its Queue.
// Not thread-safe. The queue must outlive it. Arrays are kept for the next
// frontier.
template <typename Queue>
class FrontierDrawer {
 public:
  explicit FrontierDrawer(Queue& queue)
      : queue_(queue),
        counters_(queue),
        ids_(queue),
        trees_(queue),
        times_(queue),
        ranges_(queue),
        counts_(queue),
        offsets_(queue),
        slots_(queue),
        neighbors_(queue),
        edge_ids_(queue),
        feature_rows_(queue),
        filter_(queue) {}

  // Starts to draw. Waits for the device once if there is a filter, and once if
  // the number of picks has no small bound: if all neighbours are drawn, or the
  // frontier is huge.
  HopOutcome Start(const DrawJob& job) {
    job_ = &job;
    if (!Upload()) return WithoutMemory();
    const uint64_t nodes = job.ids.size();
    queue_.LaunchEach(FindLists, nodes + 1, MakeStep(), nodes);
    queue_.ExclusiveSum(counts_.data(), offsets_.data(), nodes + 1);
    if (IsFiltered()) {
      const HopOutcome filtered = FilterLists();
      if (filtered != HopOutcome::kMade) return filtered;
    }
    most_ = nodes * static_cast<uint64_t>(std::max(job.fanout, 0));
    if (job.fanout < 0 || most_ > kMaxAssumed) {
      if (!queue_.Download(&most_, offsets_.data() + nodes, sizeof(most_))) {
        return HopOutcome::kFailed;
      }
      if (most_ > kMaxHopRows) return HopOutcome::kTrouble;
    }
    if (!ReservePicks()) return WithoutMemory();
    Pick();
    return queue_.failed() ? HopOutcome::kFailed : HopOutcome::kMade;
  }

  // The draw that has been started, in the device's memory. The first counter
  // has the trouble bits.
  std::span<const uint64_t> counters() const {
    return std::span(counters_.data(), kCounters);
  }
  CountedRows picks() const { return {counter(kPicks), most_}; }
  // [nodes + 1] of the picks of each node
  const uint64_t* offsets() const { return offsets_.data(); }
  const uint64_t* neighbors() const { return neighbors_.data(); }  // [picks]
  const int64_t* edge_ids() const { return edge_ids_.data(); }
  const uint64_t* feature_rows() const { return feature_rows_.data(); }

 private:
  static constexpr uint64_t kMaxAssumed = uint64_t{1} << 20;

  // Positions of counters: the trouble bits, the bounds of the frontier, the
  // picks of earlier hops, of which there are none, and the picks.
  enum : uint64_t { kTroubleBits, kBegin, kEnd, kEdges, kPicks, kCounters };

  uint64_t* counter(uint64_t at) const { return counters_.data() + at; }

  HopOutcome WithoutMemory() const {
    return queue_.failed() ? HopOutcome::kFailed : HopOutcome::kNoMemory;
  }

  bool IsFiltered() const {
    return job_->filter.members != nullptr ||
           !job_->filter.excluded.owners.empty();
  }

  HopOutcome FilterLists() {
    const HopStep step = MakeStep();
    const uint64_t nodes = job_->ids.size();
    if (!filter_.Start(job_->filter) || !filter_.Count(step, nodes)) {
      return WithoutMemory();
    }
    uint64_t kept = 0;
    if (!queue_.Download(&kept, filter_.kept(), sizeof(kept))) {
      return HopOutcome::kFailed;
    }
    return filter_.Keep(step, nodes, kept) ? HopOutcome::kMade
                                           : WithoutMemory();
  }

  bool Upload() {
    const uint64_t nodes = job_->ids.size();
    if (!counters_.Reserve(kCounters) || !ids_.Reserve(nodes) ||
        !trees_.Reserve(job_->trees.size()) ||
        !times_.Reserve(job_->times.size()) || !ranges_.Reserve(nodes) ||
        !counts_.Reserve(nodes + 1) || !offsets_.Reserve(nodes + 1)) {
      return false;
    }
    const uint64_t counters[kCounters] = {0, 0, nodes, 0, 0};
    queue_.Upload(counters_.data(), counters, sizeof(counters));
    Upload(ids_, job_->ids);
    Upload(trees_, job_->trees);
    Upload(times_, job_->times);
    return true;
  }

  template <typename T>
  void Upload(const DeviceArray<Queue, T>& to, std::span<const T> from) {
    if (!from.empty()) queue_.Upload(to.data(), from.data(), from.size_bytes());
  }

  bool ReservePicks() {
    return slots_.Reserve(most_) && neighbors_.Reserve(most_) &&
           (!job_->edge_ids || edge_ids_.Reserve(most_)) &&
           (!job_->feature_rows || feature_rows_.Reserve(most_));
  }

  HopStep MakeStep() const {
    HopStep step;
    step.lists = job_->lists;
    step.frontier = {.ids = ids_.data(),
                     .trees = job_->trees.empty() ? nullptr : trees_.data(),
                     .times = job_->times.empty() ? nullptr : times_.data(),
                     .time_count = 0,
                     .bounds = counter(kBegin)};
    step.rule = {job_->rule, job_->replace, job_->fanout};
    step.domain = job_->domain;
    step.key = step.domain.Key();
    step.ranges = ranges_.data();
    step.counts = counts_.data();
    step.offsets = offsets_.data();
    step.slots = slots_.data();
    step.picks = counter(kPicks);
    step.trouble = reinterpret_cast<uint32_t*>(counter(kTroubleBits));
    return step;
  }

  void Pick() {
    const HopStep step = MakeStep();
    const uint64_t nodes = job_->ids.size();
    queue_.LaunchEach(CheckTotal, 1, step.offsets + nodes, counter(kEdges),
                      most_, counter(kPicks), step.trouble);
    if (most_ == 0) return;
    if (IsFiltered()) {
      PickByRule(queue_, filter_.Filtered(step), nodes, most_);
      filter_.RestorePositions(step, most_);
    } else {
      PickByRule(queue_, step, nodes, most_);
    }
    queue_.LaunchEach(
        CopyPicks, most_, step,
        PickedColumns{
            .ids = neighbors_.data(),
            .trees = nullptr,
            .edge_ids = job_->edge_ids ? edge_ids_.data() : nullptr,
            .feature_rows = job_->feature_rows ? feature_rows_.data() : nullptr,
            .edges = counter(kEdges)});
  }

  Queue& queue_;
  const DrawJob* job_ = nullptr;
  uint64_t most_ = 0;  // picks
  DeviceArray<Queue, uint64_t> counters_, ids_;
  DeviceArray<Queue, uint32_t> trees_;
  DeviceArray<Queue, int64_t> times_;
  DeviceArray<Queue, DeviceRange> ranges_;
  DeviceArray<Queue, uint64_t> counts_, offsets_;
  DeviceArray<Queue, int64_t> slots_;
  DeviceArray<Queue, uint64_t> neighbors_;
  DeviceArray<Queue, int64_t> edge_ids_;
  DeviceArray<Queue, uint64_t> feature_rows_;
  ListFilter<Queue> filter_;
};

}  // namespace millrace::cuda
