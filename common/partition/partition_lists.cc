// SPDX-License-Identifier: Apache-2.0
#include "common/partition/partition_lists.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/partition/list_scan.h"

namespace millrace {
namespace {

constexpr uint64_t kBytesPerDrop = uint64_t{16} << 20;

// A column of the lists: one file per partition, with one row per entry.
struct Column {
  enum class Kind { kCopy, kNeighbor, kSlot };
  Kind kind = Kind::kCopy;
  std::string name;  // empty for the edge features
  Array source;
  std::vector<std::byte> window = {};
  std::unique_ptr<NpyWriter> out = nullptr;
};

// Where the edges of each destination start in the order of the in-lists.
struct InOrder {
  std::span<const int64_t> starts;  // by original id, in the dataset
  std::vector<int64_t> new_starts;  // by id, within the owner's partition
};

std::vector<int64_t> NewStarts(std::span<const int64_t> starts,
                               const Renumbering& nodes) {
  std::vector<int64_t> new_starts(static_cast<size_t>(nodes.id_of.size()));
  for (int part = 0; part < nodes.book.partition_count(); ++part) {
    int64_t start = 0;
    for (uint64_t id = nodes.book.begin(part); id < nodes.book.end(part);
         ++id) {
      new_starts[id] = start;
      const uint64_t node = nodes.original_of[id];
      start += starts[node + 1] - starts[node];
    }
  }
  return new_starts;
}

class ListPass {
 public:
  struct Spec {
    DatasetLists lists;
    std::span<const int64_t> starts;  // of the lists, by original id
    const Renumbering* nodes = nullptr;
    const Renumbering* neighbors = nullptr;
    const InOrder* in_order = nullptr;  // needed for slots
    std::string relation_name;
    uint64_t memory_bytes = 0;
    bool write_starts = true;
  };

  ListPass(Spec spec, std::vector<Column> columns, StoreWriter& writer,
           Progress& progress)
      : spec_(std::move(spec)),
        columns_(std::move(columns)),
        writer_(writer),
        progress_(progress) {
    for (const Column& column : columns_) {
      entry_bytes_ += column.source.row_bytes();
    }
  }

  absl::Status Run(std::vector<PartSummary>* parts) {
    for (int part = 0; part < spec_.nodes->book.partition_count(); ++part) {
      edges_ = 0;
      cut_edges_ = 0;
      MILLRACE_RETURN_IF_ERROR(WritePart(part));
      if (parts == nullptr) continue;
      (*parts)[part].edges += edges_;
      (*parts)[part].cut_edges += cut_edges_;
    }
    return absl::OkStatus();
  }

 private:
  int64_t Degree(uint64_t id) const {
    const uint64_t node = spec_.nodes->original_of[id];
    return spec_.starts[node + 1] - spec_.starts[node];
  }

  std::string PathOf(int part, const std::string& column) const {
    return column.empty() ? EdgeFeaturePath(part, spec_.relation_name)
                          : ListPath(part, spec_.relation_name,
                                     spec_.lists.direction, column);
  }

  absl::Status WritePart(int part) {
    const uint64_t begin = spec_.nodes->book.begin(part);
    const uint64_t end = spec_.nodes->book.end(part);
    own_begin_ = spec_.neighbors->book.begin(part);
    own_end_ = spec_.neighbors->book.end(part);
    MILLRACE_RETURN_IF_ERROR(WriteStarts(part, begin, end));
    for (Column& column : columns_) {
      const std::vector<int64_t>& shape = column.source.shape();
      MILLRACE_ASSIGN_OR_RETURN(
          column.out,
          writer_.Open(PathOf(part, column.name), column.source.dtype(),
                       {shape.begin() + 1, shape.end()}, edges_));
    }
    for (uint64_t from = begin; from < end;) {
      const uint64_t to = WindowEnd(from, end);
      MILLRACE_RETURN_IF_ERROR(FillWindow(from, to));
      for (Column& column : columns_) {
        MILLRACE_RETURN_IF_ERROR(
            column.out->Append(column.window.data(), column.window.size()));
      }
      from = to;
    }
    for (Column& column : columns_) {
      MILLRACE_RETURN_IF_ERROR(
          writer_.Close(PathOf(part, column.name), std::move(column.out)));
    }
    return absl::OkStatus();
  }

