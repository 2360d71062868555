// SPDX-License-Identifier: Apache-2.0
// A server process under thousands of bad requests: each gets an error that
// says what is wrong, memory stays flat, and other clients are served as
// before.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/raw_http2.h"
#include "tests/support/server_program.h"

namespace millrace {
namespace {

constexpr int kRequests = 10'000;
// How much gRPC and malloc may still grow once every kind has been sent.
constexpr int64_t kMaxGrowth = int64_t{24} << 20;

std::string Bytes(size_t count, char byte = '\xff') {
  return std::string(count, byte);
}

// One kind of bad request.
struct Kind {
  std::string name;
  std::function<absl::Status(v1::Sampler::Stub&)> send;
};

template <typename Edit>
Kind BadSample(const std::string& name, Edit edit) {
  return {"Sample: " + name, [edit](v1::Sampler::Stub& stub) {
            JobSpec spec;
            spec.fanouts = {2, 2};
            spec.batch_size = 4;
            v1::SampleRequest request =
                testing::SampleRequestOf(spec, Columns(), 0);
            edit(request);
            return testing::CallSample(stub, request).status;
          }};
}

template <typename Edit>
Kind BadGather(const std::string& name, Edit edit) {
  return {"Gather: " + name, [edit](v1::Sampler::Stub& stub) {
            v1::GatherRequest request;
            edit(request);
            return testing::CallGather(stub, request).status;
          }};
}

template <typename Edit>
Kind BadExpand(const std::string& name, Edit edit) {
  return {"Expand: " + name, [edit](v1::Sampler::Stub& stub) {
            v1::ExpandRequest request;
            auto* frontier = request.add_frontiers();
            frontier->set_fanout(2);
            edit(request, *frontier);
            ::grpc::ClientContext context;
            testing::SetDeadline(context, absl::Seconds(30));
            v1::ExpandReply reply;
            return FromGrpcStatus(stub.Expand(&context, request, &reply));
          }};
}

template <typename Edit>
Kind BadResolve(const std::string& name, Edit edit) {
  return {"Resolve: " + name, [edit](v1::Sampler::Stub& stub) {
            v1::ResolveRequest request;
            edit(request);
            ::grpc::ClientContext context;
            testing::SetDeadline(context, absl::Seconds(30));
            v1::ResolveReply reply;
            return FromGrpcStatus(stub.Resolve(&context, request, &reply));
          }};
}

template <typename Edit>
Kind BadHasEdges(const std::string& name, Edit edit) {
  return {"HasEdges: " + name, [edit](v1::Sampler::Stub& stub) {
            v1::HasEdgesRequest request;
            edit(request);
            ::grpc::ClientContext context;
            testing::SetDeadline(context, absl::Seconds(30));
            v1::HasEdgesReply reply;
            return FromGrpcStatus(stub.HasEdges(&context, request, &reply));
          }};
}

std::vector<Kind> BadSamples() {
  using Request = v1::SampleRequest;
  return {
      BadSample("no job", [](Request& r) { r.clear_job(); }),
      BadSample("batch beyond the epoch", [](Request& r) { r.set_batch(1); }),
      BadSample("last batch number", [](Request& r) { r.set_batch(~0U); }),
      BadSample("partition not there", [](Request& r) { r.set_partition(7); }),
      BadSample("another store", [](Request& r) { r.set_fingerprint("x"); }),
      BadSample("unknown type",
                [](Request& r) { r.mutable_job()->set_seed_type("nobody"); }),
      BadSample("unknown split",
                [](Request& r) { r.mutable_job()->set_split("nowhere"); }),
      BadSample("fanout -2",
                [](Request& r) { r.mutable_job()->set_fanouts(0, -2); }),
      BadSample("huge fanout",
                [](Request& r) { r.mutable_job()->set_fanouts(0, 1 << 30); }),
      BadSample("thousand hops",
                [](Request& r) {
                  for (int i = 0; i < 1000; ++i)
                    r.mutable_job()->add_fanouts(1);
                }),
      BadSample("batch of nothing",
                [](Request& r) { r.mutable_job()->set_batch_size(0); }),
      BadSample("huge batch",
                [](Request& r) { r.mutable_job()->set_batch_size(~0ULL); }),
      BadSample("unknown relation",
                [](Request& r) {
                  auto* of = r.mutable_job()->add_relation_fanouts();
                  of->set_relation("a__b__c");
                  of->add_fanouts(1);
                }),
      BadSample("unknown direction",
                [](Request& r) {
                  r.mutable_job()->set_direction(
                      static_cast<v1::Job::Direction>(9));
                }),
      BadSample("unknown method",
                [](Request& r) {
                  r.mutable_job()->set_method(static_cast<v1::Job::Method>(99));
                }),
      BadSample("weights that are not there",
                [](Request& r) { r.mutable_job()->set_weighted(true); }),
      BadSample("times that are not there",
                [](Request& r) {
                  r.mutable_job()->set_temporal(v1::Job::TEMPORAL_LAST);
                }),
      BadSample("walks without end",
                [](Request& r) {
                  r.mutable_job()->clear_fanouts();
                  r.mutable_job()->set_method(v1::Job::METHOD_WALK);
                  r.mutable_job()->set_walks(~0U);
                  r.mutable_job()->set_walk_length(~0U);
                }),
      BadSample("restart that is not a number",
                [](Request& r) {
                  r.mutable_job()->set_method(v1::Job::METHOD_PPR);
                  r.mutable_job()->set_restart(
                      std::numeric_limits<double>::quiet_NaN());
                }),
      BadSample("negatives of nodes",
                [](Request& r) {
                  r.mutable_job()->set_negatives(v1::Job::NEGATIVES_BINARY);
                }),
      BadSample("ids of half a byte",
                [](Request& r) { r.set_explicit_ids(Bytes(3)); }),
      BadSample("ids out of range",
                [](Request& r) { r.set_explicit_ids(Bytes(64)); }),
      BadSample("times without seeds",
                [](Request& r) { r.set_explicit_times(Bytes(8)); }),
      BadSample("pairs in a job of nodes",
                [](Request& r) { r.set_explicit_dst_ids(Bytes(64, '\0')); }),
      BadSample("unknown columns",
                [](Request& r) {
                  r.mutable_columns()->set_feature_dtype(
                      static_cast<v1::DType>(77));
                }),
      BadSample(
          "features of edges that have none",
          [](Request& r) { r.mutable_columns()->set_edge_features(true); }),
      BadSample("cached rows of types that are not there",
                [](Request& r) {
                  for (int i = 0; i < 1000; ++i) r.add_cached_rows(~0ULL);
                }),
      BadSample("graph of an unknown split",
                [](Request& r) { r.mutable_job()->set_train_graph("none"); }),
  };
}

std::vector<Kind> BadLeafCalls() {
  using Frontier = v1::ExpandRequest::Frontier;
  return {
      BadExpand("unknown relation",
                [](auto&, Frontier& f) { f.set_relation(5); }),
      BadExpand("fanout 0", [](auto&, Frontier& f) { f.set_fanout(0); }),
      BadExpand("huge fanout",
                [](auto&, Frontier& f) { f.set_fanout(INT32_MAX); }),
      BadExpand("ids of half a byte",
                [](auto&, Frontier& f) { f.set_ids(Bytes(5)); }),
      BadExpand("ids of another owner",
                [](auto&, Frontier& f) { f.set_ids(Bytes(400)); }),
      BadExpand("trees without ids",
                [](auto&, Frontier& f) { f.set_trees(Bytes(4)); }),
      BadExpand("times without ids",
                [](auto&, Frontier& f) { f.set_times(Bytes(8)); }),
      BadExpand("half an excluded edge",
                [](auto&, Frontier& f) { f.set_excluded_nodes(Bytes(4, 0)); }),
      BadExpand("unknown rule",
                [](auto& r, Frontier&) {
                  r.set_rule(static_cast<v1::ExpandRequest::Rule>(50));
                }),
      BadExpand("hop without end", [](auto& r, Frontier&) { r.set_hop(~0U); }),
      BadExpand("graph of an unknown split",
                [](auto& r, Frontier&) { r.set_within("none"); }),
      BadExpand("partition not there",
                [](auto& r, Frontier&) { r.set_partition(~0U); }),
      BadGather("unknown type", [](auto& r) { r.set_node_type(3); }),
      BadGather("unknown column",
                [](auto& r) { r.set_column(static_cast<v1::NodeColumn>(42)); }),
      BadGather("column that is not there",
                [](auto& r) { r.set_column(v1::NODE_COLUMN_TIME); }),
      BadGather("ids out of range", [](auto& r) { r.set_ids(Bytes(4000)); }),
      BadGather("ids of half a byte", [](auto& r) { r.set_ids(Bytes(7)); }),
      BadGather("cast to integers",
                [](auto& r) { r.set_feature_dtype(v1::DTYPE_INT8); }),
      BadGather("features of edges that have none",
                [](auto& r) {
                  r.set_edge_relation(0);
                  r.set_rows(Bytes(8, 0));
                }),
      BadGather("another store", [](auto& r) { r.set_fingerprint("x"); }),
      BadResolve("unknown type", [](auto& r) { r.set_node_type(9); }),
      BadResolve("ids out of range",
                 [](auto& r) { r.set_original_ids(Bytes(800)); }),
      BadResolve("ids of half a byte",
                 [](auto& r) { r.set_original_ids(Bytes(9)); }),
      BadHasEdges("unknown relation", [](auto& r) { r.set_relation(2); }),
      BadHasEdges("half a pair", [](auto& r) { r.set_src_ids(Bytes(4, 0)); }),
      BadHasEdges("the other half",
                  [](auto& r) { r.set_dst_ids(Bytes(4, 0)); }),
      BadHasEdges("ids out of range",
                  [](auto& r) {
                    r.set_src_ids(Bytes(400));
                    r.set_dst_ids(Bytes(400));
                  }),
  };
}

// Sends bytes that are not a message of the protocol.
absl::Status SendGarbage(
    ::grpc::GenericStub& stub, const std::string& method,
    const std::string& bytes,
    grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  ::grpc::ClientContext context;
  testing::SetDeadline(context, absl::Seconds(30));
  context.set_compression_algorithm(compression);
  const ::grpc::Slice slice(bytes);
  const ::grpc::ByteBuffer request(&slice, 1);
  ::grpc::ByteBuffer reply;
  Notification done;
  ::grpc::Status status;
  stub.UnaryCall(&context, method, {}, &request, &reply,
                 [&](::grpc::Status result) {
                   status = std::move(result);
                   done.Notify();
                 });
  done.WaitForNotification();
  return FromGrpcStatus(status);
}

bool IsTyped(const absl::Status& status) {
  // gRPC itself answers unknown methods, without a message.
  if (absl::IsUnimplemented(status)) return true;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
      return !status.message().empty();
    default:
      return false;
  }
}

class BadRequestsTest : public ::testing::Test {
 protected:
  BadRequestsTest() {
    address_ = testing::Serve(stored_.path(), "0", stored_.directory() / "port",
                              server_);
    channel_ = ::grpc::CreateCustomChannel(address_,
                                           ::grpc::InsecureChannelCredentials(),
                                           ClientChannelArguments());
    stub_ = v1::Sampler::NewStub(channel_);
  }

