// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/float_cast.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/sample/digest.h"
#include "common/sample/gather.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/wire/batch_assembler.h"
#include "common/wire/error_info.h"
#include "common/wire/frame.h"
#include "common/wire/manifest_proto.h"
#include "tests/server/call_by_name.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CallByName;
using testing::CallGather;
using testing::CallSample;
using testing::CheckHealth;
using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::Health;
using ::testing::Not;
using testing::SampleRequestOf;
using ::testing::StartsWith;
using testing::StreamResult;
using testing::WideGraph;

Columns AllColumns() {
  Columns columns;
  columns.original_ids = true;
  columns.edge_ids = true;
  columns.degrees = true;
  return columns;
}

JobSpec WideJob() {
  JobSpec spec;
  spec.fanouts = {3, 3};
  spec.batch_size = 16;
  return spec;
}

// A batch far larger than what gRPC buffers for a client that does not read.
v1::SampleRequest HugeRequest() {
  JobSpec spec = WideJob();
  spec.fanouts = {5, 5};
  spec.batch_size = 2000;
  return SampleRequestOf(spec, Columns(), 0);
}

// Feeds a received stream to the assembler.
absl::StatusOr<BatchAssembler> Assemble(const AssemblerRequest& asked,
                                        const StreamResult& stream) {
  // Passes the layout through a frame, as on the wire.
  v1::Frame proto;
  *proto.mutable_header()->mutable_stream() = stream.layout;
  const std::string head = proto.SerializeAsString();
  const std::vector<std::span<const std::byte>> slices = {
      std::as_bytes(std::span(head.data(), head.size()))};
  auto frame = ParseFrame(slices);
  if (!frame.ok()) return frame.status();
  auto assembler = BatchAssembler::Create(asked, *frame->header.stream);
  if (!assembler.ok()) return assembler.status();
  const absl::Status written = assembler->Write(
      std::as_bytes(std::span(stream.bytes.data(), stream.bytes.size())));
  if (!written.ok()) return written;
  return assembler;
}

void ExpectSameRows(const Array& got, const Array& want,
                    std::span<const uint32_t> rows) {
  for (const uint32_t row : rows) {
    EXPECT_EQ(
        std::memcmp(got.data() + row * got.row_bytes(),
                    want.data() + row * want.row_bytes(), want.row_bytes()),
        0);
  }
}

