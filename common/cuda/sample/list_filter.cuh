// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/sample/device_array.cuh"
#include "common/cuda/sample/filter_lists.cuh"
#include "common/cuda/sample/hop_filter.h"
#include "common/cuda/sample/hop_step.cuh"
#include "common/sample/draw_rule.h"

namespace millrace::cuda {

// Leaves out of lists what a filter does not keep, before picks are made from
// them. For one relation: first Start(), then for each hop, between finding the
// lists of a step and copying its picks,
//
//   filter.Count(step, bound)
//   the caller downloads *filter.kept(), which nobody knows in advance
//   filter.Keep(step, bound, kept)     fills step.counts and step.offsets
//   picks from filter.Filtered(step)
//   filter.RestorePositions(step, picks)
//
// Functions that return a bool return false if the queue has no memory left.
// For the queue see HopSampler. Not thread-safe. The queue must outlive it.
// Arrays are kept for the next hop.
template <typename Queue>
class ListFilter {
 public:
  explicit ListFilter(Queue& queue)
      : queue_(&queue),
        owners_(queue),
        owner_begins_(queue),
        excluded_entries_(queue),
        excluded_(queue),
        entries_(queue),
        offsets_(queue),
        piece_counts_(queue),
        piece_offsets_(queue),
        begins_(queue),
        ends_(queue),
        ranges_(queue),
        node_originals_(queue),
        positions_(queue),
        originals_(queue),
        weight_sums_(queue),
        running_sums_(queue),
        nodes_(queue),
        parts_(queue) {}

  // Uploads a filter, which takes the place of the last.
  bool Start(const HopFilter& filter) {
    const ExcludedLists& excluded = filter.excluded;
    filter_ = {};
    filter_.members = filter.members;
    if (excluded.owners.empty()) return true;
    if (!Upload(excluded.owners, owners_) ||
        !Upload(excluded.begins, owner_begins_) ||
        !Upload(excluded.entries, excluded_entries_)) {
      return false;
    }
    filter_.owners = owners_.data();
    filter_.begins = owner_begins_.data();
    filter_.entries = excluded_entries_.data();
    filter_.owner_count = excluded.owners.size();
    filter_.timed = excluded.timed;
    return true;
  }

  // Counts the entries that are kept of the lists of a frontier of at most
  // `bound` nodes, which is not 0. The step must have its ranges.
  bool Count(const HopStep& step, uint64_t bound) {
    if (!excluded_.Reserve(bound) || !entries_.Reserve(bound + 1) ||
        !offsets_.Reserve(bound + 1) || !begins_.Reserve(bound) ||
        !ends_.Reserve(bound) || !ranges_.Reserve(bound) ||
        !node_originals_.Reserve(bound) ||
        !piece_counts_.Reserve(kMaxPieces + 1) ||
        !piece_offsets_.Reserve(kMaxPieces + 1)) {
      return false;
    }
    arrays_ = {.excluded = excluded_.data(),
               .entries = entries_.data(),
               .offsets = offsets_.data(),
               .pieces = std::min(bound * kPiecesOfNode, kMaxPieces),
               .piece_counts = piece_counts_.data(),
               .piece_offsets = piece_offsets_.data(),
               .begins = begins_.data(),
               .ends = ends_.data(),
               .ranges = ranges_.data(),
               .node_originals = node_originals_.data()};
    queue_->LaunchEach(FindFilteredLists, bound + 1, step, filter_, arrays_,
                       bound);
    queue_->ExclusiveSum(arrays_.entries, arrays_.offsets, bound + 1);
    LaunchPieces(CountKept, step);
    queue_->ExclusiveSum(arrays_.piece_counts, arrays_.piece_offsets,
                         arrays_.pieces + 1);
    return true;
  }

  // How many entries are kept, in the device's memory.
  const uint64_t* kept() const {
    return arrays_.piece_offsets + arrays_.pieces;
  }

  // Writes the kept entries, of which there are `kept`, and counts what the
  // rule picks from them. The arguments are those of Count().
  bool Keep(const HopStep& step, uint64_t bound, uint64_t kept) {
    if (!ReserveKept(step, kept) || !MakeParts(step, kept)) return false;
    LaunchPieces(WriteKept, step);
    if (arrays_.weight_sums != nullptr && kept > 0) {
      queue_->ExclusiveSum(arrays_.weight_sums, running_sums_.data(), kept);
      queue_->LaunchEach(SumKeptWeights, kept, arrays_, running_sums_.data(),
                         kept);
    }
    queue_->LaunchEach(FindKeptLists, bound + 1, Filtered(step), arrays_,
                       bound);
    queue_->ExclusiveSum(step.counts, step.offsets, bound + 1);
    return true;
  }

