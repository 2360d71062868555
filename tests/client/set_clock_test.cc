// SPDX-License-Identifier: Apache-2.0
// The machine's clock is set back by an hour: nothing may wait for that hour to
// pass again, although gRPC's timers do.
#include "tests/support/set_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/status.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "server/port_check.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/silent_listener.h"

namespace millrace {
namespace {

using testing::FleetHarness;
using testing::ScriptedSampler;

// Far longer than a loaded machine needs, and less than the hour.
constexpr absl::Duration kPatience = absl::Minutes(1);

class SetClockTest : public ::testing::Test {
 protected:
  SetClockTest() { SetClockAhead(absl::ToInt64Nanoseconds(absl::Hours(1))); }
  ~SetClockTest() override { SetClockAhead(0); }

  // Sets the clock back by the hour.
  static void SetBack() { SetClockAhead(0); }

  // Returns whether `condition` becomes true although the clock is set back by
  // a second every few milliseconds, whenever a wait may have started.
  template <typename Condition>
  static bool EventuallyThoughSetBack(Condition condition) {
    absl::Duration ahead = absl::Hours(1);
    return testing::Eventually([&] {
      ahead = std::max(ahead - absl::Seconds(1), absl::ZeroDuration());
      SetClockAhead(absl::ToInt64Nanoseconds(ahead));
      return condition();
    });
  }

  std::unique_ptr<Fleet> MakeFleet(const std::string& list) const {
    FleetOptions options;
    options.list = list;
    options.describe_timeout = absl::Milliseconds(500);
    options.ready_interval = absl::Milliseconds(100);
    options.retry_interval = absl::Milliseconds(100);
    auto fleet = Fleet::Create(options);
    EXPECT_TRUE(fleet.ok()) << fleet.status();
    return *std::move(fleet);
  }

  FleetHarness servers_{testing::SmallGraph(), 1};
};

TEST_F(SetClockTest, TheTimeOfDayIsSetBack) {
  const absl::Time before = absl::Now();
  const SteadyTime start = SteadyNow();
  SetBack();
  EXPECT_LT(absl::Now(), before - absl::Minutes(50));
  EXPECT_LT(SteadyNow() - start, absl::Minutes(10));
}

TEST_F(SetClockTest, MembersAreAskedAgain) {
  const ScriptedSampler server(servers_.Stub(0), {});
  const auto fleet = MakeFleet(server.address());
  ASSERT_TRUE(
      testing::Eventually([&] { return fleet->Owners(0).size() == 1; }));
  const int before = server.describes();
  EXPECT_TRUE(EventuallyThoughSetBack(
      [&] { return server.describes() >= before + 3; }));
}

TEST_F(SetClockTest, ASilentMemberIsLost) {
  Notification asked, release;
  ScriptedSampler server(servers_.Stub(0), {});
  const auto fleet = MakeFleet(server.address());
  ASSERT_TRUE(
      testing::Eventually([&] { return fleet->Owners(0).size() == 1; }));
  server.OnDescribe([&] {
    if (!asked.HasBeenNotified()) asked.Notify();
    release.WaitForNotification();
    return grpc::Status::OK;
  });
  asked.WaitForNotification();
  SetBack();
  EXPECT_TRUE(testing::Eventually([&] { return fleet->Owners(0).empty(); }));
  release.Notify();
}

TEST_F(SetClockTest, AServerThatComesBackIsFoundByAllConnections) {
  const std::string address = servers_.server(0).address();
  const auto fleet = MakeFleet(address);
  const auto member = fleet->Pick(0, SteadyNow() + kPatience);
  ASSERT_TRUE(member.ok()) << member.status();
  std::set<std::shared_ptr<grpc::Channel>> channels;
  while (channels.size() < 2) channels.insert((*member)->channels.Next());
  servers_.StopServer(0);
  ASSERT_TRUE(testing::Eventually([&] { return fleet->Owners(0).empty(); }));
  for (const auto& channel : channels) {
    // It waits for the end of its back-off.
    EXPECT_TRUE(testing::Eventually([&channel] {
      return channel->GetState(/*try_to_connect=*/true) ==
             GRPC_CHANNEL_TRANSIENT_FAILURE;
    }));
  }
  SetBack();
  ServerOptions options;
  options.listen = address;
  const auto again = SamplerServer::Start(servers_.store(), options);
  ASSERT_TRUE(again.ok()) << again.status();
  // One channel may connect by chance, so that the server looks healthy.
  grpc::experimental::ChannelResetConnectionBackoff(channels.begin()->get());
  for (const auto& channel : channels) {
    EXPECT_TRUE(testing::Eventually([&channel] {
      return channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
    }));
  }
}

TEST_F(SetClockTest, ACheckOfASilentPortEnds) {
  const testing::SilentListener listener;
  const PortCheck check(StrCat("127.0.0.1:", listener.port()), nullptr);
  const SteadyTime start = SteadyNow();
  auto answer = std::async(std::launch::async,
                           [&] { return check.Ask(absl::Seconds(1)); });
  listener.AwaitConnection();
  SetBack();
  const absl::Status status = answer.get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_LT(SteadyNow() - start, kPatience);
}

// A source with one server, whose Sample calls a script answers.
class SetClockSourceTest : public SetClockTest {
 protected:
  using Writer = ScriptedSampler::Writer;

  void Connect(ScriptedSampler::Script script, absl::Duration call_timeout) {
    server_ =
        std::make_unique<ScriptedSampler>(servers_.Stub(0), std::move(script));
    RemoteOptions options;
    options.servers = server_->address();
    options.call_timeout = call_timeout;
    auto source = RemoteBatchSource::Connect(options);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    JobSpec spec;
    spec.fanouts = {2};
    spec.batch_size = 4;
    auto job = ResolveJob(spec, source_->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
  }

  // Ends both sides; afterwards the script no longer runs.
  void Close() {
    source_.reset();
    server_.reset();
  }

  std::unique_ptr<ScriptedSampler> server_;
  std::unique_ptr<RemoteBatchSource> source_;
  ResolvedJob job_;
};

TEST_F(SetClockSourceTest, AHangingCallIsRepeated) {
  Notification hangs, release;
  Connect(
      [&](int number, const v1::SampleRequest& request, Writer& out) {
        if (number > 0) return server_->Pass(request, out);
        hangs.Notify();
        release.WaitForNotification();
        return grpc::Status::OK;
      },
      absl::Seconds(1));
  const SteadyTime start = SteadyNow();
  testing::PendingFetch fetch(*source_, job_, {});
  hangs.WaitForNotification();
  SetBack();
  EXPECT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
  EXPECT_LT(SteadyNow() - start, kPatience);
  release.Notify();
  Close();
}

TEST_F(SetClockSourceTest, AFailedCallIsRepeated) {
  Notification failed;
  Connect(
      [&](int number, const v1::SampleRequest& request, Writer& out) {
        if (number > 0) return server_->Pass(request, out);
        failed.Notify();
        return ToGrpcStatus(
            WithErrorInfo(absl::UnavailableError("not now"),
                          {.partition = 0, .retry_after = absl::Seconds(1)}));
      },
      absl::Minutes(1));
  const SteadyTime start = SteadyNow();
  testing::PendingFetch fetch(*source_, job_, {});
  failed.WaitForNotification();
  ASSERT_TRUE(EventuallyThoughSetBack([&] { return fetch.done(); }));
  EXPECT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
  EXPECT_LT(SteadyNow() - start, kPatience);
  Close();
}

}  // namespace
}  // namespace millrace
