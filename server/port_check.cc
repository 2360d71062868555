// SPDX-License-Identifier: Apache-2.0
#include "server/port_check.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "common/base/strings.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/status.h"
#include "common/grpc/tls/tls.h"

namespace millrace {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(10);

}  // namespace

PortCheck::PortCheck(const std::string& address,
                     const std::shared_ptr<TlsFiles>& tls)
    : channel_(::grpc::CreateCustomChannel(
          address,
          tls == nullptr ? ::grpc::InsecureChannelCredentials()
                         : OwnServerCredentials(tls),
          ClientChannelArguments())) {}

absl::Status PortCheck::Ask(absl::Duration timeout) const {
  const SteadyTime deadline = SteadyNow() + timeout;
  absl::Status status = AskUntil(deadline);
  // An idle connection may end at any time, also during the call, and the
  // channel may take a moment to notice. So UNAVAILABLE is worth another try.
  while (absl::IsUnavailable(status) && SteadyNow() + kPause < deadline) {
    absl::SleepFor(kPause);
    status = AskUntil(deadline);
  }
  if (absl::IsCancelled(status)) {
    return absl::DeadlineExceededError(
        StrCat("no answer within ", absl::FormatDuration(timeout)));
  }
  return absl::IsUnavailable(status) ? status : absl::OkStatus();
}

absl::Status PortCheck::AskUntil(SteadyTime deadline) const {
  using Bytes = ::grpc::ByteBuffer;
  ::grpc::TemplatedGenericStub<Bytes, Bytes> stub(channel_);
  ::grpc::ClientContext context;
  // Reconnects if the server has closed the connection.
  context.set_wait_for_ready(true);
  // A HealthCheckRequest without a service name serialises to no bytes.
  const ::grpc::Slice empty;
  const Bytes request(&empty, 1);
  Bytes reply;
  absl::Status status;
  Notification done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check",
                 ::grpc::StubOptions(), &request, &reply,
                 [&](const ::grpc::Status& result) {
                   status = FromGrpcStatus(result);
                   done.Notify();
                 });
  // Does not use gRPC's deadline, which is late if the clock is set back.
  if (!done.WaitForNotificationWithTimeout(deadline - SteadyNow())) {
    context.TryCancel();
  }
  done.WaitForNotification();
  return status;
}

}  // namespace millrace