// Expects the batch from every home to equal the one made without servers: all
// of the topology, and the rows that the home owns.
void ExpectHomesAgree(FleetHarness& fleet, const JobSpec& spec,
                      uint32_t batch_index) {
  auto local = LocalBatchSource::Create(fleet.store(), 1);
  ASSERT_TRUE(local.ok());
  const auto job = ResolveJob(spec, fleet.store()->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  BatchRequest request;
  request.batch = batch_index;
  request.columns = AllColumns();
  const auto want = (*local)->Make(*job, request);
  ASSERT_TRUE(want.ok()) << want.status();
  for (int home = 0; home < fleet.store()->partition_count(); ++home) {
    v1::SampleRequest message = SampleRequestOf(spec, request.columns, home);
    message.set_batch(batch_index);
    message.set_fingerprint(fleet.store()->manifest().fingerprint);
    const StreamResult stream = CallSample(*fleet.Stub(home), message);
    ASSERT_TRUE(stream.status.ok()) << stream.status;
    const auto got = Assemble({.manifest = fleet.store()->manifest(),
                               .job = *job,
                               .request = request,
                               .home = home},
                              stream);
    ASSERT_TRUE(got.ok()) << got.status();
    BatchAssembler assembler = *got;
    const Batch& batch = assembler.batch();
    for (size_t t = 0; t < batch.nodes.size(); ++t) {
      const NodeBlock& a = batch.nodes[t];
      const NodeBlock& b = want->nodes[t];
      EXPECT_EQ(a.hop_offsets, b.hop_offsets);
      ASSERT_EQ(a.id.total_bytes(), b.id.total_bytes());
      EXPECT_EQ(std::memcmp(a.id.data(), b.id.data(), b.id.total_bytes()), 0);
      ExpectSameRows(a.original_id, b.original_id, assembler.rows().home[t]);
      ExpectSameRows(a.degree, b.degree, assembler.rows().home[t]);
      ExpectSameRows(a.feature, b.feature, assembler.rows().feature[t]);
      ExpectSameRows(a.label, b.label, assembler.rows().label[t]);
    }
    for (size_t r = 0; r < batch.edges.size(); ++r) {
      const EdgeBlock& a = batch.edges[r];
      const EdgeBlock& b = want->edges[r];
      ASSERT_EQ(a.neighbor.total_bytes(), b.neighbor.total_bytes());
      EXPECT_EQ(std::memcmp(a.neighbor.data(), b.neighbor.data(),
                            b.neighbor.total_bytes()),
                0);
      EXPECT_EQ(std::memcmp(a.edge_id.data(), b.edge_id.data(),
                            b.edge_id.total_bytes()),
                0);
    }
  }
}

class FleetSizeTest : public ::testing::TestWithParam<int> {};

TEST_P(FleetSizeTest, BatchesEqualThoseMadeLocally) {
  FleetHarness fleet(WideGraph(400, 6, 9), GetParam());
  JobSpec spec = WideJob();
  ExpectHomesAgree(fleet, spec, 0);
  ExpectHomesAgree(fleet, spec, 3);
  spec.fanouts = {-1, 2, -1};
  ExpectHomesAgree(fleet, spec, 1);
  spec.replace = true;
  spec.disjoint = true;
  ExpectHomesAgree(fleet, spec, 1);
  spec.direction = Direction::kOut;
  spec.seed_order = SeedOrder::kLocal;
  ExpectHomesAgree(fleet, spec, 2);
}

TEST_P(FleetSizeTest, HeterogeneousBatchesEqualThoseMadeLocally) {
  FleetHarness fleet(testing::RichGraph(), GetParam());
  const SplitInfo& split = fleet.store()->manifest().splits.at(0);
  JobSpec spec;
  spec.seed_type = fleet.store()->schema().node_types[split.type].name;
  spec.split = split.name;
  spec.fanouts = {2, -1};
  spec.batch_size = 3;
  ExpectHomesAgree(fleet, spec, 0);
}

INSTANTIATE_TEST_SUITE_P(Partitions, FleetSizeTest, ::testing::Values(1, 2, 3));

// A fingerprint of the same length that differs in its last digit.
std::string AnotherFingerprint(const Store& store) {
  std::string other = store.manifest().fingerprint;
  other.back() = other.back() == '0' ? '1' : '0';
  return other;
}

class ServerTest : public ::testing::Test {
 protected:
  FleetHarness& fleet(ServerOptions options = {}) {
    if (!fleet_) {
      fleet_ = std::make_unique<FleetHarness>(WideGraph(300, 5, 8), 2,
                                              std::move(options));
    }
    return *fleet_;
  }

  absl::Status SampleStatus(const v1::SampleRequest& request) {
    return CallSample(*fleet().Stub(0), request).status;
  }

  v1::SampleRequest GoodRequest() {
    return SampleRequestOf(WideJob(), Columns(), 0);
  }

  std::unique_ptr<FleetHarness> fleet_;
};

TEST_F(ServerTest, SampleRefusesBadRequests) {
  const auto code = [this](auto change) {
    v1::SampleRequest request = GoodRequest();
    change(request);
    return SampleStatus(request).code();
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(code([](auto&) {}), Code::kOk);
  EXPECT_EQ(code([](auto& r) { r.set_batch(1000); }), Code::kOutOfRange);
  EXPECT_EQ(code([](auto& r) { r.set_partition(1); }),
            Code::kFailedPrecondition);
  EXPECT_EQ(code([](auto& r) { r.set_partition(77); }),
            Code::kFailedPrecondition);
  EXPECT_EQ(code([](auto& r) { r.set_fingerprint("other"); }),
            Code::kFailedPrecondition);
  EXPECT_EQ(code([this](auto& r) {
              r.set_fingerprint(AnotherFingerprint(*fleet().store()));
            }),
            Code::kFailedPrecondition);
  EXPECT_EQ(code([](auto& r) { r.mutable_job()->set_split("none"); }),
            Code::kNotFound);
  EXPECT_EQ(code([](auto& r) { r.mutable_job()->set_seed_type("none"); }),
            Code::kNotFound);
  EXPECT_EQ(code([](auto& r) { r.mutable_job()->set_batch_size(0); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& r) { r.mutable_job()->set_batch_size(1u << 30); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& r) { r.mutable_job()->set_fanouts(0, -2); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& r) { r.mutable_job()->set_fanouts(0, 1 << 30); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& r) { r.set_explicit_ids("abc"); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](auto& r) {
              r.mutable_columns()->set_feature_dtype(v1::DTYPE_INT8);
            }),
            Code::kInvalidArgument);
}

TEST_F(ServerTest, ExplicitSeedsErrorsNamePositionAndValue) {
  v1::SampleRequest request = GoodRequest();
  const std::vector<uint32_t> ids = {1, 300};
  request.set_explicit_ids(ids.data(), ids.size() * sizeof(uint32_t));
  const absl::Status status = SampleStatus(request);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("explicit_ids[1] is 300"));
}

// Features come last; what is before them does not change.
TEST_F(ServerTest, SampleSendsNarrowFeaturesWhenAsked) {
  v1::SampleRequest request = GoodRequest();
  const StreamResult whole = CallSample(*fleet().Stub(0), request);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  request.mutable_columns()->set_feature_dtype(v1::DTYPE_FLOAT16);
  const StreamResult half = CallSample(*fleet().Stub(0), request);
  ASSERT_TRUE(half.status.ok()) << half.status;
  const v1::ArrayInfo& info = *half.layout.arrays().rbegin();
  ASSERT_EQ(info.kind(), v1::ArrayInfo::KIND_NODE_FEATURE);
  EXPECT_EQ(info.dtype(), v1::DTYPE_FLOAT16);
  const size_t values = info.shape(0) * info.shape(1);
  ASSERT_GT(values, 0u);
  ASSERT_GT(whole.bytes.size(), 4 * values);
  const size_t begin = whole.bytes.size() - 4 * values;
  std::string want = whole.bytes.substr(0, begin);
  want.resize(begin + 2 * values);
  CastFloats(DType::kFloat32,
             reinterpret_cast<const std::byte*>(whole.bytes.data() + begin),
             DType::kFloat16, reinterpret_cast<std::byte*>(want.data() + begin),
             values);
  EXPECT_EQ(half.bytes, want);
}

TEST_F(ServerTest, SampleLeavesOutCachedRows) {
  v1::SampleRequest request = GoodRequest();
  request.add_cached_rows(1 << 20);
  const StreamResult stream = CallSample(*fleet().Stub(0), request);
  ASSERT_TRUE(stream.status.ok()) << stream.status;
  EXPECT_EQ(stream.layout.arrays().rbegin()->kind(),
            v1::ArrayInfo::KIND_NODE_FEATURE);
  EXPECT_EQ(stream.layout.arrays().rbegin()->shape(0), 0u);
}

// The wait for the other server, which is gone, would end far later.
TEST_F(ServerTest, SampleEndsAtTheDeadline) {
  ServerOptions options;
  options.default_deadline = absl::Milliseconds(300);
  options.peer_wait = absl::Hours(1);
  FleetHarness& two = fleet(options);
  two.StopServer(1);
  ::grpc::ClientContext context;  // without a deadline
  const absl::Status status =
      testing::Collect(*two.Stub(0)->Sample(&context, GoodRequest())).status;
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
}

TEST_F(ServerTest, SampleNamesThePartitionThatIsGone) {
  ServerOptions options;
  options.peer_wait = absl::Milliseconds(200);
  FleetHarness& two = fleet(options);
  ASSERT_TRUE(CallSample(*two.Stub(0), GoodRequest()).status.ok());
  two.StopServer(1);
  const absl::Status status = CallSample(*two.Stub(0), GoodRequest()).status;
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("partition 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1"));
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
  EXPECT_TRUE(IsRetryable(status));
}

