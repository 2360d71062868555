// SPDX-License-Identifier: Apache-2.0
// The lists and splits of a store as kernels read them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#if !defined(__CUDACC__)
#include "tests/support/cuda_threads.h"
#endif
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/hop_sampler.cuh"
#include "common/graph/split_members.h"
#include "common/graph/store.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"

namespace millrace::testing {

inline cuda::IdColumn IdsOf(const Array& array) {
  return {array.data(), array.dtype() == DType::kUint64};
}

template <typename T>
const T* ColumnOf(const Array& array) {
  return array.present() ? array.As<T>().data() : nullptr;
}

// The lists of all relations and partitions. The store must outlive it.
class StoreLists {
 public:
  StoreLists(const Store& store, Direction direction)
      : store_(store), direction_(direction) {
    for (const Relation& relation : store.schema().relations) {
      const auto r = static_cast<RelationIndex>(parts_.size());
      std::vector<cuda::PartLists>& parts = parts_.emplace_back();
      const TypeIndex type = ListOwnerType(relation, direction);
      for (int p = 0; p < store.partition_count(); ++p) {
        parts.push_back(PartOf(p, r, type));
      }
    }
  }

  RelationIndex relations() const {
    return static_cast<RelationIndex>(parts_.size());
  }
  uint64_t neighbor_limit(RelationIndex r) const {
    const TypeIndex type =
        NeighborType(store_.schema().relations[r], direction_);
    return store_.book(type).node_count();
  }
  const std::vector<cuda::PartLists>& parts(RelationIndex r) const {
    return parts_[r];
  }
  // To damage them.
  std::vector<cuda::PartLists>& parts(RelationIndex r) { return parts_[r]; }

 private:
  cuda::PartLists PartOf(int p, RelationIndex r, TypeIndex type) const {
    const Partition& partition = *store_.partition(p);
    const NeighborLists& lists = partition.edges[r].lists(direction_);
    cuda::PartLists part;
    part.first_id = store_.book(type).begin(p);
    part.node_count = store_.book(type).end(p) - part.first_id;
    part.edge_count = lists.indices.rows();
    part.node_originals = IdsOf(partition.nodes[type].original_id);
    part.indptr = ColumnOf<int64_t>(lists.indptr);
    part.indices = IdsOf(lists.indices);
    part.originals = lists.neighbor_original_id.present()
                         ? IdsOf(lists.neighbor_original_id)
                         : part.indices;
    part.times = ColumnOf<int64_t>(lists.time);
    part.weight_sums = ColumnOf<uint64_t>(lists.weight_sum);
    part.edge_ids = ColumnOf<int64_t>(lists.edge_id);
    part.feature_rows = ColumnOf<int64_t>(lists.slot);
    return part;
  }

  const Store& store_;
  const Direction direction_;
  std::vector<std::vector<cuda::PartLists>> parts_;  // [relation][partition]
};

// A copy of lists in a queue's memory. The queue must outlive it.
template <typename Queue>
class QueueLists {
 public:
  QueueLists(Queue& queue, const StoreLists& lists) : queue_(queue) {
    for (RelationIndex r = 0; r < lists.relations(); ++r) {
      std::vector<cuda::PartLists> parts = lists.parts(r);
      for (cuda::PartLists& part : parts) CopyColumns(part);
      lists_.push_back({Copy(parts.data(), parts.size()),
                        static_cast<int>(parts.size()),
                        lists.neighbor_limit(r)});
    }
  }
  ~QueueLists() {
    for (void* copy : copies_) queue_.Free(copy);
  }
  QueueLists(const QueueLists&) = delete;
  QueueLists& operator=(const QueueLists&) = delete;

  const std::vector<cuda::Lists>& lists() const { return lists_; }

 private:
  void CopyColumns(cuda::PartLists& part) {
    const uint64_t nodes = part.node_count;
    const auto edges = static_cast<uint64_t>(part.edge_count);
    part.node_originals = Copy(part.node_originals, nodes);
    part.indptr = Copy(part.indptr, nodes + 1);
    part.indices = Copy(part.indices, edges);
    part.originals = Copy(part.originals, edges);
    part.times = Copy(part.times, edges);
    part.weight_sums = Copy(part.weight_sums, edges);
    part.edge_ids = Copy(part.edge_ids, edges);
    part.feature_rows = Copy(part.feature_rows, edges);
  }
  cuda::IdColumn Copy(const cuda::IdColumn& ids, uint64_t rows) {
    return {CopyBytes(ids.data, rows * (ids.wide ? 8 : 4)), ids.wide};
  }
  template <typename T>
  const T* Copy(const T* from, uint64_t rows) {
    return static_cast<const T*>(CopyBytes(from, rows * sizeof(T)));
  }
  // Null if there is nothing to copy.
  const void* CopyBytes(const void* from, uint64_t bytes) {
    if (from == nullptr || bytes == 0) return nullptr;
    void* copy = queue_.Allocate(bytes);
    EXPECT_NE(copy, nullptr);
    if (copy == nullptr) return nullptr;
    copies_.push_back(copy);
    queue_.Upload(copy, from, bytes);
    return copy;
  }

  Queue& queue_;
  std::vector<cuda::Lists> lists_;  // [relation]
  std::vector<void*> copies_;
};

// A copy of the sets of nodes that a job with a train graph draws within, in a
// queue's memory. The queue must outlive it.
template <typename Queue>
class QueueMembers {
 public:
  QueueMembers(Queue& queue, const Store& store, const JobSpec& spec)
      : queue_(queue) {
    if (spec.train_graph.empty()) return;
    for (const Relation& relation : store.schema().relations) {
      const TypeIndex type = NeighborType(relation, spec.direction);
      sets_.push_back(Copy(store.FindMembers(type, spec.train_graph).value()));
    }
  }
  ~QueueMembers() {
    for (uint64_t* set : sets_) {
      if (set != nullptr) queue_.Free(set);
    }
  }
  QueueMembers(const QueueMembers&) = delete;
  QueueMembers& operator=(const QueueMembers&) = delete;

  // By relation; empty without a train graph.
  std::vector<const uint64_t*> sets() const {
    return {sets_.begin(), sets_.end()};
  }

 private:
  uint64_t* Copy(const SplitMembers* members) {
    if (members == nullptr) return nullptr;
    const std::span<const uint64_t> words = members->words();
    void* copy = queue_.Allocate(words.size_bytes());
    EXPECT_NE(copy, nullptr);
    if (copy != nullptr) {
      queue_.Upload(copy, words.data(), words.size_bytes());
    }
    return static_cast<uint64_t*>(copy);
  }

  Queue& queue_;
  std::vector<uint64_t*> sets_;
};

}  // namespace millrace::testing
