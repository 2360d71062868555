// SPDX-License-Identifier: Apache-2.0
// Calls that tests drive step by step, to act as clients that stall.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/grpc/call/unary_call.h"
#include "tests/support/fleet_harness.h"

namespace millrace::testing {

// A call whose client sends and accepts only what it is told to.
class ManualCall
    : public ::grpc::ClientBidiReactor<::grpc::ByteBuffer, ::grpc::ByteBuffer> {
 public:
  using Bytes = ::grpc::ByteBuffer;

  ManualCall(const std::string& address, const std::string& method,
             absl::Duration deadline = absl::Hours(1))
      : ManualCall(Connect(address), method, deadline) {}

  // Starts one of several calls on a connection.
  ManualCall(const std::shared_ptr<::grpc::Channel>& channel,
             const std::string& method,
             absl::Duration deadline = absl::Hours(1))
      : stub_(channel) {
    SetDeadline(context_, deadline);
    stub_.PrepareBidiStreamingCall(&context_, "/millrace.v1.Sampler/" + method,
                                   {}, this);
    StartCall();
  }
  ~ManualCall() override {
    context_.TryCancel();
    done_.WaitForNotification();
  }

  // A connection whose client accepts 64 KiB ahead and no more.
  static std::shared_ptr<::grpc::Channel> Connect(
      const std::string& address,
      const std::shared_ptr<::grpc::ChannelCredentials>& credentials =
          ::grpc::InsecureChannelCredentials()) {
    ::grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    return ::grpc::CreateCustomChannel(address, credentials, arguments);
  }

  void Send(const ::google::protobuf::MessageLite& request) {
    request_ = SerializeMessage(request);
    StartWriteLast(&request_, {});
  }

  // Whether the reply, or the first message of a stream, arrives within 30 s.
  bool AwaitReply() {
    return began_.WaitForNotificationWithTimeout(absl::Seconds(30)) && replied_;
  }

  // Whether the reply has started to arrive.
  bool HasReply() const { return began_.HasBeenNotified() && replied_; }

  // How the call ended; UNKNOWN if it has not ended within `time`.
  ::grpc::Status Await(absl::Duration time) {
    if (done_.WaitForNotificationWithTimeout(time)) return status_;
    return {::grpc::StatusCode::UNKNOWN, "still there"};
  }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    replied_ = ok;
    began_.Notify();
  }
  void OnDone(const ::grpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }

  ::grpc::TemplatedGenericStub<Bytes, Bytes> stub_;
  ::grpc::ClientContext context_;
  Bytes request_;
  ::grpc::Status status_;
  bool replied_ = false;  // set before began_
  Notification began_;
  Notification done_;
};

}  // namespace millrace::testing
