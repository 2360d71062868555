// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/sample/copy_picks.cuh"
#include "common/cuda/sample/counter_layout.h"
#include "common/cuda/sample/device_array.cuh"
#include "common/cuda/sample/find_lists.cuh"
#include "common/cuda/sample/hop_bounds.h"
#include "common/cuda/sample/hop_job.h"
#include "common/cuda/sample/hop_step.cuh"
#include "common/cuda/sample/list_filter.cuh"
#include "common/cuda/sample/node_numbers.cuh"
#include "common/cuda/sample/pick_step.cuh"

namespace millrace::cuda {

// Makes the topology of batches on a device, bit for bit as SampleTopology()
// makes it from the same seeds: its hops, for all rules but kAmong.
//
// The host waits for the device once for each hop that has filtered lists, and
// once for each whose number of picks has no small bound (all neighbours, or a
// huge frontier).
//
// A Queue runs work on the device in order. Its functions are
//
// * bool failed(), whether it has failed and does nothing more;
// * void* Allocate(size_t bytes), null if there is not enough memory or the
//   queue has failed, and void Free(void* data);
// * void Copy(void* to, const void* from, size_t bytes), within the device;
// * void Upload(the same), which has read `from` when it returns;
// * bool Download(the same), which waits, and is false if the queue has failed;
// * void LaunchEach(kernel, uint64_t work, arguments...), for a kernel whose
//   threads work alone: at most one for each piece of work;
// * void LaunchBlocks(kernel, uint64_t blocks, unsigned threads, arguments...):
//   at most as many blocks, of at most as many threads, in whole warps;
// * void ExclusiveSum(const uint64_t* from, uint64_t* to, uint64_t count).
//
// Not thread-safe. The queue must outlive it. Arrays are kept for the next
// batch.
template <typename Queue>
class HopSampler {
 public:
  explicit HopSampler(Queue& queue)
      : queue_(queue),
        counters_(queue),
        times_(queue),
        seed_ids_(queue),
        seed_trees_(queue),
        seed_locals_(queue),
        slots_(queue),
        picked_ids_(queue),
        picked_trees_(queue),
        numbering_(queue) {}

  // Starts to make a batch. `times` are those of the trees, of which tree t has
  // number t modulo their count; empty unless temporal. If it returns kMade,
  // TakeCounters() must be called with the counters that the device has then.
  HopOutcome Start(const HopJob& job, std::span<const SeedNodes> seeds,
                   std::span<const int64_t> times) {
    job_ = &job;
    hop_ = 0;
    if (!UploadSeeds(seeds, times)) return WithoutMemory();
    NumberSeeds(seeds);
    CloseHop(0);
    for (hop_ = 0; hop_ < job.hops; ++hop_) {
      const HopOutcome outcome = AddHop();
      if (outcome != HopOutcome::kMade) return outcome;
    }
    return queue_.failed() ? HopOutcome::kFailed : HopOutcome::kMade;
  }

  // Ends a batch.
  HopOutcome TakeCounters(std::span<const uint64_t> counters) {
    host_.assign(counters.begin(), counters.end());
    return Outcome();
  }

  // Makes a batch, and waits for it.
  HopOutcome Sample(const HopJob& job, std::span<const SeedNodes> seeds,
                    std::span<const int64_t> times) {
    const HopOutcome started = Start(job, seeds, times);
    if (started != HopOutcome::kMade) return started;
    return ReadCounters() ? Outcome() : HopOutcome::kFailed;
  }

  // The batch that has been started, in the device's memory.
  std::span<const uint64_t> counters() const {
    return std::span(counters_.data(), host_.size());
  }
  CountedArrays arrays() const {
    CountedArrays arrays;
    for (size_t t = 0; t < types(); ++t) {
      arrays.nodes.push_back({counter(at_.Nodes(t)), bounds_.nodes(t)});
    }
    for (uint64_t r = 0; r < relations(); ++r) {
      const int type = job_->relations[r].list_type;
      arrays.edges.push_back({counter(at_.Edges(r)), bounds_.edges(r)});
      arrays.expanded.push_back(
          {counter(at_.Offset(type, job_->hops)), bounds_.nodes(type)});
    }
    return arrays;
  }

