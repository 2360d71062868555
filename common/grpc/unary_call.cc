// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/unary_call.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <cstdint>
#include <utility>

#include "common/base/strings.h"
#include "common/grpc/status.h"

namespace millrace {
namespace {

using Bytes = ::grpc::ByteBuffer;
using Traits = ::grpc::SerializationTraits<::google::protobuf::MessageLite>;

// What a reply counts for before its size is known.
constexpr int64_t kNominalBytes = int64_t{1} << 20;

class UnaryCall final : public Call {
 public:
  explicit UnaryCall(UnaryCallOptions options)
      : options_(std::move(options)),
        stub_(options_.member->NextChannel()),
        charge_(kNominalBytes +
                static_cast<int64_t>(options_.request.Length())) {}

  // `self` lives until the callback ran.
  void Start(std::shared_ptr<UnaryCall> self) {
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
    // Before `done`, which may pick a server again.
    options_.member->outstanding_bytes -= charge_;
    if (status.ok()) status = options_.on_reply(reply_);
    options_.done(std::move(status));
  }

  UnaryCallOptions options_;
  ::grpc::TemplatedGenericStub<Bytes, Bytes> stub_;
  const int64_t charge_;  // among the member's outstanding bytes
  Bytes reply_;
};

}  // namespace

std::shared_ptr<Call> StartUnaryCall(UnaryCallOptions options) {
  auto call = std::make_shared<UnaryCall>(std::move(options));
  call->Start(call);
  return call;
}

::grpc::ByteBuffer SerializeMessage(
    const ::google::protobuf::MessageLite& message) {
  Bytes bytes;
  bool own_buffer = false;
  const ::grpc::Status status = Traits::Serialize(message, &bytes, &own_buffer);
  GPR_ASSERT(status.ok());  // fails only for messages beyond 2 GiB
  return bytes;
}

absl::Status ParseMessage(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::MessageLite& message) {
  const ::grpc::Status status = Traits::Deserialize(&bytes, &message);
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(
      StrCat("what was sent is no ", message.GetTypeName()));
}

}  // namespace millrace