TEST_F(ServerTest, SampleFindsAPartitionThatCameBack) {
  ServerOptions options;
  options.peer_wait = absl::Seconds(20);
  FleetHarness& two = fleet(options);
  two.StopServer(1);
  std::thread later([&two] { two.StartServer(1); });
  const absl::Status status = CallSample(*two.Stub(0), GoodRequest()).status;
  later.join();
  EXPECT_TRUE(status.ok()) << status;
}

// Calls Describe until some Sample call holds memory.
void AwaitRunningCall(v1::Sampler::Stub& stub) {
  const SteadyTime deadline = SteadyNow() + absl::Seconds(30);
  v1::DescribeReply reply;
  while (reply.inflight_bytes() == 0 && SteadyNow() < deadline) {
    ::grpc::ClientContext context;
    ASSERT_TRUE(stub.Describe(&context, {}, &reply).ok());
  }
  EXPECT_GT(reply.inflight_bytes(), 0u);
}

TEST_F(ServerTest, CancelledCallsStopWaitingForPeers) {
  ServerOptions options;
  options.peer_wait = absl::Seconds(60);
  FleetHarness& two = fleet(options);
  two.StopServer(1);
  auto stub = two.Stub(0);
  ::grpc::ClientContext context;
  auto reader = stub->Sample(&context, GoodRequest());
  AwaitRunningCall(*stub);
  context.TryCancel();
  reader->Finish();
  EXPECT_TRUE(two.server(0).Drain(absl::Seconds(20)));
}

TEST_F(ServerTest, CancelledCallsLeaveNothingBehind) {
  FleetHarness& two = fleet();
  auto stub = two.Stub(0);
  for (int i = 0; i < 20; ++i) {
    ::grpc::ClientContext context;
    auto reader = stub->Sample(&context, GoodRequest());
    v1::Frame frame;
    if (i % 2 == 0) reader->Read(&frame);
    context.TryCancel();
    reader->Finish();
  }
  // Draining succeeds only if no calls are left.
  EXPECT_TRUE(two.server(0).Drain(absl::Seconds(20)));
}