  // The arrays of what has been started, and their sizes once it is made. They
  // are valid until the next batch.

  HopNodes nodes(int type) const {
    HopNodes nodes{{0}, types_[type].ids(), types_[type].trees()};
    for (int hop = 0; hop <= job_->hops; ++hop) {
      nodes.hop_offsets.push_back(
          static_cast<uint32_t>(host_[at_.Offset(type, hop + 1)]));
    }
    return nodes;
  }
  HopEdges edges(int relation) const {
    const Columns& columns = columns_[relation];
    const HopRelation& of = job_->relations[relation];
    HopEdges edges{
        .count = host_[at_.Edges(relation)],
        .expanded = host_[at_.Offset(of.list_type, job_->hops)],
        .indptr = columns.indptr.data(),
        .neighbor = columns.neighbor.data(),
        .edge_id = job_->edge_ids ? columns.edge_id.data() : nullptr,
        .feature_row = of.feature_rows ? columns.feature_row.data() : nullptr};
    for (int hop = 0; hop <= job_->hops; ++hop) {
      edges.list_ends.push_back(
          static_cast<uint32_t>(host_[at_.ListEnd(relation, hop)]));
    }
    return edges;
  }
  // Local ids of the seeds, list after list.
  const uint32_t* seed_locals() const { return seed_locals_.data(); }
  // Trouble bits.
  uint32_t trouble() const { return static_cast<uint32_t>(host_[0]); }

 private:
  // A relation's arrays: of the current hop, then of the whole batch.
  struct Columns {
    explicit Columns(Queue& queue)
        : ranges(queue),
          counts(queue),
          offsets(queue),
          indptr(queue),
          neighbor(queue),
          edge_id(queue),
          feature_row(queue),
          filter(queue) {}

    DeviceArray<Queue, DeviceRange> ranges;
    DeviceArray<Queue, uint64_t> counts, offsets;
    DeviceArray<Queue, uint32_t> indptr, neighbor;
    DeviceArray<Queue, int64_t> edge_id;
    DeviceArray<Queue, uint64_t> feature_row;
    ListFilter<Queue> filter;
  };

  size_t types() const { return job_->node_counts.size(); }
  size_t relations() const { return job_->relations.size(); }
  uint64_t* counter(uint64_t at) const { return counters_.data() + at; }
  uint32_t* device_trouble() const {
    return reinterpret_cast<uint32_t*>(counters_.data());
  }

  // A queue that has failed allocates nothing more.
  HopOutcome WithoutMemory() const {
    return queue_.failed() ? HopOutcome::kFailed : HopOutcome::kNoMemory;
  }

  HopOutcome Outcome() const {
    return trouble() != 0 ? HopOutcome::kTrouble : HopOutcome::kMade;
  }

  bool ReadCounters() {
    return queue_.Download(host_.data(), counters_.data(),
                           host_.size() * sizeof(uint64_t));
  }

  // Forgets the last batch, and uploads the seeds.
  bool UploadSeeds(std::span<const SeedNodes> seeds,
                   std::span<const int64_t> times) {
    while (types_.size() < types()) types_.emplace_back(queue_);
    while (columns_.size() < relations()) columns_.emplace_back(queue_);
    at_ = CounterLayout(types(), relations(), seeds.size(), job_->hops);
    host_.assign(at_.size(), 0);
    std::vector<uint64_t> ids;
    std::vector<uint32_t> trees;
    bounds_ = HopBounds(*job_, seeds);
    for (size_t s = 0; s < seeds.size(); ++s) {
      host_[at_.SeedCount(s)] = seeds[s].ids.size();
      ids.insert(ids.end(), seeds[s].ids.begin(), seeds[s].ids.end());
      trees.insert(trees.end(), seeds[s].trees.begin(), seeds[s].trees.end());
    }
    time_count_ = times.size();
    if (!counters_.Reserve(host_.size()) || !times_.Reserve(times.size() + 1) ||
        !seed_ids_.Reserve(ids.size() + 1) ||
        !seed_trees_.Reserve(trees.size() + 1) ||
        !seed_locals_.Reserve(ids.size() + 1) ||
        !numbering_.Reserve(ids.size())) {
      return false;
    }
    Upload(counters_, std::span<const uint64_t>(host_));
    Upload(times_, times);
    Upload(seed_ids_, std::span<const uint64_t>(ids));
    Upload(seed_trees_, std::span<const uint32_t>(trees));
    for (size_t t = 0; t < types(); ++t) {
      types_[t].Start(job_->disjoint, counter(at_.Nodes(t)));
    }
    for (size_t r = 0; r < relations(); ++r) {
      if (!columns_[r].filter.Start(job_->relations[r].filter)) return false;
    }
    totals_.clear();
    return ReserveAhead();
  }

