// SPDX-License-Identifier: Apache-2.0
#include "client/remote/row_call.h"

#include <algorithm>
#include <utility>

#include "client/remote/hedged_stream.h"
#include "client/remote/row_scatter.h"
#include "common/base/check.h"
#include "common/base/with_ids.h"
#include "common/graph/owner_groups.h"
#include "common/grpc/call/unary_call.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

class RowReceiver final : public FrameReceiver {
 public:
  RowReceiver(const CallContext& context, RowRequest request)
      : context_(context),
        partition_(request.partition),
        scatter_(std::move(request.rows), std::move(request.target)) {}

  absl::Status OnFrame(const ReceivedFrame& frame) override {
    NoteFrame(context_, partition_, frame);
    return scatter_.Take(frame.header(), frame.payload());
  }

  absl::Status CheckComplete() const override {
    return scatter_.CheckComplete();
  }

 private:
  const CallContext context_;
  const int partition_;
  RowScatter scatter_;
};

}  // namespace

std::vector<RowRequest> SplitByOwner(std::span<const int> owners, int parts,
                                     const Array& ids,
                                     const RowRequest& prototype) {
  MILLRACE_CHECK(static_cast<int64_t>(owners.size()) <= ids.element_count());
  std::vector<RowRequest> requests;
  for (OwnerGroup& group : GroupByOwner(
           owners.size(), parts, [&](size_t i) { return owners[i]; },
           kMaxIdsPerCall)) {
    RowRequest& request = requests.emplace_back(prototype);
    request.partition = group.partition;
    request.ids.reserve(group.places.size());
    WithIds(ids, [&](const auto& all) {
      for (const uint32_t place : group.places) {
        request.ids.push_back(all[place]);
      }
    });
    request.rows = std::move(group.places);
  }
  return requests;
}

std::vector<int> OwnersOf(const PartitionBook& book, const Array& ids,
                          int64_t count) {
  MILLRACE_CHECK(count <= ids.element_count());
  std::vector<int> owners(static_cast<size_t>(count));
  WithIds(ids, [&](const auto& all) {
    for (size_t i = 0; i < owners.size(); ++i) owners[i] = book.Owner(all[i]);
  });
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
  StreamRequest stream = {.kind = Hedging::Kind::kGather,
                          .partition = request.partition,
                          .method = "/millrace.v1.Sampler/Gather",
                          .message = SerializeMessage(message)};
  return StartHedgedStream(
      context, std::move(stream),
      std::make_shared<RowReceiver>(context, std::move(request)),
      std::move(done));
}

}  // namespace millrace