TEST_F(ServerTest, BatchesThatCanNeverFitAreRefused) {
  ServerOptions options;
  options.max_inflight_bytes = 8 << 20;
  fleet(options);
  v1::SampleRequest request = GoodRequest();
  EXPECT_TRUE(SampleStatus(request).ok());
  request.mutable_job()->set_batch_size(300);
  request.mutable_job()->set_replace(true);
  request.mutable_job()->set_fanouts(0, 1000);
  const absl::Status status = SampleStatus(request);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("8388608"));
}

TEST_F(ServerTest, AnswersOfPeersCountAsMemory) {
  // 80,000 picks, half of them drawn by the peer. The limit has room for the
  // picks, but not for the edge ids as well.
  const auto status = [](bool edge_ids) {
    ServerOptions options;
    options.max_inflight_bytes = 8 << 20;
    FleetHarness two(WideGraph(40, 2000, 1), 2, options);
    JobSpec spec;
    spec.fanouts = {-1};
    spec.batch_size = 40;
    Columns columns;
    columns.edge_ids = edge_ids;
    return CallSample(*two.Stub(0), SampleRequestOf(spec, columns, 0)).status;
  };
  const absl::Status lean = status(false);
  EXPECT_TRUE(lean.ok()) << lean;
  const absl::Status wide = status(true);
  EXPECT_TRUE(absl::IsFailedPrecondition(wide)) << wide;
  EXPECT_THAT(std::string(wide.message()), HasSubstr("8388608"));
}

TEST_F(ServerTest, ExcessCallsAreToldWhenToRetry) {
  ServerOptions options;
  options.max_sample_calls = 1;
  // A call whose frames are not read keeps the only place, because they exceed
  // what gRPC buffers.
  fleet_ =
      std::make_unique<FleetHarness>(WideGraph(3000, 5, 16 << 10), 1, options);
  const v1::SampleRequest request = HugeRequest();
  auto stub = fleet().Stub(0);
  ::grpc::ClientContext context;
  auto reader = stub->Sample(&context, request);
  v1::Frame frame;
  ASSERT_TRUE(reader->Read(&frame));
  const absl::Status status = CallSample(*fleet().Stub(0), request).status;
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(ErrorInfoOf(status).retry_after, absl::ZeroDuration());
  context.TryCancel();
  reader->Finish();
}

// An Expand of one node, drawn with replacement: 4 bytes per pick.
absl::Status ExpandOnce(FleetHarness& fleet, int32_t fanout) {
  v1::ExpandRequest request;
  request.set_replace(true);
  v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
  const uint32_t id = 0;
  frontier.set_ids(&id, sizeof id);
  frontier.set_fanout(fanout);
  ::grpc::ClientContext context;
  v1::ExpandReply reply;
  return FromGrpcStatus(fleet.Stub(0)->Expand(&context, request, &reply));
}

TEST_F(ServerTest, LeafCallsThatCanNeverFitAreRefused) {
  ServerOptions options;
  options.max_leaf_bytes = 1 << 20;
  fleet(options);
  EXPECT_TRUE(ExpandOnce(fleet(), 1000).ok());
  const absl::Status status = ExpandOnce(fleet(), 1000000);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the leaf call needs"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576"));
}

TEST_F(ServerTest, LeafCallsShareABudgetOfBytes) {
  ServerOptions options;
  options.max_leaf_bytes = 8 << 20;
  // 300,000 rows of 8 KB: they exceed what gRPC buffers for a client that does
  // not read, and their ids take most of the budget.
  fleet_ =
      std::make_unique<FleetHarness>(WideGraph(300, 5, 2 << 10), 1, options);
  const std::vector<uint32_t> ids(300000, 7);
  v1::GatherRequest request;
  request.set_ids(ids.data(), ids.size() * sizeof(uint32_t));
  auto stub = fleet().Stub(0);
  ::grpc::ClientContext context;
  auto reader = stub->Gather(&context, request);
  v1::Frame frame;
  ASSERT_TRUE(reader->Read(&frame));
  EXPECT_TRUE(ExpandOnce(fleet(), 1000).ok());
  for (const absl::Status& status :
       {ExpandOnce(fleet(), 250000),
        CallGather(*fleet().Stub(0), request).status}) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("8388608"));
    EXPECT_GT(ErrorInfoOf(status).retry_after, absl::ZeroDuration());
  }
  context.TryCancel();
  reader->Finish();
  // The server notices a moment later.
  const SteadyTime deadline = SteadyNow() + absl::Seconds(30);
  absl::Status after = ExpandOnce(fleet(), 250000);
  while (!after.ok() && SteadyNow() < deadline) {
    after = ExpandOnce(fleet(), 250000);
  }
  EXPECT_TRUE(after.ok()) << after;
}