  template <typename T>
  void Upload(const DeviceArray<Queue, T>& to, std::span<const T> from) {
    if (!from.empty()) queue_.Upload(to.data(), from.data(), from.size_bytes());
  }

  void NumberSeeds(std::span<const SeedNodes> seeds) {
    uint64_t begin = 0;
    for (size_t s = 0; s < seeds.size(); ++s) {
      const uint64_t count = seeds[s].ids.size();
      types_[seeds[s].type].Number(
          {seed_ids_.data() + begin,
           job_->disjoint ? seed_trees_.data() + begin : nullptr,
           counter(at_.SeedCount(s)), count},
          numbering_, counter(at_.Seeds()), seed_locals_.data(),
          device_trouble());
      begin += count;
    }
  }

  // Keeps how many nodes and edges there are before hop `hop`.
  void CloseHop(int hop) {
    queue_.LaunchEach(CopyCounters, types(), counter(at_.Nodes(0)), uint64_t{1},
                      types(), counter(at_.Offset(0, hop + 1)), at_.stride());
    // The counters of edges start at 0.
    if (hop == 0 || relations() == 0) return;
    queue_.LaunchEach(CopyCounters, relations(), counter(at_.Edges(0)),
                      at_.Edges(1) - at_.Edges(0), relations(),
                      counter(at_.ListEnd(0, hop)), at_.end_stride());
  }

  // Reserves memory up to the next hop whose totals are not known yet. What
  // arrays hold must be what host_ says.
  bool ReserveAhead() {
    HopBounds bounds = bounds_;
    int hop = hop_;
    if (!totals_.empty()) bounds.Advance(hop++, totals_);
    for (; hop < job_->hops && !bounds.NeedTotals(hop); ++hop) {
      bounds.Advance(hop, {});
    }
    for (size_t t = 0; t < types(); ++t) {
      if (!types_[t].Reserve(bounds.nodes(t), host_[at_.Nodes(t)]))
        return false;
    }
    for (uint64_t r = 0; r < relations(); ++r) {
      if (!ReserveEdges(r, bounds)) return false;
    }
    const uint64_t picks = bounds.picks();
    return slots_.Reserve(picks) && picked_ids_.Reserve(picks) &&
           (!job_->disjoint || picked_trees_.Reserve(picks)) &&
           numbering_.Reserve(picks);
  }

  bool ReserveEdges(uint64_t r, const HopBounds& bounds) {
    const HopRelation& relation = job_->relations[r];
    Columns& columns = columns_[r];
    const uint64_t used = host_[at_.Edges(r)];
    const uint64_t closed = host_[at_.Offset(relation.list_type, hop_)];
    if (!columns.indptr.Reserve(bounds.nodes(relation.list_type) + 1,
                                hop_ == 0 ? 0 : closed + 1)) {
      return false;
    }
    if (hop_ == 0) {
      constexpr uint32_t kNone = 0;
      queue_.Upload(columns.indptr.data(), &kNone, sizeof(kNone));
    }
    const uint64_t edges = bounds.edges(r) + 1;
    return columns.neighbor.Reserve(edges, used) &&
           (!job_->edge_ids || columns.edge_id.Reserve(edges, used)) &&
           (!relation.feature_rows || columns.feature_row.Reserve(edges, used));
  }

