// SPDX-License-Identifier: Apache-2.0
// Attempts at batches, as the log of slow ones tells of them.
#include "client/remote/batch_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "common/sample/resolve_job.h"
#include "tests/support/captured_log.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/node_seeds.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PendingFetch;
using testing::ScriptedSampler;
using Writer = ScriptedSampler::Writer;

// A client of one scripted server, to which every batch is a slow one.
class BatchFetchTest : public ::testing::Test {
 protected:
  BatchFetchTest() : servers_(testing::RichGraph(), 1) {}

  void Connect(ScriptedSampler::Script script) {
    scripted_ =
        std::make_unique<ScriptedSampler>(servers_.Stub(0), std::move(script));
    RemoteOptions options;
    options.servers = scripted_->address();
    options.trace_slow = absl::Nanoseconds(1);
    auto source = RemoteBatchSource::Connect(options);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    JobSpec spec;
    spec.seed_type = "paper";
    spec.fanouts = {2};
    spec.batch_size = 2;
    spec.temporal = TemporalStrategy::kUniform;
    auto job = ResolveJob(spec, source_->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
  }

  // Fetches a batch of listed seeds, whose ids and times must be looked up.
  absl::Status Fetch() {
    return PendingFetch(*source_, job_, Seeds()).Wait().status();
  }

  static BatchRequest Seeds() {
    BatchRequest request;
    request.batch = 7;
    request.explicit_seeds = testing::Seeds{{2, 5}};
    return request;
  }

  testing::FleetHarness servers_;
  std::unique_ptr<ScriptedSampler> scripted_;
  std::unique_ptr<RemoteBatchSource> source_;
  ResolvedJob job_;
};

// One call each of Resolve, Gather and Sample.
TEST_F(BatchFetchTest, StagesAreOneAttempt) {
  Connect([this](int, const v1::SampleRequest& request, Writer& out) {
    return scripted_->Pass(request, out);
  });
  const testing::CapturedLog log;
  const absl::Status status = Fetch();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(log.text(), ContainsRegex("slow batch request_id=[0-9a-f]+-0-7-"
                                        "[0-9]+\\.1 epoch=0 batch=7 home=0 "
                                        "code=OK total_ms=[0-9.e-]+ attempts=1 "
                                        "bytes=[0-9]+ calls=3 resent_calls=0 "
                                        "slowest_call="));
}

TEST_F(BatchFetchTest, FailedCallsAreRepeatedInTheNextAttempt) {
  Connect([this](int number, const v1::SampleRequest& request, Writer& out) {
    return number > 0
               ? scripted_->Pass(request, out)
               : grpc::Status(grpc::StatusCode::UNAVAILABLE, "not today");
  });
  const testing::CapturedLog log;
  const absl::Status status = Fetch();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(log.text(), ContainsRegex("-0-7-[0-9]+\\.2 .* code=OK .* "
                                        "attempts=2 .* calls=4 "));
}

TEST_F(BatchFetchTest, SaysWhyASlowBatchFailed) {
  Connect([](int, const v1::SampleRequest&, Writer&) {
    return grpc::Status(grpc::StatusCode::DATA_LOSS, "a file is damaged");
  });
  const testing::CapturedLog log;
  EXPECT_EQ(Fetch().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(log.text(), ContainsRegex("code=DATA_LOSS .* attempts=1 bytes=0 "
                                        "calls=3 "));
}

TEST_F(BatchFetchTest, BatchesOfAClosedSourceAreNotLogged) {
  Notification release;
  Connect([&](int, const v1::SampleRequest&, Writer&) {
    release.WaitForNotification();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "late");
  });
  const testing::CapturedLog log;
  {
    PendingFetch fetch(*source_, job_, Seeds());
    EXPECT_TRUE(testing::Eventually([&] { return scripted_->calls() > 0; }));
    source_.reset();
    EXPECT_TRUE(absl::IsCancelled(fetch.Wait().status()));
  }
  release.Notify();
  scripted_.reset();  // the script has ended
  EXPECT_THAT(log.text(), Not(HasSubstr("slow batch")));
}

}  // namespace
}  // namespace millrace