  // Returns a step that picks from the kept entries, and whose slots are not
  // positions in files until they are restored.
  HopStep Filtered(HopStep step) const {
    step.lists.parts = parts_.data();
    ++step.lists.part_count;
    step.ranges = arrays_.ranges;
    return step;
  }

  // Turns the slots of at most `picks` picks into positions in the lists'
  // files.
  void RestorePositions(const HopStep& step, uint64_t picks) {
    if (picks == 0) return;
    queue_->LaunchEach(cuda::RestorePositions, picks, Filtered(step),
                       positions_.data(),
                       static_cast<uint32_t>(step.lists.part_count));
  }

 private:
  // About as many pieces as a large device runs warps at once, but only some
  // for each node of a small frontier.
  static constexpr uint64_t kMaxPieces = 8192;
  static constexpr uint64_t kPiecesOfNode = 16;

  void LaunchPieces(void (*kernel)(HopStep, FilterView, FilterArrays),
                    const HopStep& step) {
    constexpr uint64_t kWarpsOfBlock = kMaxBlock / kWarp;
    queue_->LaunchBlocks(kernel,
                         (arrays_.pieces + kWarpsOfBlock - 1) / kWarpsOfBlock,
                         kMaxBlock, step, filter_, arrays_);
  }

  template <typename T>
  bool Upload(const std::vector<T>& from, DeviceArray<Queue, T>& to) {
    if (!to.Reserve(from.size())) return false;
    queue_->Upload(to.data(), from.data(), from.size() * sizeof(T));
    return true;
  }

  // Makes room for what the rule reads of the kept entries.
  bool ReserveKept(const HopStep& step, uint64_t kept) {
    const DrawRuleInfo& rule = InfoOf(step.rule.rule);
    const bool draws = !step.rule.takes_all();
    if (!positions_.Reserve(kept + 1)) return false;
    arrays_.positions = positions_.data();
    if (draws && rule.reads_original_ids) {
      if (!originals_.Reserve(kept + 1)) return false;
      arrays_.originals = originals_.data();
    }
    if (draws && rule.reads_weight_sums) {
      if (!weight_sums_.Reserve(kept + 1) || !running_sums_.Reserve(kept + 1) ||
          !nodes_.Reserve(kept + 1)) {
        return false;
      }
      arrays_.weight_sums = weight_sums_.data();
      arrays_.nodes = nodes_.data();
    }
    return true;
  }

  // The lists' partitions, and as a further one the kept entries. Lists that
  // are not filtered are drawn from where they are.
  bool MakeParts(const HopStep& step, uint64_t kept) {
    const auto count = static_cast<uint64_t>(step.lists.part_count);
    if (!parts_.Reserve(count + 1)) return false;
    PartLists filtered;
    filtered.edge_count = static_cast<int64_t>(kept);
    filtered.node_originals = {arrays_.node_originals, true};
    filtered.originals = {arrays_.originals, true};
    filtered.weight_sums = arrays_.weight_sums;
    queue_->Copy(parts_.data(), step.lists.parts, count * sizeof(PartLists));
    queue_->Upload(parts_.data() + count, &filtered, sizeof(filtered));
    return true;
  }

  Queue* queue_;
  FilterView filter_;
  FilterArrays arrays_;  // of the current hop
  DeviceArray<Queue, uint64_t> owners_, owner_begins_;
  DeviceArray<Queue, ExcludedEntry> excluded_entries_;
  // See FilterArrays.
  DeviceArray<Queue, ExcludedSpan> excluded_;
  DeviceArray<Queue, uint64_t> entries_, offsets_;
  DeviceArray<Queue, uint64_t> piece_counts_, piece_offsets_;
  DeviceArray<Queue, uint64_t> begins_, ends_;
  DeviceArray<Queue, DeviceRange> ranges_;
  DeviceArray<Queue, uint64_t> node_originals_;
  DeviceArray<Queue, int64_t> positions_;
  DeviceArray<Queue, uint64_t> originals_, weight_sums_, running_sums_;
  DeviceArray<Queue, uint32_t> nodes_;
  DeviceArray<Queue, PartLists> parts_;
};

}  // namespace millrace::cuda