  HopOutcome AddHop() {
    for (uint64_t r = 0; r < relations(); ++r) {
      if (IsIdle(r)) continue;
      if (!FindLists(r)) return WithoutMemory();
    }
    const HopOutcome filtered = FilterLists();
    if (filtered != HopOutcome::kMade) return filtered;
    totals_.clear();
    if (bounds_.NeedTotals(hop_)) {
      if (!ReadTotals()) return HopOutcome::kFailed;
      if (trouble() != 0 || HasTooManyPicks()) return HopOutcome::kTrouble;
      if (!ReserveAhead()) return WithoutMemory();
    }
    for (uint64_t r = 0; r < relations(); ++r) AddStep(r);
    bounds_.Advance(hop_, totals_);
    CloseHop(hop_ + 1);
    return HopOutcome::kMade;
  }

  // Returns true if the current hop draws nothing from the relation.
  bool IsIdle(uint64_t r) const {
    const HopRelation& relation = job_->relations[r];
    return relation.fanouts[hop_] == 0 || FrontierBound(r) == 0;
  }

  // The largest number of nodes that the relation's frontier can have.
  uint64_t FrontierBound(uint64_t r) const {
    return bounds_.frontier(job_->relations[r].list_type);
  }

  // Returns true if entries of the relation's lists may be left out in the
  // current hop. Seeds own what is excluded, and only other trees may have them
  // in a later frontier.
  bool IsFiltered(uint64_t r) const {
    const HopFilter& filter = job_->relations[r].filter;
    const bool excludes =
        !filter.excluded.owners.empty() && (hop_ == 0 || job_->disjoint);
    return !IsIdle(r) && (filter.members != nullptr || excludes);
  }

  // Leaves out the entries that the filters of the hop's relations do not keep.
  // Waits for the device if there are filters, since only it knows how many
  // entries are kept.
  HopOutcome FilterLists() {
    bool any = false;
    for (uint64_t r = 0; r < relations(); ++r) {
      if (!IsFiltered(r)) continue;
      any = true;
      ListFilter<Queue>& filter = columns_[r].filter;
      if (!filter.Count(MakeStep(r), FrontierBound(r))) return WithoutMemory();
      queue_.LaunchEach(CopyTotal, 1, filter.kept(), counter(at_.Total(r)));
    }
    if (!any) return HopOutcome::kMade;
    if (!ReadCounters()) return HopOutcome::kFailed;
    if (trouble() != 0) return HopOutcome::kTrouble;
    for (uint64_t r = 0; r < relations(); ++r) {
      if (!IsFiltered(r)) continue;
      if (!columns_[r].filter.Keep(MakeStep(r), FrontierBound(r),
                                   host_[at_.Total(r)])) {
        return WithoutMemory();
      }
    }
    return HopOutcome::kMade;
  }

  // Makes the bounds exact, and reads the totals of the hop.
  bool ReadTotals() {
    for (uint64_t r = 0; r < relations(); ++r) {
      if (IsIdle(r)) continue;
      queue_.LaunchEach(CopyTotal, 1,
                        columns_[r].offsets.data() + FrontierBound(r),
                        counter(at_.Total(r)));
    }
    if (!ReadCounters()) return false;
    totals_.assign(relations(), 0);
    for (uint64_t r = 0; r < relations(); ++r) {
      if (!IsIdle(r)) totals_[r] = host_[at_.Total(r)];
      bounds_.SetEdges(r, host_[at_.Edges(r)]);
    }
    for (size_t t = 0; t < types(); ++t) {
      bounds_.SetNodes(t, host_[at_.Nodes(t)]);
    }
    return true;
  }

  bool HasTooManyPicks() const {
    for (uint64_t r = 0; r < relations(); ++r) {
      const int type = job_->relations[r].list_type;
      const uint64_t frontier =
          host_[at_.Offset(type, hop_ + 1)] - host_[at_.Offset(type, hop_)];
      const auto fanout =
          static_cast<uint64_t>(std::max(job_->relations[r].fanouts[hop_], 0));
      if (totals_[r] > kMaxHopRows ||
          (job_->replace && fanout * frontier > kMaxHopRows)) {
        return true;
      }
    }
    return false;
  }

