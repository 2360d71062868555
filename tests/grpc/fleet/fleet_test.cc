// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/wire/error_info.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using testing::Eventually;
using testing::FleetHarness;
using ::testing::HasSubstr;

SteadyTime InTwentySeconds() { return SteadyNow() + absl::Seconds(20); }

FleetOptions ListOf(const std::string& list) {
  FleetOptions options;
  options.list = list;
  return options;
}

TEST(FleetTest, LearnsTheStoreAndItsOwners) {
  FleetHarness servers(testing::SmallGraph(), 2);
  auto fleet = Fleet::Create(ListOf("@" + servers.list()));
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const auto manifest = (*fleet)->WaitForManifest(InTwentySeconds());
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ((*manifest)->schema, servers.store()->schema());
  for (int part = 0; part < 2; ++part) {
    const auto member = (*fleet)->Pick(part, InTwentySeconds());
    ASSERT_TRUE(member.ok()) << member.status();
    EXPECT_EQ((*member)->address, servers.server(part).address());
  }
}

TEST(FleetTest, AwaitsAConditionOfItsMembers) {
  using State = FleetMemberInfo::State;
  FleetHarness servers(testing::SmallGraph(), 1);
  auto fleet = Fleet::Create(ListOf("@" + servers.list()));
  ASSERT_TRUE(fleet.ok());
  const auto is_in = [](State state) {
    return [state](const std::vector<FleetMemberInfo>& members) {
      return members.size() == 1 && members[0].state == state;
    };
  };
  auto members =
      (*fleet)->AwaitMembers(is_in(State::kReady), InTwentySeconds());
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->at(0).state, State::kReady);
  const SteadyTime deadline = SteadyNow() + absl::Milliseconds(300);
  members = (*fleet)->AwaitMembers(is_in(State::kUnreachable), deadline);
  EXPECT_GE(SteadyNow(), deadline);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->at(0).state, State::kReady);
}

TEST(FleetTest, ErrorsNameThePartitionAndWhatWasTried) {
  FleetHarness servers(testing::SmallGraph(), 2);
  auto fleet = Fleet::Create(ListOf(servers.server(0).address()));
  ASSERT_TRUE(fleet.ok());
  ASSERT_TRUE((*fleet)->Pick(0, InTwentySeconds()).ok());
  const absl::Status status =
      (*fleet)->Pick(1, SteadyNow() + absl::Milliseconds(200)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("partition 1"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(servers.server(0).address()));
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
}

TEST(FleetTest, FollowsAServerToItsNewAddress) {
  FleetHarness servers(testing::SmallGraph(), 2);
  auto fleet = Fleet::Create(ListOf("@" + servers.list()));
  ASSERT_TRUE(fleet.ok());
  const auto before = (*fleet)->Pick(1, InTwentySeconds());
  ASSERT_TRUE(before.ok()) << before.status();
  servers.StopServer(1);
  (*fleet)->ReportFailure(**before, absl::UnavailableError("gone"));
  servers.StartServer(1);
  const auto after = (*fleet)->Pick(1, InTwentySeconds());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)->address, servers.server(1).address());
}

TEST(FleetTest, RefusesServersOfAnotherStore) {
  FleetHarness servers(testing::SmallGraph(), 1);
  FleetOptions options = ListOf(servers.server(0).address());
  options.fingerprint = "expected-fingerprint";
  auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok());
  const absl::Status status =
      (*fleet)->Pick(0, SteadyNow() + absl::Seconds(2)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected-fingerprint"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(servers.store()->manifest().fingerprint));
  ASSERT_EQ((*fleet)->Members().size(), 1u);
  EXPECT_EQ((*fleet)->Members()[0].state, FleetMemberInfo::State::kRefused);
}

// The server that answers first must not decide what is trained on.
TEST(FleetTest, RefusesToChooseBetweenTwoStores) {
  FleetHarness small(testing::SmallGraph(), 1);
  FleetHarness rich(testing::RichGraph(), 1);
  FleetOptions options =
      ListOf(small.server(0).address() + "," + rich.server(0).address());
  auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok());
  const absl::Status status =
      (*fleet)->WaitForManifest(InTwentySeconds()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (FleetHarness* harness : {&small, &rich}) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(harness->store()->manifest().fingerprint));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(harness->server(0).address()));
  }
  options.fingerprint = rich.store()->manifest().fingerprint;
  fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok());
  EXPECT_TRUE((*fleet)->WaitForManifest(InTwentySeconds()).ok());
}

