// SPDX-License-Identifier: Apache-2.0
#include "common/graph/edge_split_writer.h"

#include <span>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

class EdgeSplitWriter {
 public:
  EdgeSplitWriter(const EdgeSplitColumns& split, const Schema& schema,
                  const std::vector<PartitionBook>& books, const IdOfFn& id_of,
                  const WriteArrayFn& write)
      : split_(split),
        schema_(schema),
        relation_(schema.relations[split.relation]),
        books_(books),
        id_of_(id_of),
        write_(write) {}

  absl::StatusOr<EdgeSplitInfo> Run() {
    EdgeSplitInfo info;
    info.relation = split_.relation;
    info.name = split_.name;
    info.count = split_.src.rows();
    MILLRACE_ASSIGN_OR_RETURN(const Array src,
                              Ids(split_.src, relation_.src, "source"));
    MILLRACE_ASSIGN_OR_RETURN(const Array dst,
                              Ids(split_.dst, relation_.dst, "destination"));
    CountOwners(dst, info);
    MILLRACE_RETURN_IF_ERROR(Write("src", src));
    MILLRACE_RETURN_IF_ERROR(Write("dst", dst));
    MILLRACE_RETURN_IF_ERROR(Write("src_original_id", split_.src));
    MILLRACE_RETURN_IF_ERROR(Write("dst_original_id", split_.dst));
    info.has_edge_id = split_.edge_id.present();
    info.has_time = split_.time.present();
    info.has_edge_type = split_.edge_type.present();
    if (split_.label.present()) info.label = {split_.label.dtype(), {}};
    MILLRACE_RETURN_IF_ERROR(Write("edge_id", split_.edge_id));
    MILLRACE_RETURN_IF_ERROR(Write("time", split_.time));
    MILLRACE_RETURN_IF_ERROR(Write("edge_type", split_.edge_type));
    MILLRACE_RETURN_IF_ERROR(Write("label", split_.label));
    if (!split_.negative.present()) return info;
    info.negatives = split_.negative.shape()[1];
    MILLRACE_ASSIGN_OR_RETURN(const Array negative,
                              Ids(split_.negative, relation_.dst, "negative"));
    MILLRACE_RETURN_IF_ERROR(Write("negative", negative));
    MILLRACE_RETURN_IF_ERROR(Write("negative_original_id", split_.negative));
    return info;
  }

 private:
  absl::StatusOr<Array> Ids(const Array& originals, TypeIndex type,
                            std::string_view what) const {
    const NodeType& nodes = schema_.node_types[type];
    const bool narrow = nodes.id_dtype() == DType::kUint32;
    Array ids = Array::Allocate(nodes.id_dtype(), originals.shape());
    const std::span<const int64_t> values = originals.As<int64_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= nodes.count) {
        return absl::InvalidArgumentError(
            StrCat("split \"", split_.name, "\": ", what, " ", i, " is node ",
                   values[i], ", but node type ", nodes.name, " has ",
                   nodes.count, " nodes"));
      }
      const uint64_t id = id_of_(type, values[i]);
      if (narrow) {
        ids.MutableAs<uint32_t>()[i] = static_cast<uint32_t>(id);
      } else {
        ids.MutableAs<uint64_t>()[i] = id;
      }
    }
    return ids;
  }

  void CountOwners(const Array& dst, EdgeSplitInfo& info) const {
    const PartitionBook& book = books_[relation_.dst];
    info.part_counts.assign(static_cast<size_t>(book.partition_count()), 0);
    for (int64_t i = 0; i < dst.rows(); ++i) {
      ++info.part_counts[book.Owner(static_cast<uint64_t>(dst.IntegerAt(i)))];
    }
  }

  absl::Status Write(std::string_view column, const Array& array) const {
    if (!array.present()) return absl::OkStatus();
    if (array.rows() != split_.src.rows()) {
      return absl::InvalidArgumentError(
          StrCat("split \"", split_.name, "\": column ", column, " has ",
                 array.rows(), " rows for ", split_.src.rows(), " pairs"));
    }
    return write_(
        SplitPath(schema_.RelationName(split_.relation), split_.name, column),
        array);
  }

  const EdgeSplitColumns& split_;
  const Schema& schema_;
  const Relation& relation_;
  const std::vector<PartitionBook>& books_;
  const IdOfFn& id_of_;
  const WriteArrayFn& write_;
};

}  // namespace

absl::StatusOr<EdgeSplitInfo> WriteEdgeSplit(
    const EdgeSplitColumns& split, const Schema& schema,
    const std::vector<PartitionBook>& books, const IdOfFn& id_of,
    const WriteArrayFn& write) {
  return EdgeSplitWriter(split, schema, books, id_of, write).Run();
}

}  // namespace millrace
