// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/gather_rpc.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/gather.h"
#include "common/wire/cast.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"
#include "server/rpc/frame_source.h"
#include "server/rpc/parse_request.h"

namespace millrace {
namespace {

// The edge features that the request asks for.
absl::StatusOr<ColumnSpec> WireEdgeFeature(const Schema& schema,
                                           const v1::GatherRequest& request) {
  MILLRACE_RETURN_IF_ERROR(CheckNumber("relation", request.edge_relation(),
                                       schema.relations.size()));
  const auto relation = static_cast<RelationIndex>(request.edge_relation());
  const ColumnSpec& feature = schema.relations[relation].feature;
  if (feature.present()) return feature;
  return absl::FailedPreconditionError(StrCat(
      "the edges of ", schema.RelationName(relation), " have no features"));
}

absl::Status CheckColumn(const Schema& schema,
                         const v1::GatherRequest& request) {
  if (request.node_type() >= schema.node_types.size() ||
      !v1::NodeColumn_IsValid(request.column()) ||
      !v1::DType_IsValid(request.feature_dtype())) {
    return absl::InvalidArgumentError(
        StrCat("node type ", request.node_type(), ", column ",
               static_cast<int>(request.column()), ", dtype ",
               static_cast<int>(request.feature_dtype()), ": no such column"));
  }
  return absl::OkStatus();
}

// The column in the form that it has on the wire.
absl::StatusOr<ColumnSpec> WireColumn(const Schema& schema,
                                      const v1::GatherRequest& request) {
  const auto type = static_cast<TypeIndex>(request.node_type());
  const auto column = static_cast<NodeColumn>(request.column());
  ColumnSpec spec = ColumnOf(schema, type, column);
  if (!spec.present()) {
    return absl::FailedPreconditionError(
        StrCat("node type ", schema.node_types[type].name, " has no ",
               ColumnName(column)));
  }
  const auto cast = static_cast<DType>(request.feature_dtype());
  if (cast == DType::kNone || column != NodeColumn::kFeature) return spec;
  MILLRACE_RETURN_IF_ERROR(CheckCast(schema.node_types[type], cast));
  spec.dtype = cast;
  return spec;
}

StreamLayout LayoutRows(int part, int index, const ColumnSpec& spec,
                        size_t rows) {
  StreamLayout layout;
  layout.partition = part;
  layout.Append(ArrayKind::kRows, index, spec.dtype,
                spec.ShapeOf(static_cast<int64_t>(rows)));
  return layout;
}

std::function<void(size_t, std::span<uint64_t>)> Values(
    std::vector<uint64_t> values) {
  return [values = std::move(values)](size_t first, std::span<uint64_t> out) {
    std::copy_n(values.begin() + static_cast<ptrdiff_t>(first), out.size(),
                out.begin());
  };
}

// Finds the rows when the first frame is wanted, and then frames them.
class GatherFrames final : public FrameMaker {
 public:
  explicit GatherFrames(IncomingCall& call) : call_(call) {}

  absl::StatusOr<ThreadPool*> Prepare() override {
    MILLRACE_RETURN_IF_ERROR(call_.ReserveRequest(
        call_.core().leaf_admission, *v1::GatherRequest::descriptor()));
    return &call_.core().leaf_pool;
  }

  absl::StatusOr<std::optional<::grpc::ByteBuffer>> Next() override {
    if (source_ == nullptr) MILLRACE_RETURN_IF_ERROR(ReadRequest());
    return source_->Next();
  }

 private:
  absl::Status ReadRequest();
  absl::Status StartNodeRows(const v1::GatherRequest& request);
  absl::Status StartEdgeRows(const v1::GatherRequest& request);
  absl::Status StartRows(StreamLayout layout, StreamPart part);

  IncomingCall& call_;
  std::unique_ptr<FrameSource> source_;
};

absl::Status GatherFrames::ReadRequest() {
  v1::GatherRequest request;
  MILLRACE_RETURN_IF_ERROR(ParseRequest(call_.message(), request));
  MILLRACE_RETURN_IF_ERROR(
      call_.core().CheckTarget(request.partition(), request.fingerprint()));
  return request.has_edge_relation() ? StartEdgeRows(request)
                                     : StartNodeRows(request);
}

absl::Status GatherFrames::StartNodeRows(const v1::GatherRequest& request) {
  const Schema& schema = call_.core().store->schema();
  MILLRACE_RETURN_IF_ERROR(CheckColumn(schema, request));
  MILLRACE_ASSIGN_OR_RETURN(const ColumnSpec spec, WireColumn(schema, request));
  StreamPart part;
  part.type = static_cast<TypeIndex>(request.node_type());
  part.column = static_cast<NodeColumn>(request.column());
  const auto owner = static_cast<int>(request.partition());
  const PartitionBook& book = call_.core().store->book(part.type);
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> ids,
      ReadIds(request.ids(), schema.node_types[part.type].id_dtype(),
              book.begin(owner), book.end(owner), "ids"));
  StreamLayout layout = LayoutRows(owner, part.type, spec, ids.size());
  part.ids = Values(std::move(ids));
  return StartRows(std::move(layout), std::move(part));
}

absl::Status GatherFrames::StartEdgeRows(const v1::GatherRequest& request) {
  MILLRACE_ASSIGN_OR_RETURN(
      const ColumnSpec spec,
      WireEdgeFeature(call_.core().store->schema(), request));
  StreamPart part;
  part.edge_relation = static_cast<RelationIndex>(request.edge_relation());
  part.edge_part = static_cast<int>(request.partition());
  const Array& feature = call_.core()
                             .store->partition(part.edge_part)
                             ->edges[part.edge_relation]
                             .feature;
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<uint64_t> rows,
      ReadIds(request.rows(), DType::kUint64, 0,
              static_cast<uint64_t>(feature.rows()), "rows"));
  StreamLayout layout =
      LayoutRows(part.edge_part, part.edge_relation, spec, rows.size());
  part.ids = Values(std::move(rows));
  return StartRows(std::move(layout), std::move(part));
}

absl::Status GatherFrames::StartRows(StreamLayout layout, StreamPart part) {
  MILLRACE_RETURN_IF_ERROR(
      call_.memory().GrowTo(call_.memory().bytes() +
                            std::min(layout.total_bytes, kMaxHeldFrameBytes)));
  source_ = std::make_unique<FrameSource>(
      RowPlaces{*call_.core().store, call_.core().features.get(),
                call_.core().cpu_rows},
      std::move(layout), std::vector{std::move(part)});
  return absl::OkStatus();
}

}  // namespace

StreamRpc GatherRpc(ServerCore& core) {
  return {.name = "Gather",
          .running = core.gather_calls,
          .make = [](IncomingCall& call) -> std::unique_ptr<FrameMaker> {
            return std::make_unique<GatherFrames>(call);
          }};
}

}  // namespace millrace
