// SPDX-License-Identifier: Apache-2.0
#include "common/graph/label_summary.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"

namespace millrace {
namespace {

constexpr float kLargestClass = 0x1p62F;  // for float labels

bool IsLabel(int64_t value) { return value >= 0; }
bool IsLabel(float value) { return !std::isnan(value); }

bool IsClass(int64_t) { return true; }
bool IsClass(float value) {
  return value == std::trunc(value) && std::abs(value) <= kLargestClass;
}

// Counts labels of type T (int64_t or float), one per node.
template <typename T>
class ClassCounter {
 public:
  void Add(std::span<const T> labels, const Array& original_id) {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!IsLabel(labels[i])) continue;
      ++present_;
      classes_ = classes_ && IsClass(labels[i]);
      if (!classes_) continue;
      const auto label = static_cast<int64_t>(labels[i]);
      if (label < 0) continue;
      ++summary_.labelled;
      if (label < summary_.largest) continue;
      const int64_t node = original_id.IntegerAt(static_cast<int64_t>(i));
      if (label == summary_.largest && node > summary_.largest_node) continue;
      summary_.largest = label;
      summary_.largest_node = node;
    }
  }

  LabelSummary Finish() const {
    if (classes_) return summary_;
    return {.labelled = present_};
  }

 private:
  LabelSummary summary_;
  bool classes_ = true;
  int64_t present_ = 0;
};

template <typename T>
void MarkClasses(std::span<const T> labels, std::vector<bool>& used) {
  for (const T label : labels) {
    if (IsLabel(label) && label >= 0) used[static_cast<size_t>(label)] = true;
  }
}

template <typename Visit>
absl::Status ForEachPartition(const Store& store, TypeIndex type,
                              Visit&& visit) {
  for (const int part : store.mapped_partitions()) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    const NodeColumns& columns = store.partition(part)->nodes[type];
    visit(columns);
    AdviseAccess(columns.label, Access::kDone);
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<LabelSummary> SummarizeClasses(const Store& store,
                                              TypeIndex type) {
  ClassCounter<T> counter;
  MILLRACE_RETURN_IF_ERROR(
      ForEachPartition(store, type, [&](const NodeColumns& columns) {
        counter.Add(columns.label.template As<T>(), columns.original_id);
      }));
  LabelSummary summary = counter.Finish();
  const uint64_t classes = summary.classes();
  // Too few nodes have labels to fill even half of the classes.
  summary.sparse = classes / 2 > static_cast<uint64_t>(summary.labelled);
  if (classes == 0 || summary.sparse) return summary;
  std::vector<bool> used(classes);
  MILLRACE_RETURN_IF_ERROR(
      ForEachPartition(store, type, [&](const NodeColumns& columns) {
        MarkClasses(columns.label.template As<T>(), used);
      }));
  const auto filled =
      static_cast<uint64_t>(std::count(used.begin(), used.end(), true));
  summary.sparse = filled < classes - filled;
  return summary;
}

// Counts the nodes that have a label in any of several columns.
template <typename T>
absl::StatusOr<LabelSummary> SummarizeRows(const Store& store, TypeIndex type) {
  LabelSummary summary;
  MILLRACE_RETURN_IF_ERROR(
      ForEachPartition(store, type, [&](const NodeColumns& columns) {
        const auto values = columns.label.template As<T>();
        const int64_t rows = columns.label.rows();
        const size_t width = rows == 0 ? 0 : values.size() / rows;
        for (int64_t row = 0; row < rows; ++row) {
          const auto labels = values.subspan(row * width, width);
          summary.labelled +=
              std::any_of(labels.begin(), labels.end(),
                          [](T value) { return IsLabel(value); });
        }
      }));
  return summary;
}

absl::StatusOr<LabelSummary> SummarizeType(const Store& store, TypeIndex type) {
  const ColumnSpec& label = store.schema().node_types[type].label;
  const bool scalar = label.row_shape.empty();
  if (label.dtype == DType::kInt64) {
    return scalar ? SummarizeClasses<int64_t>(store, type)
                  : SummarizeRows<int64_t>(store, type);
  }
  if (label.dtype == DType::kFloat32) {
    return scalar ? SummarizeClasses<float>(store, type)
                  : SummarizeRows<float>(store, type);
  }
  // Other dtypes occur only as matrices, which no importer writes.
  return LabelSummary{.labelled = store.schema().node_types[type].count};
}

}  // namespace

absl::StatusOr<LabelSummaries> SummarizeLabels(const Store& store) {
  LabelSummaries summaries(store.schema().node_types.size());
  for (size_t i = 0; i < summaries.size(); ++i) {
    if (!store.schema().node_types[i].label.present()) continue;
    MILLRACE_ASSIGN_OR_RETURN(summaries[i],
                              SummarizeType(store, static_cast<TypeIndex>(i)));
  }
  return summaries;
}

std::string LabelText(const LabelSummary& summary) {
  return StrCat("labels of ", summary.labelled,
                summary.labelled == 1 ? " node" : " nodes",
                summary.largest < 0 ? ""
                : summary.largest == 0
                    ? " in 1 class"
                    : StrCat(" in ", summary.classes(), " classes"));
}

std::string SparseClassesText(const LabelSummary& summary,
                              const std::string& type) {
  return StrCat("most of the ", summary.classes(), " classes of ", type,
                " have no node: the largest label is ", summary.largest,
                ", of node ", summary.largest_node,
                "; if it stands for nodes without a label, use -1 for them");
}

}  // namespace millrace