  // Sets edges_, even if there are no starts to write.
  absl::Status WriteStarts(int part, uint64_t begin, uint64_t end) {
    std::vector<int64_t> starts = {0};
    starts.reserve(end - begin + 1);
    for (uint64_t id = begin; id < end; ++id) {
      starts.push_back(starts.back() + Degree(id));
    }
    edges_ = starts.back();
    if (!spec_.write_starts) return absl::OkStatus();
    return writer_.Write(PathOf(part, "indptr"),
                         Array::Adopt(std::move(starts)));
  }

  // The end of a window that starts at `from` and has at least one list.
  uint64_t WindowEnd(uint64_t from, uint64_t end) const {
    uint64_t bytes = 0;
    uint64_t to = from;
    while (to < end) {
      bytes += static_cast<uint64_t>(Degree(to)) * entry_bytes_ +
               2 * sizeof(uint64_t);
      if (to > from && bytes > spec_.memory_bytes) break;
      ++to;
    }
    return to;
  }

  // Copies the lists of ids [from, to) to the windows. Reads them in the order
  // of the dataset.
  absl::Status FillWindow(uint64_t from, uint64_t to) {
    std::vector<uint64_t> ids(to - from);
    std::iota(ids.begin(), ids.end(), from);
    std::vector<int64_t> positions(ids.size() + 1, 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      positions[i + 1] = positions[i] + Degree(ids[i]);
    }
    std::sort(ids.begin(), ids.end(), [this](uint64_t a, uint64_t b) {
      return spec_.nodes->original_of[a] < spec_.nodes->original_of[b];
    });
    for (Column& column : columns_) {
      column.window.resize(static_cast<size_t>(positions.back()) *
                           column.source.row_bytes());
    }
    int64_t dropped = 0;
    for (const uint64_t id : ids) {
      const uint64_t node = spec_.nodes->original_of[id];
      const int64_t begin = spec_.starts[node];
      const int64_t end = spec_.starts[node + 1];
      MILLRACE_RETURN_IF_ERROR(CopyList(begin, end, positions[id - from]));
      if (static_cast<uint64_t>(end - dropped) * entry_bytes_ > kBytesPerDrop) {
        MILLRACE_RETURN_IF_ERROR(Drop(dropped, end));
        dropped = end;
      }
    }
    progress_.Add(positions.back());
    return Drop(dropped, spec_.starts.back());
  }

  absl::Status Drop(int64_t begin, int64_t end) {
    for (const Column& column : columns_) {
      DropRows(column.source, begin, end);
    }
    return CheckInterrupted();
  }

  absl::Status CopyList(int64_t begin, int64_t end, int64_t position) {
    if (begin == end) return absl::OkStatus();
    for (Column& column : columns_) {
      const size_t row = column.source.row_bytes();
      std::byte* const out =
          column.window.data() + static_cast<size_t>(position) * row;
      if (column.kind == Column::Kind::kCopy) {
        std::memcpy(out,
                    column.source.data() + static_cast<size_t>(begin) * row,
                    static_cast<size_t>(end - begin) * row);
        continue;
      }
      const bool slots = column.kind == Column::Kind::kSlot;
      const bool narrow = spec_.lists.lists->indices.dtype() == DType::kUint32;
      MILLRACE_RETURN_IF_ERROR(
          slots ? (narrow ? CopySlots<uint32_t>(begin, end, out)
                          : CopySlots<uint64_t>(begin, end, out))
                : (narrow ? CopyNeighbors<uint32_t>(begin, end, out)
                          : CopyNeighbors<uint64_t>(begin, end, out)));
    }
    return absl::OkStatus();
  }

