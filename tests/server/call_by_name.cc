// SPDX-License-Identifier: Apache-2.0
#include "tests/server/call_by_name.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/grpc/status.h"
#include "tests/support/fleet_harness.h"

namespace millrace::testing {

absl::StatusOr<std::string> CallByName(const std::string& address,
                                       const std::string& method,
                                       const std::string& message) {
  ::grpc::GenericStub stub(
      ::grpc::CreateChannel(address, ::grpc::InsecureChannelCredentials()));
  const ::grpc::Slice slice(message);
  const ::grpc::ByteBuffer request(&slice, 1);
  ::grpc::ByteBuffer reply;
  ::grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(30));
  Notification done;
  ::grpc::Status status;
  stub.UnaryCall(&context, method, {}, &request, &reply,
                 [&](::grpc::Status result) {
                   status = std::move(result);
                   done.Notify();
                 });
  done.WaitForNotification();
  if (!status.ok()) return FromGrpcStatus(status);
  std::vector<::grpc::Slice> slices;
  std::string bytes;
  EXPECT_TRUE(reply.Dump(&slices).ok());
  for (const ::grpc::Slice& piece : slices) {
    bytes.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  }
  return bytes;
}

// Encoded by hand: the messages are one string and one enumerator.
Health CheckHealth(const std::string& address, const std::string& service) {
  std::string message;
  if (!service.empty()) {
    message = std::string("\x0a") + static_cast<char>(service.size()) + service;
  }
  const absl::StatusOr<std::string> reply =
      CallByName(address, "/grpc.health.v1.Health/Check", message);
  if (reply.ok() && *reply == "\x08\x01") return Health::kServing;
  if (reply.ok() && *reply == "\x08\x02") return Health::kNotServing;
  return Health::kError;
}

}  // namespace millrace::testing