TEST_F(ServerTest, SlowClientsDoNotBlockOthers) {
  ServerOptions options;
  options.threads = 1;
  FleetHarness wide(WideGraph(3000, 5, 16 << 10), 1, options);
  auto stub = wide.Stub(0);
  std::vector<std::unique_ptr<::grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<::grpc::ClientReader<v1::Frame>>> readers;
  for (int i = 0; i < 4; ++i) {
    contexts.push_back(std::make_unique<::grpc::ClientContext>());
    readers.push_back(stub->Sample(contexts.back().get(), HugeRequest()));
    v1::Frame frame;
    ASSERT_TRUE(readers.back()->Read(&frame));
  }
  const StreamResult other = CallSample(*wide.Stub(0), GoodRequest());
  EXPECT_TRUE(other.status.ok()) << other.status;
  for (size_t i = 0; i < readers.size(); ++i) {
    contexts[i]->TryCancel();
    readers[i]->Finish();
  }
  EXPECT_TRUE(wide.server(0).Drain(absl::Seconds(20)));
}

TEST_F(ServerTest, CallsWithoutADeadlineEndAtTheDefault) {
  ServerOptions options;
  options.default_deadline = absl::Milliseconds(500);
  FleetHarness wide(WideGraph(3000, 5, 16 << 10), 1, options);
  auto stub = wide.Stub(0);
  ::grpc::ClientContext context;
  auto reader = stub->Sample(&context, HugeRequest());
  v1::Frame frame;
  ASSERT_TRUE(reader->Read(&frame));
  // The client reads nothing more, but the server still gets rid of the call.
  EXPECT_TRUE(wide.server(0).Drain(absl::Seconds(20)));
  while (reader->Read(&frame)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(ServerTest, DrainingAnswersLeafCallsOnly) {
  FleetHarness& two = fleet();
  auto stub = two.Stub(0);
  ASSERT_TRUE(CallSample(*stub, GoodRequest()).status.ok());
  EXPECT_TRUE(two.server(0).Drain(absl::Seconds(20)));
  const absl::Status status = CallSample(*stub, GoodRequest()).status;
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("draining"));
  ::grpc::ClientContext context;
  v1::DescribeReply reply;
  ASSERT_TRUE(stub->Describe(&context, {}, &reply).ok());
  EXPECT_TRUE(reply.draining());
}

TEST_F(ServerTest, DescribeReportsTheStore) {
  ::grpc::ClientContext context;
  v1::DescribeReply reply;
  ASSERT_TRUE(fleet().Stub(1)->Describe(&context, {}, &reply).ok());
  EXPECT_EQ(reply.parts(), 2u);
  EXPECT_THAT(reply.partitions(), ::testing::ElementsAre(1));
  EXPECT_FALSE(reply.version().empty());
  const auto manifest = ManifestFromProto(reply);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->schema, fleet().store()->schema());
}

TEST_F(ServerTest, GatherSendsRowsInOrder) {
  const PartitionBook& book = fleet().store()->book(0);
  std::vector<uint32_t> ids;
  for (uint64_t id = book.end(1); id-- > book.begin(1);) {
    ids.push_back(static_cast<uint32_t>(id));
    ids.push_back(static_cast<uint32_t>(book.begin(1)));
  }
  v1::GatherRequest request;
  request.set_partition(1);
  request.set_ids(ids.data(), ids.size() * sizeof(uint32_t));
  for (const NodeColumn column :
       {NodeColumn::kFeature, NodeColumn::kLabel, NodeColumn::kOriginalId,
        NodeColumn::kInDegree, NodeColumn::kOutDegree}) {
    request.set_column(static_cast<v1::NodeColumn>(column));
    const StreamResult got = CallGather(*fleet().Stub(1), request);
    ASSERT_TRUE(got.status.ok()) << got.status;
    const std::vector<uint64_t> wide(ids.begin(), ids.end());
    std::string want(
        ids.size() * ColumnOf(fleet().store()->schema(), 0, column).row_bytes(),
        '\0');
    ASSERT_TRUE(GatherRows(*fleet().store(), 0, column, wide,
                           reinterpret_cast<std::byte*>(want.data()))
                    .ok());
    EXPECT_EQ(got.bytes, want);
  }
}

