// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/core.h"
#include "server/rpc/frame_sender.h"
#include "server/rpc/frame_source.h"

namespace millrace {

namespace v1 {
class GatherRequest;
}  // namespace v1

// One Gather call, run entirely on the leaf pool. Deletes itself.
class GatherCall final : public FrameSender {
 public:
  // `core` must outlive the call.
  GatherCall(ServerCore& core, ::grpc::CallbackServerContext* context);

  void OnDone() override;

 private:
  void OnRequest() override;
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> NextFrame() override;
  absl::Status ReadRequest();
  absl::Status StartNodeRows(const v1::GatherRequest& request);
  absl::Status StartEdgeRows(const v1::GatherRequest& request);
  absl::Status StartRows(StreamLayout layout, StreamPart part);

  std::unique_ptr<FrameSource> source_;
};

}  // namespace millrace
