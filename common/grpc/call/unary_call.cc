// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/unary_call.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <cstdint>
#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"

namespace millrace {
namespace {

using Bytes = ::grpc::ByteBuffer;

// Bytes to count for a reply while its size is unknown.
constexpr int64_t kNominalBytes = int64_t{1} << 20;

// Largest slice that a message is written into.
constexpr int kSliceBytes = 1 << 20;

class UnaryCall final : public Call {
 public:
  explicit UnaryCall(UnaryCallOptions options)
      : options_(std::move(options)),
        stub_(options_.member->channels.Next()),
        charge_(kNominalBytes +
                static_cast<int64_t>(options_.request.Length())) {}

  // The callback holds `self`, which keeps this object alive.
  void Start(const std::shared_ptr<UnaryCall>& self) {
    options_.member->outstanding_bytes += charge_;
    stub_.UnaryCall(options_.context.get(), options_.method,
                    ::grpc::StubOptions(), &options_.request, &reply_,
                    [self](const ::grpc::Status& status) {
                      self->Finish(FromGrpcStatus(status));
                    });
  }

  void Cancel() override { options_.context->TryCancel(); }

 private:
  void Finish(absl::Status status) {
    // This comes before OnEnd(), which may pick a server again.
    options_.member->outstanding_bytes -= charge_;
    if (status.ok()) status = options_.observer->OnMessage();
    if (status.ok()) status = options_.on_reply(reply_);
    options_.observer->OnEnd(std::move(status));
  }

  UnaryCallOptions options_;
  ::grpc::TemplatedGenericStub<Bytes, Bytes> stub_;
  const int64_t charge_;  // part of the member's outstanding bytes
  Bytes reply_;
};

bool ParseFrom(Bytes& bytes, ::google::protobuf::MessageLite& message) {
  ::grpc::ProtoBufferReader reader(&bytes);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

}  // namespace

std::shared_ptr<Call> StartUnaryCall(UnaryCallOptions options) {
  auto call = std::make_shared<UnaryCall>(std::move(options));
  call->Start(call);
  return call;
}

::grpc::ByteBuffer SerializeMessage(
    const ::google::protobuf::MessageLite& message) {
  Bytes bytes;
  ::grpc::ProtoBufferWriter writer(&bytes, kSliceBytes,
                                   static_cast<int>(message.ByteSizeLong()));
  // Fails only for messages of more than 2 GiB.
  MILLRACE_CHECK(message.SerializeToZeroCopyStream(&writer));
  return bytes;
}

absl::Status ParseMessage(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::MessageLite& message) {
  const bool parsed = ParseFrom(bytes, message);
  bytes.Clear();
  if (parsed) return absl::OkStatus();
  return absl::InternalError(
      StrCat("what was sent is not a ", message.GetTypeName()));
}

}  // namespace millrace