TEST_F(ServerTest, GatherCastsFeatures) {
  const Store& store = *fleet().store();
  const PartitionBook& book = store.book(0);
  std::vector<uint32_t> ids;  // far more than are cast at a time
  while (ids.size() < 10000) {
    for (uint64_t id = book.begin(1); id < book.end(1); ++id) {
      ids.push_back(static_cast<uint32_t>(id));
    }
  }
  const ColumnSpec stored = ColumnOf(store.schema(), 0, NodeColumn::kFeature);
  std::vector<std::byte> rows(ids.size() * stored.row_bytes());
  ASSERT_TRUE(GatherRows(store, 0, NodeColumn::kFeature,
                         std::vector<uint64_t>(ids.begin(), ids.end()),
                         rows.data())
                  .ok());
  v1::GatherRequest request;
  request.set_partition(1);
  request.set_ids(ids.data(), ids.size() * sizeof(uint32_t));
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    request.set_feature_dtype(static_cast<v1::DType>(dtype));
    const StreamResult got = CallGather(*fleet().Stub(1), request);
    ASSERT_TRUE(got.status.ok()) << got.status;
    std::string want(rows.size() / 2, '\0');
    CastFloats(stored.dtype, rows.data(), dtype,
               reinterpret_cast<std::byte*>(want.data()),
               rows.size() / sizeof(float));
    EXPECT_EQ(got.bytes, want);
  }
}

TEST_F(ServerTest, GatherRefusesForeignIds) {
  v1::GatherRequest request;
  request.set_partition(1);
  const std::vector<uint32_t> ids = {
      static_cast<uint32_t>(fleet().store()->book(0).begin(1)), 0};
  request.set_ids(ids.data(), ids.size() * sizeof(uint32_t));
  const absl::Status status = CallGather(*fleet().Stub(1), request).status;
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ids[1] is 0"));
  request.clear_ids();
  request.set_node_type(9);
  EXPECT_TRUE(
      absl::IsInvalidArgument(CallGather(*fleet().Stub(1), request).status));
}

