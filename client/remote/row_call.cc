// SPDX-License-Identifier: Apache-2.0
#include "client/remote/row_call.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "client/remote/hedged_stream.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/owner_groups.h"
#include "common/wire/ids.h"
#include "common/wire/stream_layout.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

// Scatters a stream of rows into their places; rows may straddle frames.
class RowScatter {
 public:
  explicit RowScatter(const RowRequest& request)
      : rows_(request.rows),
        target_(request.target),
        row_bytes_(request.target.row_bytes()),
        total_bytes_(rows_.size() * row_bytes_) {}

  absl::Status Take(const ReceivedFrame& frame) {
    if (position_ == 0) {
      MILLRACE_RETURN_IF_ERROR(CheckLayout(frame));
    }
    for (const std::span<const std::byte> piece : frame.payload()) {
      if (piece.size() > total_bytes_ - position_) {
        return absl::InternalError("more rows than asked for");
      }
      Write(piece);
    }
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    if (position_ == total_bytes_) return absl::OkStatus();
    return absl::InternalError(
        StrCat("rows end after ", position_, " of ", total_bytes_, " bytes"));
  }

 private:
  absl::Status CheckLayout(const ReceivedFrame& frame) const {
    const std::optional<StreamLayout>& layout = frame.header().stream;
    if (!layout.has_value() || layout->arrays.size() != 1 ||
        layout->arrays[0].kind != ArrayKind::kRows ||
        layout->arrays[0].dtype != target_.dtype() ||
        layout->total_bytes != total_bytes_) {
      return absl::InternalError(
          "rows of another type or number than asked for");
    }
    return absl::OkStatus();
  }

  void Write(std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const size_t within = position_ % row_bytes_;
      const size_t bytes = std::min(piece.size(), row_bytes_ - within);
      std::byte* row =
          target_.mutable_data() + rows_[position_ / row_bytes_] * row_bytes_;
      std::memcpy(row + within, piece.data(), bytes);
      position_ += bytes;
      piece = piece.subspan(bytes);
    }
  }

  const std::vector<uint32_t> rows_;
  Array target_;
  const size_t row_bytes_;
  const size_t total_bytes_;
  size_t position_ = 0;
};

}  // namespace

std::vector<RowRequest> SplitByOwner(std::span<const int> owners, int parts,
                                     const Array& ids, const RowRequest& like) {
  std::vector<RowRequest> requests;
  for (OwnerGroup& group : GroupByOwner(
           owners.size(), parts, [&](size_t i) { return owners[i]; },
           kMaxIdsPerCall)) {
    RowRequest& request = requests.emplace_back(like);
    request.partition = group.partition;
    request.ids.reserve(group.places.size());
    for (const uint32_t place : group.places) {
      request.ids.push_back(static_cast<uint64_t>(ids.IntegerAt(place)));
    }
    request.rows = std::move(group.places);
  }
  return requests;
}

std::vector<int> OwnersOf(const PartitionBook& book, const Array& ids,
                          int64_t count) {
  std::vector<int> owners(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    owners[i] = book.Owner(static_cast<uint64_t>(ids.IntegerAt(i)));
  }
  return owners;
}

absl::StatusOr<std::shared_ptr<Call>> StartRowCall(const CallContext& context,
                                                   RowRequest request,
                                                   CallDone done) {
  v1::GatherRequest message;
  if (request.edge_relation >= 0) {
    message.set_edge_relation(static_cast<uint32_t>(request.edge_relation));
    AppendIds(request.ids, DType::kUint64, *message.mutable_rows());
  } else {
    message.set_node_type(static_cast<uint32_t>(request.type));
    message.set_column(static_cast<v1::NodeColumn>(request.column));
    AppendIds(request.ids,
              context.manifest.schema.node_types[request.type].id_dtype(),
              *message.mutable_ids());
  }
  message.set_partition(static_cast<uint32_t>(request.partition));
  message.set_feature_dtype(static_cast<v1::DType>(request.feature_dtype));
  message.set_fingerprint(context.manifest.fingerprint);
  auto scatter = std::make_shared<RowScatter>(request);
  return StartHedgedStream(
      {.context = context,
       .kind = Hedging::Kind::kGather,
       .partition = request.partition,
       .method = "/millrace.v1.Sampler/Gather",
       .request = message.SerializeAsString(),
       .on_frame =
           [scatter, context,
            partition = request.partition](const ReceivedFrame& frame) {
             context.retry.NoteAnswer(partition, absl::Now());
             context.received += frame.payload_bytes();
             return scatter->Take(frame);
           },
       .check_whole = [scatter] { return scatter->CheckComplete(); },
       .done = std::move(done)});
}

}  // namespace millrace