  // A sanitizer's report is in the log.
  ~BadRequestsTest() override {
    if (!HasFailure()) return;
    std::printf("the server's log:\n%s", server_->KillAndReadLog().c_str());
  }

  using Program = testing::Program;

  // Resident bytes of the server: now, and the maximum so far.
  int64_t Memory() const { return ReadMemory("VmRSS:"); }
  int64_t PeakMemory() const { return ReadMemory("VmHWM:"); }

  int64_t ReadMemory(const std::string& name) const {
    std::ifstream status("/proc/" + std::to_string(server_->pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(name, 0) == 0)
        return std::stoll(line.substr(name.size())) * 1024;
    }
    ADD_FAILURE() << "the server is gone";
    return 0;
  }

  // Fetches batches and compares them until `stop` is set.
  void FetchUntil(const std::atomic<bool>& stop) {
    RemoteOptions options;
    options.servers = address_;
    options.partition_wait = absl::Seconds(30);
    auto source = RemoteBatchSource::Connect(options);
    ASSERT_TRUE(source.ok()) << source.status();
    const auto local = LocalBatchSource::Create(stored_.Open(), 1).value();
    JobSpec spec;
    spec.fanouts = {2, 2};
    spec.batch_size = 4;
    const auto job = ResolveJob(spec, (*source)->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    for (uint32_t epoch = 0; !stop; ++epoch) {
      BatchRequest request;
      request.epoch = epoch;
      request.columns = DigestColumns(true, false);
      const auto batch = testing::PendingFetch(**source, *job, request).Wait();
      const auto want = local->Make(*job, request);
      ASSERT_TRUE(batch.ok()) << batch.status();
      ASSERT_TRUE(want.ok()) << want.status();
      ASSERT_EQ(DigestBatch(*batch, local->manifest().schema),
                DigestBatch(*want, local->manifest().schema));
      ++fetched_;
    }
  }

  const testing::TestStore stored_{testing::SmallGraph(), 1};
  std::unique_ptr<Program> server_;
  std::string address_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<v1::Sampler::Stub> stub_;
  std::atomic<int> fetched_ = 0;
};

TEST_F(BadRequestsTest, EachIsAnsweredAndNothingGrows) {
  std::vector<Kind> kinds = BadSamples();
  for (Kind& kind : BadLeafCalls()) kinds.push_back(std::move(kind));
  ::grpc::GenericStub generic(channel_);
  std::mt19937 random(5);
  for (const std::string method :
       {"Sample", "Gather", "Expand", "Resolve", "HasEdges"}) {
    kinds.push_back({"garbage for " + method, [&, method](auto&) {
                       // This field of 9 bytes is cut off.
                       std::string bytes = "\x0a\x09";
                       for (auto i = random() % 9; i > 0; --i) {
                         bytes += static_cast<char>(random());
                       }
                       return SendGarbage(
                           generic, "/millrace.v1.Sampler/" + method, bytes);
                     }});
  }
  kinds.push_back({"unknown method", [&](auto&) {
                     return SendGarbage(generic, "/millrace.v1.Sampler/Nothing",
                                        "x");
                   }});
  ASSERT_GE(kinds.size(), 50u);

  std::atomic<bool> stop = false;
  std::thread other([&] { FetchUntil(stop); });
  int sent = 0;
  const auto send_all = [&] {
    for (const Kind& kind : kinds) {
      const absl::Status status = kind.send(*stub_);
      EXPECT_TRUE(IsTyped(status)) << kind.name << ": " << status;
      ++sent;
    }
  };
  // Warms up first.
  for (int round = 0; round < 20; ++round) send_all();
  const int64_t before = Memory();
  while (sent < kRequests && !HasFailure()) send_all();
  const int64_t grown = Memory() - before;
  stop = true;
  other.join();
  EXPECT_LT(grown, kMaxGrowth);
  EXPECT_GT(fetched_, 10);
  std::printf(
      "%d requests of %zu kinds; memory grew by %.1f MB; %d batches "
      "for another client\n",
      sent, kinds.size(), 1e-6 * static_cast<double>(grown), fetched_.load());
}

std::string Repeat(const std::string& piece, size_t bytes) {
  std::string all;
  while (all.size() + piece.size() <= bytes) all += piece;
  return all;
}

// Requests of the largest size that consist only of tiny fields, and so take
// far more memory when parsed than they have bytes.
TEST_F(BadRequestsTest, FloodsOfFieldsTakeNoMemory) {
  constexpr size_t kBytes = (16 << 20) - 64;
  const std::string unknown = Repeat(std::string("\x7a\0", 2), kBytes);
  const std::string frontiers = Repeat("\x42\x02\x10\x01", kBytes);
  ::grpc::GenericStub generic(channel_);
  const int64_t before = Memory();
  for (const std::string method :
       {"Sample", "Gather", "Expand", "Resolve", "HasEdges", "Describe"}) {
    const absl::Status status =
        SendGarbage(generic, "/millrace.v1.Sampler/" + method, unknown);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << method << ": " << status;
  }
  const absl::Status status =
      SendGarbage(generic, "/millrace.v1.Sampler/Expand", frontiers);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  // The bound allows for the bytes themselves, several times, because malloc
  // keeps them.
  EXPECT_LT(Memory() - before, int64_t{128} << 20);
}

// A few KB that inflate to far more than the largest message.
TEST_F(BadRequestsTest, CompressedRequestsAreNotInflated) {
  // The generated stubs have no way to ask for compression.
  ::grpc::GenericStub generic(
      ::grpc::CreateChannel(address_, ::grpc::InsecureChannelCredentials()));
  const std::string zeros(64 << 20, '\0');
  const int64_t before = PeakMemory();
  for (const auto compression : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (const std::string method :
         {"/millrace.v1.Sampler/Sample", "/millrace.v1.Sampler/Describe",
          "/grpc.health.v1.Health/Check"}) {
      const absl::Status status =
          SendGarbage(generic, method, zeros, compression);
      EXPECT_TRUE(absl::IsUnimplemented(status)) << method << ": " << status;
      EXPECT_LT(PeakMemory() - before, int64_t{32} << 20) << method;
    }
  }
}

TEST_F(BadRequestsTest, HalfRequestsTakeLittleMemory) {
  testing::Serve(stored_.path(), "0", stored_.directory() / "small_port",
                 server_, {"--max-inflight-bytes", "64M"});
  std::string port;
  std::ifstream(stored_.directory() / "small_port") >> port;
  const int64_t before = Memory();
  // The first part of a 16 MiB Gather request.
  const std::string half = testing::RawHttp2::Prefix((16 << 20) - 1) +
                           std::string(4'000'000, '\xff');
  std::vector<std::unique_ptr<testing::RawHttp2>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<testing::RawHttp2>("127.0.0.1:" + port));
    for (int calls = 0; calls < 30; ++calls) {
      clients.back()->SendData(
          clients.back()->Open("/millrace.v1.Sampler/Gather"), half);
      // The server may refuse later ones.
      ASSERT_TRUE(i > 0 || calls >= 10 || !clients.back()->closed());
    }
  }
  // The bound is half of both limits, plus what malloc keeps, instead of 720
  // MB.
  EXPECT_LT(Memory() - before, int64_t{400} << 20);
}

}  // namespace
}  // namespace millrace