// The server has these rows, but not in the partition that is asked for.
TEST_F(ServerTest, GatherRefusesIdsOfAnotherServedPartition) {
  const auto server = SamplerServer::Start(fleet().store(), ServerOptions());
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = v1::Sampler::NewStub(::grpc::CreateChannel(
      (*server)->address(), ::grpc::InsecureChannelCredentials()));
  const PartitionBook& book = fleet().store()->book(0);
  const auto gather = [&](int partition, uint64_t id) {
    v1::GatherRequest request;
    request.set_partition(static_cast<uint32_t>(partition));
    const auto narrow = static_cast<uint32_t>(id);
    request.set_ids(&narrow, sizeof narrow);
    return CallGather(*stub, request).status.code();
  };
  EXPECT_EQ(gather(0, book.end(0) - 1), absl::StatusCode::kOk);
  EXPECT_EQ(gather(0, book.end(0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(gather(1, book.begin(1)), absl::StatusCode::kOk);
  EXPECT_EQ(gather(1, book.begin(1) - 1), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerTest, GatherRefusesAnotherStoresFingerprint) {
  v1::GatherRequest request;
  const auto code = [&] {
    return CallGather(*fleet().Stub(0), request).status.code();
  };
  request.set_fingerprint(fleet().store()->manifest().fingerprint);
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  request.set_fingerprint(AnotherFingerprint(*fleet().store()));
  EXPECT_EQ(code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServerTest, GatherOfNoRowsIsOneFrame) {
  v1::GatherRequest request;
  const StreamResult got = CallGather(*fleet().Stub(0), request);
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.frames, 1);
  EXPECT_EQ(got.layout.total_bytes(), 0u);
  EXPECT_EQ(got.layout.arrays_size(), 1);
}

TEST_F(ServerTest, ResolveFindsIdsOfItsLookupRange) {
  const PartitionBook& book = fleet().store()->book(0);
  std::vector<int64_t> original;
  for (uint64_t o = book.lookup_width(); o < book.node_count(); ++o) {
    original.push_back(static_cast<int64_t>(o));
  }
  v1::ResolveRequest request;
  request.set_partition(1);
  request.set_original_ids(original.data(), original.size() * 8);
  ::grpc::ClientContext context;
  v1::ResolveReply reply;
  ASSERT_TRUE(fleet().Stub(1)->Resolve(&context, request, &reply).ok());
  std::vector<uint32_t> ids(reply.ids().size() / 4);
  ASSERT_EQ(ids.size(), original.size());
  std::memcpy(ids.data(), reply.ids().data(), reply.ids().size());
  const std::vector<uint64_t> wide(ids.begin(), ids.end());
  std::vector<int64_t> back(ids.size());
  ASSERT_TRUE(GatherRows(*fleet().store(), 0, NodeColumn::kOriginalId, wide,
                         reinterpret_cast<std::byte*>(back.data()))
                  .ok());
  EXPECT_EQ(back, original);
  ::grpc::ClientContext again;
  request.set_partition(0);
  const ::grpc::Status wrong =
      fleet().Stub(0)->Resolve(&again, request, &reply);
  EXPECT_EQ(wrong.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, ExpandRefusesBadFrontiers) {
  const auto code = [this](auto change) {
    v1::ExpandRequest request;
    request.set_partition(0);
    v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
    const uint32_t id = 0;
    frontier.set_ids(&id, sizeof id);
    frontier.set_fanout(2);
    change(request, frontier);
    ::grpc::ClientContext context;
    v1::ExpandReply reply;
    return fleet().Stub(0)->Expand(&context, request, &reply).error_code();
  };
  using ::grpc::StatusCode;
  EXPECT_EQ(code([](auto&, auto&) {}), StatusCode::OK);
  EXPECT_EQ(code([](auto&, auto& f) { f.set_relation(5); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto&, auto& f) { f.set_fanout(0); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto&, auto& f) { f.set_fanout(-2); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto&, auto& f) { f.set_ids("xyz"); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto&, auto& f) { f.set_trees("12345678"); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto& r, auto&) { r.set_hop(1u << 20); }),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto& r, auto&) { r.set_partition(1); }),
            StatusCode::FAILED_PRECONDITION);
  const uint32_t foreign =
      static_cast<uint32_t>(fleet().store()->book(0).begin(1));
  EXPECT_EQ(code([&](auto&, auto& f) { f.set_ids(&foreign, 4); }),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, LargeHopsTakeSeveralReplies) {
  // 64 nodes with replacement and 100,000 picks each: 25 MB from the peer,
  // which do not fit into one reply.
  FleetHarness big(WideGraph(64, 3, 1), 2);
  JobSpec spec;
  spec.fanouts = {100000};
  spec.batch_size = 64;
  spec.replace = true;
  ExpectHomesAgree(big, spec, 0);
}

TEST_F(ServerTest, AnswersHealthChecks) {
  const std::string address = fleet().server(0).address();
  EXPECT_EQ(CheckHealth(address, ""), Health::kServing);
  EXPECT_EQ(CheckHealth(address, "partition/0"), Health::kServing);
  EXPECT_EQ(CheckHealth(address, "partition/1"), Health::kError);
  EXPECT_TRUE(fleet().server(0).Drain(absl::Seconds(5)));
  EXPECT_EQ(CheckHealth(address, "partition/0"), Health::kNotServing);
}

// The damage is found while a batch is made; from then on other servers must be
// asked.
TEST_F(ServerTest, DamagedPartitionsAreNoLongerServed) {
  const std::string file =
      ListPath(0, "node__to__node", Direction::kIn, "indices");
  const std::string folder = fleet().store()->path().string();
  const auto path = fleet().store()->path() / file;
  ASSERT_EQ(SampleStatus(GoodRequest()), absl::OkStatus());
  {
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(256);  // after the header
    out << std::string(std::filesystem::file_size(path) - 256, '\xff');
  }
  const auto expect_elsewhere = [&](const absl::Status& status) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(folder)));
    EXPECT_TRUE(ErrorInfoOf(status).moved);
    EXPECT_EQ(ErrorInfoOf(status).partition, 0);
  };
  expect_elsewhere(SampleStatus(GoodRequest()));
  // This also holds for requests that read no damaged file.
  v1::GatherRequest gather;
  gather.set_partition(0);
  expect_elsewhere(CallGather(*fleet().Stub(0), gather).status);
  grpc::ClientContext context;
  v1::DescribeReply described;
  ASSERT_TRUE(fleet().Stub(0)->Describe(&context, {}, &described).ok());
  EXPECT_EQ(described.partitions_size(), 0);
  ASSERT_EQ(described.damage_size(), 1);
  EXPECT_EQ(described.damage(0).partition(), 0u);
  EXPECT_THAT(described.damage(0).what(), StartsWith(file + " "));
  const std::string address = fleet().server(0).address();
  EXPECT_EQ(CheckHealth(address, "partition/0"), Health::kNotServing);
  // This server has no other partition.
  EXPECT_EQ(CheckHealth(address, ""), Health::kNotServing);
  EXPECT_FALSE(fleet().server(0).HasIntactPartition());
  EXPECT_TRUE(fleet().server(1).HasIntactPartition());
  EXPECT_THAT(fleet().server(0).Metrics(),
              HasSubstr("\nmillrace_damaged_partitions 1\n"));
  EXPECT_EQ(CheckHealth(fleet().server(1).address(), "partition/1"),
            Health::kServing);
}

TEST_F(ServerTest, ReflectionListsAndDescribesTheService) {
  const std::string service = "millrace.v1.Sampler";
  const auto reflect = [&](const std::string& request) {
    return CallByName(
        fleet().server(0).address(),
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request);
  };
  // Field 7 of the request asks for the list, field 4 for the file that defines
  // a symbol.
  const auto list = reflect(std::string("\x3a\0", 2));
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(*list, HasSubstr(service));
  const auto file = reflect(std::string("\x22") +
                            static_cast<char>(service.size()) + service);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(*file, HasSubstr("sampler.proto"));
}

TEST_F(ServerTest, OtherMethodsAreUnimplemented) {
  for (const char* method : {"/millrace.v1.Sampler/Nothing", "/Describe",
                             "/millrace.v2.Sampler/Describe"}) {
    const absl::Status status =
        CallByName(fleet().server(0).address(), method, "").status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << method << ": " << status;
  }
}

TEST_F(ServerTest, ListenErrorsNameTheOption) {
  ServerOptions options;
  options.listen = "nonsense";
  EXPECT_THAT(
      std::string(
          SamplerServer::Start(fleet().store(), options).status().message()),
      HasSubstr("listen: "));
  options.listen = fleet().server(0).address();
  EXPECT_TRUE(absl::IsUnavailable(
      SamplerServer::Start(fleet().store(), options).status()));
}

// The graph has one node type and one relation, in two partitions.
TEST_F(ServerTest, RefusalsNameNumbersAndLimits) {
  const PartitionBook& book = fleet().store()->book(0);
  const std::string nodes = std::to_string(book.node_count());
  const auto raw = [](const std::vector<uint32_t>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       4 * values.size());
  };
  const auto resolve = [&](uint32_t partition, uint32_t type, int64_t original,
                           const std::string& fingerprint = "") {
    v1::ResolveRequest request;
    request.set_partition(partition);
    request.set_node_type(type);
    request.set_fingerprint(fingerprint);
    request.set_original_ids(&original, 8);
    ::grpc::ClientContext context;
    v1::ResolveReply reply;
    return FromGrpcStatus(fleet().Stub(0)->Resolve(&context, request, &reply));
  };
  const auto find = [&](uint32_t relation, const std::vector<uint32_t>& src,
                        const std::vector<uint32_t>& dst) {
    v1::HasEdgesRequest request;
    request.set_relation(relation);
    request.set_src_ids(raw(src));
    request.set_dst_ids(raw(dst));
    ::grpc::ClientContext context;
    v1::HasEdgesReply reply;
    return FromGrpcStatus(fleet().Stub(0)->HasEdges(&context, request, &reply));
  };
  const auto width = static_cast<int64_t>(book.lookup_width());
  const auto count = static_cast<uint32_t>(book.node_count());
  const std::string ours = fleet().store()->manifest().fingerprint;
  EXPECT_EQ(resolve(0, 0, width - 1, ours), absl::OkStatus());
  EXPECT_EQ(find(0, {0, count - 1}, {0, 0}), absl::OkStatus());
  struct Case {
    absl::Status status;
    absl::StatusCode code;
    std::string message;
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  constexpr auto kElsewhere = absl::StatusCode::kFailedPrecondition;
  const std::string order = "\nnumber them from 0, in the order of Describe";
  for (const Case& refused : std::vector<Case>{
           {resolve(1, 0, 0), kElsewhere,
            "partition 1 is not served here (0 of 2 are)"},
           {resolve(~0u, 0, 0), kElsewhere,
            "partition 4294967295 is not served here (0 of 2 are)"},
           {resolve(0, 0, 0, "other"), kElsewhere,
            "this server has another store: fingerprint " + ours +
                ", not other\nserve one store everywhere"},
           {resolve(0, 1, 0), kBad, "node type 1: the graph has 1" + order},
           {resolve(0, 0, width), kBad,
            "original_ids[0] is " + std::to_string(width) +
                ", which is not in the id range [0, " + std::to_string(width) +
                ")"},
           {find(1, {0}, {0}), kBad, "relation 1: the graph has 1" + order},
           {find(0, {0, 1}, {0}), kBad, "2 src_ids and 1 dst_ids"},
           {find(0, {count}, {0}), kBad,
            "src_ids[0] is " + nodes + ", which is not in the id range [0, " +
                nodes + ")"},
           {find(0, {0}, {count}), kBad,
            "dst_ids[0] is " + nodes + ", which is not in the id range [0, " +
                nodes + ")"}}) {
    EXPECT_EQ(refused.status.code(), refused.code) << refused.status;
    EXPECT_EQ(refused.status.message(), refused.message);
  }
}

}  // namespace
}  // namespace millrace
