// SPDX-License-Identifier: Apache-2.0
// Request ids and --trace-slow in the log of servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/mutex.h"
#include "common/grpc/request_id.h"
#include "server/server.h"
#include "tests/support/captured_log.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CapturedLog;
using testing::Collect;
using ::testing::ContainsRegex;
using testing::Eventually;
using testing::FleetHarness;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SampleRequestOf;
using testing::SetDeadline;
using testing::SmallGraph;

ServerOptions Traced(absl::Duration limit) {
  ServerOptions options;
  options.trace_slow = limit;
  return options;
}

// Samples at partition 0, and asks the others for their lists.
absl::Status Sample(v1::Sampler::Stub& home, const std::string& id,
                    absl::Duration deadline = absl::Seconds(30)) {
  JobSpec job;
  job.fanouts = {4, 4};
  job.batch_size = 64;
  ::grpc::ClientContext context;
  SetDeadline(context, deadline);
  context.AddMetadata(kRequestIdKey, id);
  return Collect(*home.Sample(&context, SampleRequestOf(job, Columns(), 0)))
      .status;
}

// Samples until the log has `text`, since it takes only 10 traces a second.
bool SampleUntil(FleetHarness& fleet, const std::string& id,
                 const CapturedLog& log, const std::string& text) {
  return Eventually([&] {
    EXPECT_EQ(Sample(*fleet.Stub(0), id), absl::OkStatus());
    return log.text().find(text) != std::string::npos;
  });
}

TEST(TracedCallsTest, IdGoesFromClientToHomeAndOwner) {
  const CapturedLog log;
  FleetHarness fleet(SmallGraph(), 2, Traced(absl::Nanoseconds(1)));
  const std::string id = "trainer-3-0-1.1";
  EXPECT_TRUE(SampleUntil(fleet, id, log,
                          "slow batch request_id=" + id + " method=Sample"))
      << log.text();
  EXPECT_TRUE(SampleUntil(fleet, id, log,
                          "slow call request_id=" + id + " method=Expand"))
      << log.text();
  EXPECT_THAT(
      log.text(),
      ContainsRegex("method=Sample client=127.0.0.1 code=OK total_ms=[0-9.]+ "
                    "read_ms=[0-9.]+ queue_ms=[0-9.]+ epoch=0 batch=0 "
                    "partition=0 sample_ms=[0-9.]+ hop0_ms=[0-9.]+"));
  EXPECT_THAT(log.text(), HasSubstr("_slowest_partition=1 hop"));
  EXPECT_THAT(log.text(),
              HasSubstr("_slowest_server=" + fleet.server(1).address()));
}

TEST(TracedCallsTest, IdsThatAreNotAcceptedAreReplaced) {
  const CapturedLog log;
  FleetHarness fleet(SmallGraph(), 2, Traced(absl::Nanoseconds(1)));
  for (const std::string& id :
       {std::string("two words"), std::string("quote\"d"), std::string("a=b"),
        std::string(65, 'x'), std::string(5000, 'y')}) {
    EXPECT_TRUE(SampleUntil(fleet, id, log, "method=Sample"));
  }
  EXPECT_THAT(log.text(), ContainsRegex("request_id=[0-9a-f]+-own-[0-9]+ "));
  for (const char* text : {"two words", "quote", "a=b", "xxxx", "yyyy"}) {
    EXPECT_THAT(log.text(), Not(HasSubstr(text)));
  }
}

TEST(TracedCallsTest, OnlySlowCallsAreLoggedAndNoneWithoutTheOption) {
  for (const absl::Duration limit : {absl::ZeroDuration(), absl::Hours(1)}) {
    const CapturedLog log;
    {
      FleetHarness fleet(SmallGraph(), 2, Traced(limit));
      ASSERT_EQ(Sample(*fleet.Stub(0), "trainer"), absl::OkStatus());
    }
    EXPECT_THAT(log.text(), Not(HasSubstr("slow")));
    EXPECT_THAT(log.text(), Not(HasSubstr("trainer")));
  }
}

