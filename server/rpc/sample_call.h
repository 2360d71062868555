// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/steady_time.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/job.h"
#include "server/core/core.h"
#include "server/rpc/frame_sender.h"
#include "server/rpc/frame_source.h"

namespace millrace {

// One Sample call: checks the request, runs the hops (on the sampling pool),
// and streams the batch (from the leaf pool). Deletes itself.
class SampleCall final : public FrameSender {
 public:
  // `core` must outlive the call.
  SampleCall(ServerCore& core, ::grpc::CallbackServerContext* context);

  void OnDone() override;

 private:
  struct Request;

  void OnRequest() override;
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> NextFrame() override;
  absl::Status MakeBatch();
  absl::Status WithOwnersDamage(const absl::Status& status);
  absl::StatusOr<Request> ReadRequest();
  // Fills in everything derived from `request.proto`; may be called again.
  absl::Status Resolve(Request& request) const;
  absl::StatusOr<std::shared_ptr<const Batch>> SampleHops(
      const Request& request, uint64_t held);

  const SteadyTime owners_deadline_;  // for calls to other owners
  int home_ = -1;                     // partition, once the request is read
  std::unique_ptr<FrameSource> source_;
};

}  // namespace millrace
