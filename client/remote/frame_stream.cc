// SPDX-License-Identifier: Apache-2.0
#include "client/remote/frame_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "client/remote/call_context.h"
#include "common/base/status_macros.h"
#include "common/grpc/request_id.h"
#include "common/grpc/status.h"
#include "common/grpc/time.h"
#include "common/wire/stream_layout.h"

namespace millrace {
namespace {

// Bytes that a call counts for until its size is known, and in addition to the
// missing bytes afterwards.
constexpr int64_t kNominalBytes = int64_t{1} << 20;

// gRPC's generic API has no server-streaming variant; a bidirectional stream
// with a single write looks the same on the wire.
class FrameStream final
    : public Call,
      public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit FrameStream(FrameStreamOptions options)
      : options_(std::move(options)), stub_(options_.member->channels.Next()) {}

  // The call keeps `self` alive until OnDone.
  void Start(std::shared_ptr<FrameStream> self) {
    self_ = std::move(self);
    Charge(kNominalBytes);
    context_.set_deadline(ToGrpcTime(options_.deadline));
    SetRequestId(options_.request_id, context_);
    stub_.PrepareBidiStreamingCall(&context_, options_.method,
                                   grpc::StubOptions(), this);
    StartWriteLast(&options_.request, grpc::WriteOptions());
    StartRead(&message_);
    StartCall();
  }

  void Cancel() override { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone receives the status
    failure_ = Receive();
    if (absl::IsInvalidArgument(failure_) || absl::IsInternal(failure_)) {
      failure_ = ProtocolError(*options_.member, failure_);
    }
    if (!failure_.ok()) {
      context_.TryCancel();
      return;
    }
    StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<FrameStream> self = std::move(self_);
    Charge(0);  // before OnEnd(), which may pick a server
    options_.observer->OnEnd(failure_.ok() ? FromGrpcStatus(status) : failure_);
  }

 private:
  absl::Status Receive() {
    absl::StatusOr<ReceivedFrame> frame = ReceivedFrame::Parse(message_);
    if (!frame.ok()) return frame.status();
    MILLRACE_RETURN_IF_ERROR(options_.observer->OnMessage());
    MILLRACE_RETURN_IF_ERROR(options_.receiver->OnFrame(*frame));
    // Trustworthy: the receiver has checked it.
    const std::optional<StreamLayout>& layout = frame->header().stream;
    if (layout.has_value()) total_ = static_cast<int64_t>(layout->total_bytes);
    received_ += static_cast<int64_t>(frame->payload_bytes());
    Charge(kNominalBytes + std::max<int64_t>(total_ - received_, 0));
    return absl::OkStatus();
  }

  // Sets this call's part of the member's outstanding bytes.
  void Charge(int64_t bytes) {
    options_.member->outstanding_bytes += bytes - charged_;
    charged_ = bytes;
  }

  FrameStreamOptions options_;
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_;
  int64_t total_ = 0, received_ = 0;  // bytes of the stream
  int64_t charged_ = 0;
  absl::Status failure_;               // found in a frame by this client
  std::shared_ptr<FrameStream> self_;  // held for gRPC; dropped in OnDone
};

}  // namespace

std::shared_ptr<Call> StartFrameStream(FrameStreamOptions options) {
  auto stream = std::make_shared<FrameStream>(std::move(options));
  stream->Start(stream);
  return stream;
}

}  // namespace millrace
