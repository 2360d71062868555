// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/graph/device_features.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "common/base/array.h"
#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/peer_access.h"
#include "common/cuda/runtime/pinned_array.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kPartAlignment = 256;
constexpr uint64_t kMaxWordBytes = 16;
// Rows that are not next to each other in the store are copied in pieces.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

constexpr char kCannotCopyRows[] = "cannot copy feature rows to GPU memory";

// A column of a store and where its rows go.
struct PlannedColumn {
  uint64_t row_bytes = 0;
  std::vector<PartRows> parts;  // by partition; without `pinned`
  std::vector<Array> rows;      // by partition; absent if not mapped
};

struct Plan {
  std::vector<PlannedColumn> columns;  // of all types, then of all relations
  size_t share_count = 0;
  uint64_t share_bytes = 0;
};

class Planner {
 public:
  Planner(const Store& store, size_t share_count, double ratio)
      : store_(store), ratio_(ratio) {
    plan_.share_count = share_count;
  }

  Plan Make() {
    const Schema& schema = store_.schema();
    for (size_t t = 0; t < schema.node_types.size(); ++t) {
      const PartitionBook& book = store_.book(static_cast<TypeIndex>(t));
      AddColumn(
          schema.node_types[t].feature, [&](int p) { return book.begin(p); },
          [&](const Partition& from) { return from.nodes[t].feature; });
    }
    for (size_t r = 0; r < schema.relations.size(); ++r) {
      AddColumn(
          schema.relations[r].feature, [](int) { return uint64_t{0}; },
          [&](const Partition& from) { return from.edges[r].feature; });
    }
    return std::move(plan_);
  }

 private:
  // first_id(p) is PartRows::first_id, and rows(partition) the array.
  template <typename FirstIdFn, typename RowsFn>
  void AddColumn(const ColumnSpec& spec, FirstIdFn first_id, RowsFn rows) {
    PlannedColumn& column = plan_.columns.emplace_back();
    if (!spec.present()) return;
    column.row_bytes = spec.row_bytes();
    for (int p = 0; p < store_.partition_count(); ++p) {
      const Partition* partition = store_.partition(p);
      column.rows.push_back(partition == nullptr ? Array() : rows(*partition));
      const auto count = static_cast<uint64_t>(column.rows.back().rows());
      column.parts.push_back(PlacePart(first_id(p), count, column.row_bytes));
    }
  }

  PartRows PlacePart(uint64_t first_id, uint64_t count, uint64_t row_bytes) {
    PartRows part;
    part.first_id = first_id;
    part.count = count;
    part.held = HottestRows(ratio_, count);
    part.at = plan_.share_bytes;
    const uint64_t most =
        (part.held + plan_.share_count - 1) / plan_.share_count;
    plan_.share_bytes += RoundUp(most * row_bytes, kPartAlignment);
    return part;
  }

  const Store& store_;
  const double ratio_;
  Plan plan_;
};

// Copies every `share_count`th row of a partition, from row `first` on, to the
// memory of the current device.
absl::Status CopyRows(const std::byte* rows, const PartRows& part,
                      uint64_t row_bytes, uint64_t first, uint64_t share_count,
                      std::byte* to) {
  const uint64_t piece = std::max<uint64_t>(kPieceBytes / row_bytes, 1);
  std::vector<std::byte> packed(std::min(piece, part.held / share_count + 1) *
                                row_bytes);
  for (uint64_t row = first; row < part.held;) {
    uint64_t bytes = 0;
    for (; row < part.held && bytes < packed.size(); row += share_count) {
      std::memcpy(packed.data() + bytes, rows + row * row_bytes, row_bytes);
      bytes += row_bytes;
    }
    MILLRACE_RETURN_IF_ERROR(
        CudaStatus(cudaMemcpy(to, packed.data(), bytes, cudaMemcpyHostToDevice),
                   kCannotCopyRows));
    to += bytes;
  }
  return absl::OkStatus();
}

// Fills the share of the current device, which is the one at `index`.
absl::Status FillShare(const Plan& plan, uint64_t index, std::byte* share) {
  for (const PlannedColumn& column : plan.columns) {
    if (column.row_bytes == 0) continue;
    for (size_t p = 0; p < column.parts.size(); ++p) {
      const PartRows& part = column.parts[p];
      MILLRACE_RETURN_IF_ERROR(CopyRows(column.rows[p].data(), part,
                                        column.row_bytes, index,
                                        plan.share_count, share + part.at));
    }
  }
  // Copies of pageable memory may still be under way.
  return CudaStatus(cudaDeviceSynchronize(), kCannotCopyRows);
}

// The shares as a device reads them.
struct Reach {
  std::vector<const std::byte*> shares;  // null: out of reach
  std::optional<int> unreachable;        // a device whose share is out of reach
};

absl::StatusOr<Reach> FindReach(int device, const std::vector<int>& devices,
                                std::span<const DeviceBlock> shares) {
  Reach reach;
  for (size_t i = 0; i < devices.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(const bool enabled,
                              EnablePeerAccess(device, devices[i]));
    reach.shares.push_back(enabled ? shares[i].get() : nullptr);
    if (!enabled) reach.unreachable = devices[i];
  }
  return reach;
}