// None of the servers that answer can ever join; one that does not answer
// might.
TEST(FleetTest, DoesNotWaitWhenAllAreRefused) {
  FleetHarness servers(testing::SmallGraph(), 1);
  testing::ScriptedSampler newer(servers.Stub(0), {});
  newer.EditDescribe(
      [](v1::DescribeReply& reply) { reply.set_protocol_version(99); });
  auto fleet = Fleet::Create(ListOf(newer.address()));
  ASSERT_TRUE(fleet.ok());
  absl::Status status =
      (*fleet)->WaitForManifest(SteadyTime::InfiniteFuture()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(newer.address() + " has protocol version 99"));

  fleet = Fleet::Create(ListOf(newer.address() + ",127.0.0.1:1"));
  ASSERT_TRUE(fleet.ok());
  status =
      (*fleet)->WaitForManifest(SteadyNow() + absl::Milliseconds(500)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has protocol version 99"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:1: "));
}

// A split was added to only one copy of the store.
TEST(FleetTest, KnowsTheSplitsOfAllMembers) {
  FleetHarness servers(testing::SmallGraph(), 1);
  testing::ScriptedSampler first(servers.Stub(0), {});
  testing::ScriptedSampler second(servers.Stub(0), {});
  first.EditDescribe([](v1::DescribeReply& reply) {
    auto& split = *reply.add_splits();
    split = reply.splits(0);
    split.set_name("mine");
    split.set_fingerprint("ab12");
    reply.mutable_splits(1)->clear_fingerprint();
  });
  second.EditDescribe([](v1::DescribeReply& reply) {
    reply.mutable_splits(0)->set_fingerprint("cd34");
  });
  auto fleet = Fleet::Create(ListOf(first.address() + "," + second.address()));
  ASSERT_TRUE(fleet.ok());
  const auto manifest = (*fleet)->WaitForManifest(InTwentySeconds());
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const Manifest& real = servers.store()->manifest();
  ASSERT_EQ((*manifest)->splits.size(), real.splits.size() + 1);
  const auto mine = (*manifest)->FindSplit(0, "mine");
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ((*manifest)->splits[*mine].identity.fingerprint, "ab12");
  // A member that does not report a fingerprint is taken to agree with the
  // others.
  const auto same = (*manifest)->FindSplit(0, real.splits[1].name);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ((*manifest)->splits[*same], real.splits[1]);
  // Only a job that uses the split is refused.
  const absl::Status differs =
      (*manifest)->FindSplit(0, real.splits[0].name).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(differs)) << differs;
  for (const std::string& part :
       {first.address(), second.address(), std::string("cd34"),
        real.splits[0].identity.fingerprint}) {
    EXPECT_THAT(std::string(differs.message()), HasSubstr(part));
  }
}

TEST(FleetTest, WaitsForTheRightServerBesideAWrongOne) {
  FleetHarness small(testing::SmallGraph(), 1);
  FleetHarness rich(testing::RichGraph(), 1);
  FleetOptions options =
      ListOf(small.server(0).address() + "," + rich.server(0).address());
  options.fingerprint = small.store()->manifest().fingerprint;
  auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok());
  const auto member = (*fleet)->Pick(0, InTwentySeconds());
  ASSERT_TRUE(member.ok()) << member.status();
  small.StopServer(0);
  (*fleet)->ReportFailure(**member, absl::UnavailableError("gone"));
  absl::Status status;
  do {
    status = (*fleet)->Pick(0, SteadyNow() + absl::Milliseconds(500)).status();
  } while (status.ok());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("unreachable"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("another store"));
}

TEST(FleetTest, PrefersLessLoadedMembers) {
  FleetHarness first(testing::SmallGraph(), 1);
  auto replica = SamplerServer::Start(first.store(), ServerOptions());
  ASSERT_TRUE(replica.ok());
  auto fleet = Fleet::Create(
      ListOf(first.server(0).address() + "," + (*replica)->address()));
  ASSERT_TRUE(fleet.ok());
  std::vector<std::shared_ptr<FleetMember>> owners;
  while (owners.size() < 2) {
    ASSERT_TRUE((*fleet)->Pick(0, InTwentySeconds()).ok());
    owners = (*fleet)->Owners(0);
  }
  owners[0]->outstanding_bytes = 1000;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(*(*fleet)->Pick(0, InTwentySeconds()), owners[1]);
  }
  EXPECT_EQ(*(*fleet)->Pick(0, InTwentySeconds(), {owners[1].get()}),
            owners[0]);
  EXPECT_TRUE(absl::IsUnavailable(
      (*fleet)
          ->Pick(0, InTwentySeconds(), {owners[0].get(), owners[1].get()})
          .status()));
}