  template <typename Id>
  absl::Status CopyNeighbors(int64_t begin, int64_t end, std::byte* out) {
    const std::span<const Id> entries = spec_.lists.lists->indices.As<Id>();
    auto* const ids = reinterpret_cast<Id*>(out);
    const auto limit = static_cast<uint64_t>(spec_.lists.neighbor_count);
    for (int64_t entry = begin; entry < end; ++entry) {
      const uint64_t neighbor = entries[entry];
      if (neighbor >= limit) return NeighborError(spec_.lists, entry, neighbor);
      const uint64_t id = spec_.neighbors->id_of[neighbor];
      ids[entry - begin] = static_cast<Id>(id);
      cut_edges_ += id < own_begin_ || id >= own_end_;
    }
    return absl::OkStatus();
  }

  template <typename Id>
  absl::Status CopySlots(int64_t begin, int64_t end, std::byte* out) {
    const std::span<const Id> entries = spec_.lists.lists->indices.As<Id>();
    const std::span<const int64_t> slots =
        spec_.lists.lists->slot.As<int64_t>();
    auto* const new_slots = reinterpret_cast<int64_t*>(out);
    const InOrder& in_order = *spec_.in_order;
    const auto limit = static_cast<uint64_t>(spec_.lists.neighbor_count);
    for (int64_t entry = begin; entry < end; ++entry) {
      const uint64_t node = entries[entry];
      if (node >= limit) return NeighborError(spec_.lists, entry, node);
      const int64_t slot = slots[entry];
      if (slot < in_order.starts[node] || slot >= in_order.starts[node + 1]) {
        return absl::DataLossError(StrCat(
            spec_.lists.file, ": the slot.npy beside it has ", slot,
            " at entry ", entry, ", which is not an in-edge of node ", node));
      }
      new_slots[entry - begin] =
          in_order.new_starts[spec_.neighbors->id_of[node]] + slot -
          in_order.starts[node];
    }
    return absl::OkStatus();
  }

  const Spec spec_;
  std::vector<Column> columns_;
  StoreWriter& writer_;
  Progress& progress_;
  size_t entry_bytes_ = 0;
  // The partition that is being written.
  uint64_t own_begin_ = 0;
  uint64_t own_end_ = 0;
  int64_t edges_ = 0;
  int64_t cut_edges_ = 0;
};

std::vector<Column> ColumnsOf(const NeighborLists& lists,
                              bool neighbor_original_ids) {
  std::vector<Column> columns;
  columns.push_back({Column::Kind::kNeighbor, "indices", lists.indices});
  if (neighbor_original_ids) {
    columns.push_back(
        {Column::Kind::kCopy, "neighbor_original_id", lists.indices});
  }
  columns.push_back({Column::Kind::kCopy, "edge_id", lists.edge_id});
  columns.push_back({Column::Kind::kCopy, "weight", lists.weight});
  columns.push_back({Column::Kind::kCopy, "weight_sum", lists.weight_sum});
  columns.push_back({Column::Kind::kCopy, "time", lists.time});
  columns.push_back({Column::Kind::kCopy, "type", lists.type});
  columns.push_back({Column::Kind::kSlot, "slot", lists.slot});
  std::erase_if(columns,
                [](const Column& column) { return !column.source.present(); });
  return columns;
}

// Writes a relation's lists, one direction after the other, and holds what both
// need.
class RelationPass {
 public:
  RelationPass(const Store& dataset, RelationIndex relation,
               const std::vector<Renumbering>& numbers,
               const ListOptions& options)
      : dataset_(dataset),
        relation_(relation),
        described_(dataset.schema().relations[relation]),
        numbers_(numbers),
        options_(options) {}

