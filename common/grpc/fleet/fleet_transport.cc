// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet_transport.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <utility>

#include "common/grpc/status.h"
#include "common/grpc/time.h"
#include "common/grpc/tls/tls.h"
#include "sampler.grpc.pb.h"

namespace millrace {
namespace {

class GrpcDescribeCall final : public DescribeCall {
 public:
  // Uses the connections in turn: that one works says nothing about the others.
  GrpcDescribeCall(const Connector& connector,
                   std::shared_ptr<FleetMember> member)
      : connector_(connector),
        member_(std::move(member)),
        stub_(v1::Sampler::NewStub(member_->channels.Next())) {}

  void Start(const Options& options, Done done) override {
    request_.set_look_for_splits(options.look_for_splits);
    context_.set_deadline(ToGrpcTime(options.deadline));
    if (options.reconnect) member_->channels.Restore(SteadyNow());
    look_context_.set_deadline(ToGrpcTime(options.deadline));
    stub_->async()->Describe(
        &context_, &request_, &reply_,
        [this, done = std::move(done)](const ::grpc::Status& status) {
          const absl::Status result = FromGrpcStatus(status);
          auto channel = connector_.ConnectToExplain(result, member_->address);
          if (channel == nullptr) return done(result, reply_);
          Look(std::move(channel), done);
        });
  }

  void Cancel() override {
    context_.TryCancel();
    look_context_.TryCancel();
  }

 private:
  // Fails with the reason why the first call has failed.
  void Look(std::shared_ptr<::grpc::Channel> channel, const Done& done) {
    stub_ = v1::Sampler::NewStub(std::move(channel));
    stub_->async()->Describe(&look_context_, &request_, &reply_,
                             [this, done](const ::grpc::Status& status) {
                               done(FromGrpcStatus(status), reply_);
                             });
  }

  const Connector& connector_;
  const std::shared_ptr<FleetMember> member_;  // shared with the fleet
  std::unique_ptr<v1::Sampler::Stub> stub_;
  ::grpc::ClientContext context_;
  ::grpc::ClientContext look_context_;
  v1::DescribeRequest request_;
  v1::DescribeReply reply_;
};

class GrpcTransport final : public FleetTransport {
 public:
  explicit GrpcTransport(const FleetOptions& options)
      : connections_(std::max(1, options.connections)),
        max_receive_bytes_(options.max_receive_bytes),
        connector_(options.tls, options.list) {}

  void Connect(FleetMember& member) const override {
    member.channels.Open(connections_, [this, address = member.address] {
      return connector_.Connect(address, max_receive_bytes_);
    });
  }

  std::unique_ptr<DescribeCall> NewDescribeCall(
      std::shared_ptr<FleetMember> member) const override {
    return std::make_unique<GrpcDescribeCall>(connector_, std::move(member));
  }

 private:
  const int connections_;
  const int max_receive_bytes_;
  const Connector connector_;
};

}  // namespace

std::unique_ptr<FleetTransport> MakeGrpcTransport(const FleetOptions& options) {
  return std::make_unique<GrpcTransport>(options);
}

}  // namespace millrace