TEST(FleetTest, DrainingMembersAreALastResort) {
  FleetHarness servers(testing::SmallGraph(), 1);
  auto draining = SamplerServer::Start(servers.store(), ServerOptions());
  ASSERT_TRUE(draining.ok()) << draining.status();
  ASSERT_TRUE((*draining)->Drain(absl::Seconds(20)));
  const std::string ready = servers.server(0).address();
  auto fleet = Fleet::Create(ListOf((*draining)->address() + "," + ready));
  ASSERT_TRUE(fleet.ok());
  std::vector<std::shared_ptr<FleetMember>> owners;
  while (owners.size() < 2) {
    ASSERT_TRUE((*fleet)->Pick(0, InTwentySeconds()).ok());
    owners = (*fleet)->Owners(0);
  }
  EXPECT_EQ(owners[0]->address, ready);
  EXPECT_EQ(owners[1]->address, (*draining)->address());
  owners[0]->outstanding_bytes = 1000;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(*(*fleet)->Pick(0, InTwentySeconds()), owners[0]);
  EXPECT_EQ(*(*fleet)->Pick(0, InTwentySeconds(), {owners[0].get()}),
            owners[1]);
}

// Two ready replicas, one of which forwards what the other answers.
class TwoReplicasTest : public ::testing::Test {
 protected:
  TwoReplicasTest()
      : real_(testing::SmallGraph(), 1),
        scripted_(real_.Stub(0), {}),
        list_((testing::TestDirectory("fleet_list") / "servers").string()) {
    WriteList({scripted_.address(), real_.server(0).address()});
    FleetOptions options = ListOf("@" + list_);
    options.file_interval = absl::Milliseconds(20);
    auto fleet = Fleet::Create(options);
    EXPECT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
    EXPECT_TRUE(Eventually([&] { return fleet_->Owners(0).size() == 2; }));
  }

  // Replaces the list atomically.
  void WriteList(const std::vector<std::string>& addresses) const {
    std::ofstream file(list_ + ".new");
    for (const std::string& address : addresses) file << address << '\n';
    file.close();
    std::filesystem::rename(list_ + ".new", list_);
  }

  std::shared_ptr<FleetMember> MemberAt(const std::string& address) const {
    for (const auto& owner : fleet_->Owners(0)) {
      if (owner->address == address) return owner;
    }
    ADD_FAILURE() << address << " is not an owner";
    return nullptr;
  }
  std::shared_ptr<FleetMember> scripted() const {
    return MemberAt(scripted_.address());
  }
  std::shared_ptr<FleetMember> real() {
    return MemberAt(real_.server(0).address());
  }

  // Refuses a call, like a server whose memory is all reserved.
  void Refuse(const FleetMember& member, absl::Duration retry_after) const {
    fleet_->ReportFailure(
        member,
        WithErrorInfo(absl::ResourceExhaustedError("busy"),
                      {.partition = std::nullopt, .retry_after = retry_after}));
  }

  FleetHarness real_;
  testing::ScriptedSampler scripted_;
  const std::string list_;
  std::unique_ptr<Fleet> fleet_;
};

// A call may be cancelled because its member was lost, for example; others that
// wait for the member's answer must still learn of it.
TEST_F(TwoReplicasTest, IgnoresFailuresOfLostMembers) {
  const auto member = real();
  real_.StopServer(0);
  fleet_->ReportFailure(*member, absl::UnavailableError("gone"));
  EXPECT_TRUE(Eventually([&] { return fleet_->IsLost(*member); }));
  for (int i = 0; i < 100; ++i) {
    fleet_->ReportFailure(*member, absl::UnavailableError("gone"));
    EXPECT_TRUE(fleet_->IsLost(*member));
  }
}