  absl::Status Prepare() {
    if (!described_.feature.present()) return absl::OkStatus();
    if (described_.has_in) {
      const DatasetLists in = FindLists(dataset_, relation_, Direction::kIn);
      MILLRACE_RETURN_IF_ERROR(CheckStarts(in));
      in_order_.starts = in.starts();
    } else {
      counted_starts_.assign(
          static_cast<size_t>(
              dataset_.schema().node_types[described_.dst].count) +
              1,
          0);
      MILLRACE_RETURN_IF_ERROR(AddInDegrees(
          dataset_, relation_, std::span(counted_starts_).subspan(1)));
      std::partial_sum(counted_starts_.begin(), counted_starts_.end(),
                       counted_starts_.begin());
      in_order_.starts = counted_starts_;
    }
    if (options_.out) {
      in_order_.new_starts =
          NewStarts(in_order_.starts, numbers_[described_.dst]);
    }
    return absl::OkStatus();
  }

  absl::Status Write(Direction direction, StoreWriter& writer,
                     std::vector<PartSummary>* parts, Progress& progress) {
    ListPass::Spec spec = SpecOf(direction);
    MILLRACE_RETURN_IF_ERROR(CheckStarts(spec.lists));
    spec.starts = spec.lists.starts();
    std::vector<Column> columns =
        ColumnsOf(*spec.lists.lists, options_.neighbor_original_ids);
    if (direction == Direction::kIn) AddFeatures(columns);
    return ListPass(std::move(spec), std::move(columns), writer, progress)
        .Run(parts);
  }

  // Writes the features, which are in the order of the in-lists, without these.
  absl::Status WriteFeatures(StoreWriter& writer, Progress& progress) {
    ListPass::Spec spec = SpecOf(Direction::kIn);
    spec.starts = in_order_.starts;
    spec.write_starts = false;
    std::vector<Column> columns;
    AddFeatures(columns);
    return ListPass(std::move(spec), std::move(columns), writer, progress)
        .Run(nullptr);
  }

 private:
  ListPass::Spec SpecOf(Direction direction) const {
    ListPass::Spec spec;
    spec.lists = FindLists(dataset_, relation_, direction);
    spec.nodes = &numbers_[spec.lists.node_type];
    spec.neighbors = &numbers_[spec.lists.neighbor_type];
    spec.in_order = &in_order_;
    spec.relation_name = dataset_.schema().RelationName(relation_);
    spec.memory_bytes = options_.memory_bytes;
    return spec;
  }

  void AddFeatures(std::vector<Column>& columns) const {
    if (!described_.feature.present()) return;
    columns.push_back({Column::Kind::kCopy, "",
                       dataset_.partition(0)->edges[relation_].feature});
  }

  const Store& dataset_;
  const RelationIndex relation_;
  const Relation& described_;
  const std::vector<Renumbering>& numbers_;
  const ListOptions& options_;
  InOrder in_order_;                     // set if there are edge features
  std::vector<int64_t> counted_starts_;  // used if the dataset has no in-lists
};

}  // namespace

absl::Status WriteRelation(const Store& dataset, RelationIndex relation,
                           const std::vector<Renumbering>& numbers,
                           const ListOptions& options, StoreWriter& writer,
                           std::vector<PartSummary>& parts,
                           Progress& progress) {
  RelationPass pass(dataset, relation, numbers, options);
  MILLRACE_RETURN_IF_ERROR(pass.Prepare());
  if (options.in) {
    MILLRACE_RETURN_IF_ERROR(
        pass.Write(Direction::kIn, writer, &parts, progress));
  } else if (dataset.schema().relations[relation].feature.present()) {
    MILLRACE_RETURN_IF_ERROR(pass.WriteFeatures(writer, progress));
  }
  if (!options.out) return absl::OkStatus();
  return pass.Write(Direction::kOut, writer, options.in ? nullptr : &parts,
                    progress);
}

}  // namespace millrace