// Where the current device, which is `device`, reads rows in the store.
absl::StatusOr<const std::byte*> PinnedRows(const Array& rows, int device,
                                            const Reach& reach) {
  const absl::StatusOr<const void*> pinned = DevicePointer(rows.data());
  if (pinned.ok()) return static_cast<const std::byte*>(*pinned);
  const std::string why =
      reach.unreachable.has_value()
          ? StrCat("CUDA device ", device, " cannot read the memory of device ",
                   *reach.unreachable, ", so that all")
          : std::string("not all feature rows are in GPU memory, so that the");
  return absl::FailedPreconditionError(StrCat(
      why,
      " feature rows must be in pinned memory: ", pinned.status().message()));
}

// Makes what a device's kernels read, and the table in the device's memory that
// it points to.
class ColumnTable {
 public:
  ColumnTable(const Plan& plan, int device, const Reach& reach)
      : plan_(plan), device_(device), reach_(reach) {}

  // The device must be current.
  absl::StatusOr<DeviceBlock> Make(size_t type_count, FeatureColumns& columns) {
    MILLRACE_RETURN_IF_ERROR(AddParts());
    const uint64_t part_bytes = parts_.size() * sizeof(PartRows);
    const uint64_t share_bytes = reach_.shares.size() * sizeof(std::byte*);
    MILLRACE_ASSIGN_OR_RETURN(DeviceBlock table,
                              AllocateDevice(device_, part_bytes + share_bytes,
                                             "the table of feature rows"));
    std::byte* shares = table.get() + part_bytes;
    MILLRACE_RETURN_IF_ERROR(Copy(parts_.data(), part_bytes, table.get()));
    MILLRACE_RETURN_IF_ERROR(Copy(reach_.shares.data(), share_bytes, shares));
    const auto* parts = reinterpret_cast<const PartRows*>(table.get());
    for (size_t c = 0; c < columns_.size(); ++c) {
      FeatureColumn& column = columns_[c];
      column.parts = parts;
      column.shares = reinterpret_cast<const std::byte* const*>(shares);
      parts += column.part_count;
      (c < type_count ? columns.nodes : columns.edges).push_back(column);
    }
    return table;
  }

 private:
  static absl::Status Copy(const void* from, uint64_t bytes, std::byte* to) {
    return CudaStatus(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice),
                      kCannotCopyRows);
  }

  // Fills parts_ and columns_.
  absl::Status AddParts() {
    for (const PlannedColumn& planned : plan_.columns) {
      FeatureColumn& column = columns_.emplace_back();
      column.part_count = static_cast<uint32_t>(planned.parts.size());
      column.share_count = static_cast<uint32_t>(plan_.share_count);
      column.row_bytes = planned.row_bytes;
      uint64_t addresses = planned.row_bytes | kMaxWordBytes;
      for (size_t p = 0; p < planned.parts.size(); ++p) {
        PartRows part = planned.parts[p];
        const bool reads_store =
            part.held < part.count ||
            (part.held > 0 && reach_.unreachable.has_value());
        if (reads_store && planned.row_bytes > 0) {
          MILLRACE_ASSIGN_OR_RETURN(
              part.pinned, PinnedRows(planned.rows[p], device_, reach_));
          addresses |= reinterpret_cast<uintptr_t>(part.pinned);
        }
        parts_.push_back(part);
      }
      column.alignment = addresses & -addresses;
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
  const int device_;
  const Reach& reach_;
  std::vector<PartRows> parts_;         // of all columns
  std::vector<FeatureColumn> columns_;  // without pointers
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceFeatures>> DeviceFeatures::Create(
    const Store& store, const std::vector<int>& devices, double ratio) {
  const Plan plan = Planner(store, devices.size(), ratio).Make();
  std::unique_ptr<DeviceFeatures> features(
      new DeviceFeatures(devices, plan.share_bytes));
  for (const int device : devices) {
    MILLRACE_ASSIGN_OR_RETURN(
        DeviceBlock share,
        AllocateDevice(device, plan.share_bytes, "the share of feature rows"));
    features->shares_.push_back(std::move(share));
  }
  const size_t type_count = store.schema().node_types.size();
  for (size_t i = 0; i < devices.size(); ++i) {
    const ScopedDevice current(devices[i]);
    MILLRACE_RETURN_IF_ERROR(current.status());
    MILLRACE_ASSIGN_OR_RETURN(
        const Reach reach, FindReach(devices[i], devices, features->shares_));
    MILLRACE_ASSIGN_OR_RETURN(
        DeviceBlock table,
        ColumnTable(plan, devices[i], reach)
            .Make(type_count, features->columns_.emplace_back()));
    features->tables_.push_back(std::move(table));
    MILLRACE_RETURN_IF_ERROR(FillShare(plan, i, features->shares_[i].get()));
  }
  return features;
}

}  // namespace millrace::cuda
