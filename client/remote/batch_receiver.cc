// SPDX-License-Identifier: Apache-2.0
#include "client/remote/batch_receiver.h"

#include <utility>

#include "client/remote/missing_rows.h"
#include "client/remote/row_call.h"
#include "common/base/status_macros.h"

namespace millrace {

BatchReceiver::BatchReceiver(Options options)
    : options_(std::move(options)),
      cached_rows_(options_.cache == nullptr
                       ? std::vector<uint64_t>()
                       : options_.cache->CountsOf(options_.home)) {}

absl::Status BatchReceiver::OnFrame(const ReceivedFrame& frame) {
  NoteFrame(options_.context, options_.home, frame);
  if (!assembler_.has_value()) MILLRACE_RETURN_IF_ERROR(StartAssembly(frame));
  MILLRACE_RETURN_IF_ERROR(CheckOffset(frame.header(), assembler_->position()));
  for (const std::span<const std::byte> piece : frame.payload()) {
    const bool had_topology = assembler_->topology_done();
    MILLRACE_RETURN_IF_ERROR(assembler_->Write(piece));
    if (!had_topology && assembler_->topology_done()) {
      MILLRACE_RETURN_IF_ERROR(AskOthers());
      TakeFromCache();  // while the calls are in flight
    }
  }
  return absl::OkStatus();
}

absl::Status BatchReceiver::StartAssembly(const ReceivedFrame& frame) {
  if (!frame.header().stream.has_value()) {
    return absl::InternalError("the first frame lacks the layout");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      BatchAssembler assembler,
      BatchAssembler::Create({.manifest = options_.context.manifest,
                              .job = options_.job,
                              .request = options_.request,
                              .home = options_.home,
                              .cached_rows = cached_rows_,
                              .max_bytes = options_.max_batch_bytes},
                             *frame.header().stream));
  assembler_.emplace(std::move(assembler));
  return absl::OkStatus();
}

absl::Status BatchReceiver::CheckComplete() const {
  const bool complete = assembler_.has_value() && assembler_->done();
  return complete ? absl::OkStatus()
                  : absl::InternalError("the batch is incomplete");
}

absl::Status BatchReceiver::AskOthers() {
  const Batch& batch = assembler_->batch();
  const RowOrigins origins = {options_.context.manifest,
                              options_.request.columns, options_.home,
                              options_.cache.get()};
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    MILLRACE_RETURN_IF_ERROR(
        StartCalls(MissingNodeRows(origins, batch, static_cast<TypeIndex>(t))));
  }
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    MILLRACE_RETURN_IF_ERROR(StartCalls(
        MissingEdgeRows(origins, batch, static_cast<RelationIndex>(r))));
  }
  return absl::OkStatus();
}

absl::Status BatchReceiver::StartCalls(std::vector<RowRequest> requests) {
  for (RowRequest& request : requests) {
    MILLRACE_RETURN_IF_ERROR(options_.calls->Add([&](CallDone done) {
      return StartRowCall(options_.context, std::move(request),
                          std::move(done));
    }));
  }
  return absl::OkStatus();
}

void BatchReceiver::TakeFromCache() {
  if (options_.cache == nullptr || !options_.cache->on_host()) return;
  const Batch& batch = assembler_->batch();
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const NodeBlock& block = batch.nodes[t];
    if (!block.feature.present()) continue;
    options_.cache->CopyRows(static_cast<TypeIndex>(t), block.id,
                             block.feature);
  }
}

}  // namespace millrace