// The number in a field of a line; 0 if the field is absent.
double FieldOf(const std::string& line, const std::string& name) {
  const size_t at = line.find(" " + name + "=");
  return at == line.npos ? 0 : std::atof(line.c_str() + at + name.size() + 2);
}

// Clients that ask one thread for batches of many frames, so that a batch waits
// for the thread, for other batches' frames and for its client.
TEST(TracedCallsTest, FieldsAccountForTheTime) {
  const CapturedLog log;
  {
    ServerOptions options = Traced(absl::Nanoseconds(1));
    options.threads = 1;
    FleetHarness fleet(testing::WideGraph(4000, 5, 1000), 1, options);
    JobSpec job;
    job.fanouts = {5, 5};
    job.batch_size = 1000;
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back(
          [&fleet, request = SampleRequestOf(job, Columns(), 0)] {
            const auto stub = fleet.Stub(0);
            for (int call = 0; call < 2; ++call) {
              EXPECT_GT(testing::CallSample(*stub, request).frames, 12);
            }
          });
    }
    for (std::thread& client : clients) client.join();
  }
  double total = 0, accounted = 0, leaf_queue = 0;
  for (const absl::string_view text : absl::StrSplit(log.text(), '\n')) {
    if (!absl::StrContains(text, "slow batch ")) continue;
    const std::string line(text);
    total += FieldOf(line, "total_ms");
    leaf_queue += FieldOf(line, "leaf_queue_ms");
    for (const char* name : {"read_ms", "queue_ms", "sample_ms", "gather_ms",
                             "leaf_queue_ms", "send_ms", "finish_ms"}) {
      accounted += FieldOf(line, name);
    }
  }
  EXPECT_GT(leaf_queue, 0) << log.text();
  // Work and sending overlap, so the sum may be larger than the total.
  EXPECT_GT(accounted, 0.75 * total) << log.text();
}

// A server of partition 0 of three, whose peers may be no good. It asks
// partitions 1 and 2, in this order.
class FailedOwnerTest : public ::testing::Test {
 protected:
  void StartHome(const std::string& peers) {
    ServerOptions options = Traced(absl::Nanoseconds(1));
    options.peers = peers;
    options.peer_wait = absl::Seconds(1);
    home_ = SamplerServer::Start(
                Store::Open(fleet_.store()->path(), {0}).value(), options)
                .value();
  }

  // Samples until the trace of a call that failed is logged.
  bool SampleInVain(const std::string& code) {
    const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        home_->address(), ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
    return Eventually([&] {
      EXPECT_FALSE(Sample(*stub, "failed", absl::Seconds(3)).ok());
      return log_.text().find(
                 "request_id=failed method=Sample "
                 "client=127.0.0.1 code=" +
                 code) != std::string::npos;
    });
  }

  const CapturedLog log_;  // first: servers log until they end
  FleetHarness fleet_{testing::WideGraph(300, 5, 8), 3};
  std::unique_ptr<SamplerServer> home_;
};

TEST_F(FailedOwnerTest, OwnerThatDoesNotAnswerIsTheSlowest) {
  Notification end;
  testing::ScriptedSampler silent(fleet_.Stub(1),
                                  testing::ScriptedSampler::Script());
  silent.OnExpand([&end] {
    end.WaitForNotification();
    return ::grpc::Status::OK;
  });
  StartHome(silent.address() + "," + fleet_.server(2).address());
  EXPECT_TRUE(SampleInVain("DEADLINE_EXCEEDED")) << log_.text();
  EXPECT_THAT(log_.text(), ContainsRegex("_wait_ms=[0-9][0-9][0-9][0-9.]* "
                                         "hop0_slowest_partition=1 "
                                         "hop0_slowest_server=" +
                                         silent.address() + " gather_ms="));
  end.Notify();
}

TEST_F(FailedOwnerTest, AbsentOwnerIsTheSlowest) {
  StartHome(fleet_.server(1).address());
  EXPECT_TRUE(SampleInVain("UNAVAILABLE")) << log_.text();
  EXPECT_THAT(log_.text(), ContainsRegex("_wait_ms=[0-9][0-9][0-9][0-9.]* "
                                         "hop0_slowest_partition=2 "
                                         "gather_ms="));
}

}  // namespace
}  // namespace millrace