TEST_F(TwoReplicasTest, AvoidsBusyMembersForAsLongAsTheyAsk) {
  const auto busy = scripted(), free = real();
  free->outstanding_bytes = 1000;
  EXPECT_EQ(*fleet_->Pick(0, InTwentySeconds()), busy);
  Refuse(*busy, absl::Milliseconds(1));
  EXPECT_TRUE(
      Eventually([&] { return *fleet_->Pick(0, InTwentySeconds()) == busy; }));
  Refuse(*busy, absl::Hours(1));
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(*fleet_->Pick(0, InTwentySeconds()), free);
  EXPECT_FALSE(fleet_->IsLost(*busy));
  // A busy member is better than none.
  EXPECT_EQ(*fleet_->Pick(0, InTwentySeconds(), {free.get()}), busy);
}

TEST_F(TwoReplicasTest, RepeatedlyBusyMembersAreAvoidedLonger) {
  const auto busy = scripted(), free = real();
  free->outstanding_bytes = 1000;
  const SteadyTime start = SteadyNow();
  for (int i = 0; i < 5; ++i) {
    // Calls sent together are refused together.
    for (int j = 0; j < 4; ++j) Refuse(*busy, absl::Milliseconds(20));
    EXPECT_TRUE(Eventually(
        [&] { return *fleet_->Pick(0, InTwentySeconds()) == busy; }));
  }
  // 20 ms at first, and 16 times that at the end.
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(31 * 20));
}

// Every silent call checks ten times a second.
TEST_F(TwoReplicasTest, SuspectsThatHaveJustAnsweredAreNotAskedAgain) {
  const auto member = scripted();
  const int before = scripted_.describes();
  const SteadyTime start = SteadyNow();
  while (SteadyNow() < start + absl::Seconds(1)) {
    fleet_->Suspect(*member);
    std::this_thread::yield();
  }
  const double halves = (SteadyNow() - start) / absl::Milliseconds(500);
  EXPECT_GT(scripted_.describes(), before);
  EXPECT_LE(scripted_.describes() - before, halves + 2);
}

TEST_F(TwoReplicasTest, MemberTooBusyToDescribeItselfIsNotLost) {
  const auto member = scripted();
  scripted_.OnDescribe([] {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "busy");
  });
  const int before = scripted_.describes();
  EXPECT_TRUE(Eventually([&] {
    fleet_->Suspect(*member);
    EXPECT_FALSE(fleet_->IsLost(*member));
    return scripted_.describes() >= before + 3;
  }));
  EXPECT_EQ(fleet_->Owners(0).size(), 2u);
}

// Removing a line from the file must not end any call.
TEST_F(TwoReplicasTest, RemovedMembersLiveUntilReleased) {
  auto member = scripted();
  const std::weak_ptr<grpc::Channel> channel = member->channels.Next();
  WriteList({real_.server(0).address()});
  EXPECT_TRUE(Eventually([&] { return fleet_->Members().size() == 1; }));
  EXPECT_EQ(*fleet_->Pick(0, InTwentySeconds()), real());
  EXPECT_FALSE(fleet_->IsLost(*member));
  // It is still asked, and so its loss is noticed.
  const int before = scripted_.describes();
  EXPECT_TRUE(Eventually([&] {
    fleet_->Suspect(*member);
    return scripted_.describes() > before;
  }));
  EXPECT_FALSE(fleet_->IsLost(*member));
  Notification end;
  scripted_.OnDescribe([&end] {
    end.WaitForNotification();
    return grpc::Status::OK;
  });
  EXPECT_TRUE(Eventually([&] {
    fleet_->Suspect(*member);
    return fleet_->IsLost(*member);
  }));
  end.Notify();
  scripted_.OnDescribe({});
  EXPECT_TRUE(Eventually([&] { return !fleet_->IsLost(*member); }));
  // If it comes back, it is the same member.
  WriteList({scripted_.address(), real_.server(0).address()});
  EXPECT_TRUE(Eventually([&] { return fleet_->Owners(0).size() == 2; }));
  EXPECT_EQ(scripted(), member);
  WriteList({real_.server(0).address()});
  EXPECT_TRUE(Eventually([&] { return fleet_->Members().size() == 1; }));
  member.reset();
  EXPECT_TRUE(Eventually([&] { return channel.expired(); }));
}