  HopStep MakeStep(uint64_t r) const {
    const HopRelation& relation = job_->relations[r];
    const NodeNumbers<Queue>& nodes = types_[relation.list_type];
    const Columns& columns = columns_[r];
    HopStep step;
    step.lists = relation.lists;
    step.frontier = {nodes.ids(), nodes.trees(),
                     time_count_ > 0 ? times_.data() : nullptr, time_count_,
                     counter(at_.Offset(relation.list_type, hop_))};
    step.rule = {job_->rule, job_->replace, relation.fanouts[hop_]};
    step.domain = {
        .job_seed = job_->job_seed,
        .epoch = job_->epoch,
        .batch = job_->batch,
        .purpose = InfoOf(job_->rule).own_purpose.value_or(Purpose::kNeighbor),
        .hop = hop_,
        .relation = static_cast<int>(r)};
    step.key = step.domain.Key();
    step.ranges = columns.ranges.data();
    step.counts = columns.counts.data();
    step.offsets = IsIdle(r) ? nullptr : columns.offsets.data();
    step.slots = slots_.data();
    step.picks = counter(at_.Picks(r));
    step.trouble = device_trouble();
    return step;
  }

  bool FindLists(uint64_t r) {
    const uint64_t bound = FrontierBound(r);
    Columns& columns = columns_[r];
    if (!columns.ranges.Reserve(bound) || !columns.counts.Reserve(bound + 1) ||
        !columns.offsets.Reserve(bound + 1)) {
      return false;
    }
    queue_.LaunchEach(cuda::FindLists, bound + 1, MakeStep(r), bound);
    queue_.ExclusiveSum(columns.counts.data(), columns.offsets.data(),
                        bound + 1);
    return true;
  }

  // Draws from the lists of a relation, and adds what was picked.
  void AddStep(uint64_t r) {
    const HopRelation& relation = job_->relations[r];
    const uint64_t nodes = FrontierBound(r);
    const HopStep step = MakeStep(r);
    const uint64_t most =
        totals_.empty() ? bounds_.MostPicks(hop_, r) : totals_[r];
    const bool idle = IsIdle(r);
    if (!idle) {
      queue_.LaunchEach(CheckTotal, 1, step.offsets + nodes,
                        counter(at_.Edges(r)), most, counter(at_.Picks(r)),
                        step.trouble);
    }
    if (nodes > 0) {
      queue_.LaunchEach(ExtendIndptr, nodes, step, counter(at_.Edges(r)),
                        columns_[r].indptr.data());
    }
    if (idle || most == 0) return;
    if (IsFiltered(r)) {
      PickByRule(queue_, columns_[r].filter.Filtered(step), nodes, most);
      columns_[r].filter.RestorePositions(step, most);
    } else {
      PickByRule(queue_, step, nodes, most);
    }
    const bool trees = job_->disjoint;
    queue_.LaunchEach(
        CopyPicks, most, step,
        PickedColumns{
            picked_ids_.data(), trees ? picked_trees_.data() : nullptr,
            job_->edge_ids ? columns_[r].edge_id.data() : nullptr,
            relation.feature_rows ? columns_[r].feature_row.data() : nullptr,
            counter(at_.Edges(r))});
    types_[relation.neighbor_type].Number(
        {picked_ids_.data(), trees ? picked_trees_.data() : nullptr,
         counter(at_.Picks(r)), most},
        numbering_, counter(at_.Edges(r)), columns_[r].neighbor.data(),
        device_trouble());
  }

  Queue& queue_;
  const HopJob* job_ = nullptr;
  int hop_ = 0;
  CounterLayout at_;
  uint64_t time_count_ = 0;
  std::vector<uint64_t> host_;  // counters when they were last read
  // Picks of the current hop by relation, if the host had to wait for them.
  std::vector<uint64_t> totals_;
  HopBounds bounds_;  // before the current hop
  DeviceArray<Queue, uint64_t> counters_;
  DeviceArray<Queue, int64_t> times_;
  DeviceArray<Queue, uint64_t> seed_ids_;
  DeviceArray<Queue, uint32_t> seed_trees_, seed_locals_;
  std::vector<NodeNumbers<Queue>> types_;
  std::vector<Columns> columns_;
  // Scratch space, reused by each step.
  DeviceArray<Queue, int64_t> slots_;
  DeviceArray<Queue, uint64_t> picked_ids_;
  DeviceArray<Queue, uint32_t> picked_trees_;
  NumberingScratch<Queue> numbering_;
};

}  // namespace millrace::cuda
