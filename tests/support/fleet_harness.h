// SPDX-License-Identifier: Apache-2.0
// Servers of a small store on loopback, run in this process, and simple
// blocking calls to them. A test must add ../support/store_builder.cc to its
// SOURCES, and millrace::server and millrace::proto_grpc to its LINK.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/graph/store.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/status.h"
#include "common/grpc/time.h"
#include "common/sample/job.h"
#include "common/wire/job_proto.h"
#include "sampler.grpc.pb.h"
#include "server/server.h"
#include "tests/support/test_store.h"

namespace millrace::testing {

// One server per partition; each finds the others through an @FILE.
class FleetHarness {
 public:
  FleetHarness(const TestGraph& graph, int parts,
               ServerOptions options = ServerOptions())
      : stored_(graph, parts),
        options_(std::move(options)),
        list_((stored_.directory() / "servers").string()),
        store_(stored_.Open()) {
    options_.peers = "@" + list_;
    std::ofstream(list_) << "# nobody yet\n";
    servers_.resize(static_cast<size_t>(parts));
    for (int part = 0; part < parts; ++part) StartServer(part);
  }

  // (Re)starts the server of a partition on a new port and lists it.
  void StartServer(int part) {
    // No test can go on without a server: value() throws an exception that says
    // what went wrong.
    servers_[part] =
        SamplerServer::Start(stored_.Open({part}), options_).value();
    WriteList();
  }

  // Stops a server; it stays in the list, like a server that was killed.
  void StopServer(int part) { servers_[part]->Stop(); }

  SamplerServer& server(int part) { return *servers_[part]; }
  const std::shared_ptr<const Store>& store() const { return store_; }
  const std::string& list() const { return list_; }

  std::unique_ptr<v1::Sampler::Stub> Stub(int part) const {
    return v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        servers_[part]->address(), ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
  }

 private:
  void WriteList() {
    std::ofstream file(list_);
    for (const auto& server : servers_) {
      if (server) file << server->address() << '\n';
    }
  }

  const TestStore stored_;
  ServerOptions options_;
  const std::string list_;
  const std::shared_ptr<const Store>
      store_;  // all partitions; shared with sources
  std::vector<std::unique_ptr<SamplerServer>> servers_;
};

// The frames of a stream put together, and how it ended.
struct StreamResult {
  absl::Status status;
  v1::Stream layout;
  std::string bytes;
  int frames = 0;
};

inline StreamResult Collect(::grpc::ClientReader<v1::Frame>& reader) {
  StreamResult result;
  v1::Frame frame;
  while (reader.Read(&frame)) {
    EXPECT_EQ(frame.header().offset(), result.bytes.size());
    if (frame.header().has_stream()) result.layout = frame.header().stream();
    result.bytes += frame.payload();
    ++result.frames;
  }
  result.status = FromGrpcStatus(reader.Finish());
  return result;
}

inline void SetDeadline(::grpc::ClientContext& context, absl::Duration in) {
  context.set_deadline(ToGrpcTime(SteadyNow() + in));
}

inline StreamResult CallSample(v1::Sampler::Stub& stub,
                               const v1::SampleRequest& request,
                               absl::Duration deadline = absl::Seconds(30)) {
  ::grpc::ClientContext context;
  SetDeadline(context, deadline);
  return Collect(*stub.Sample(&context, request));
}

inline StreamResult CallGather(v1::Sampler::Stub& stub,
                               const v1::GatherRequest& request) {
  ::grpc::ClientContext context;
  SetDeadline(context, absl::Seconds(30));
  return Collect(*stub.Gather(&context, request));
}

inline v1::SampleRequest SampleRequestOf(const JobSpec& spec,
                                         const Columns& columns, int home) {
  v1::SampleRequest request;
  JobToProto(spec, *request.mutable_job());
  ColumnsToProto(columns, *request.mutable_columns());
  request.set_partition(static_cast<uint32_t>(home));
  return request;
}

}  // namespace millrace::testing