TEST(FleetTest, EndsWhileItAsks) {
  // Nothing listens there: whenever the fleet ends, some calls are in flight.
  for (int i = 0; i < 20; ++i) {
    auto fleet = Fleet::Create(ListOf("127.0.0.1:1,127.0.0.1:2"));
    ASSERT_TRUE(fleet.ok());
    (void)(*fleet)->Owners(0);
  }
}

TEST(FleetTest, ReadsTheListAgainForCallersThatAwaitIt) {
  const auto path = testing::TestDirectory("fleet_list") / "servers";
  std::ofstream(path) << "127.0.0.1:1\n";
  FleetOptions options = ListOf("@" + path.string());
  options.file_interval = absl::Hours(1);
  auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok());
  for (const char* list : {"127.0.0.1:1\n127.0.0.1:2\n", "127.0.0.1:3\n"}) {
    ASSERT_TRUE(
        (*fleet)->AwaitList(SteadyTime::InfinitePast(), InTwentySeconds()));
    std::ofstream(path) << list;
    const SteadyTime written = SteadyNow();
    EXPECT_TRUE((*fleet)->AwaitList(written, InTwentySeconds()));
    const auto count = std::count(list, list + std::strlen(list), '\n');
    EXPECT_EQ((*fleet)->Members().size(), static_cast<size_t>(count));
  }
  // If the list cannot be read, the servers known so far remain.
  std::filesystem::remove(path);
  EXPECT_TRUE((*fleet)->AwaitList(SteadyNow(), InTwentySeconds()));
  EXPECT_EQ((*fleet)->Members().size(), 1u);
}

TEST(FleetTest, ListsOfAddressesNeedNoReading) {
  auto fleet = Fleet::Create(ListOf("127.0.0.1:1"));
  ASSERT_TRUE(fleet.ok());
  EXPECT_TRUE((*fleet)->AwaitList(SteadyNow(), SteadyTime::InfinitePast()));
}

// A pipe that nothing writes to blocks its reader, like a dead name server.
TEST(FleetTest, EndsWhileItReadsTheList) {
  const auto path = testing::TestDirectory("fleet_list") / "servers";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto fleet = Fleet::Create(ListOf("@" + path.string()));
  ASSERT_TRUE(fleet.ok());
  // Opens when something reads the pipe; the look-up left behind ends when it
  // is closed.
  const std::ofstream no_answer(path);
  ASSERT_TRUE(no_answer.is_open());
  EXPECT_TRUE((*fleet)->Owners(0).empty());
  const SteadyTime start = SteadyNow();
  fleet->reset();
  EXPECT_LT(SteadyNow() - start, absl::Seconds(20));
}

// Otherwise the last channel might be destroyed in a callback of gRPC, which is
// fatal.
TEST(FleetTest, WaitsForMembersAndEndsTheirChannelsItself) {
  FleetHarness servers(testing::SmallGraph(), 1);
  auto fleet = Fleet::Create(ListOf("@" + servers.list()));
  ASSERT_TRUE(fleet.ok());
  auto member = (*fleet)->Pick(0, InTwentySeconds());
  ASSERT_TRUE(member.ok()) << member.status();
  const std::weak_ptr<::grpc::Channel> channel = (*member)->channels.Next();
  Notification ended;
  std::thread end([&] {
    fleet->reset();
    ended.Notify();
  });
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(absl::Milliseconds(200)));
  member->reset();
  end.join();
  EXPECT_TRUE(channel.expired());
}

TEST(FleetTest, AsksMembersWhileItReadsTheList) {
  FleetHarness servers(testing::SmallGraph(), 1);
  const auto path = testing::TestDirectory("fleet_list") / "servers";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  FleetOptions options = ListOf("@" + path.string());
  options.file_interval = absl::Milliseconds(10);
  auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok());
  std::ofstream(path) << servers.server(0).address() << '\n';
  auto before = (*fleet)->Pick(0, InTwentySeconds());
  ASSERT_TRUE(before.ok()) << before.status();
  // Opens when the list is read again, and blocks that until it is closed.
  const std::ofstream no_answer(path);
  ASSERT_TRUE(no_answer.is_open());
  (*fleet)->ReportFailure(**before, absl::UnavailableError("gone"));
  auto after = (*fleet)->Pick(0, InTwentySeconds());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*after, *before);
  before->reset();
  after->reset();
  fleet->reset();  // so that no read follows the current one
}

}  // namespace
}  // namespace millrace
