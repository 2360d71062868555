// SPDX-License-Identifier: Apache-2.0
#include "server/load/acceptor.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "tests/support/socket_client.h"

namespace millrace {
namespace {

using testing::SocketClient;

// An acceptor whose connections stay open until the test closes them.
class AcceptorTest : public ::testing::Test {
 protected:
  void Start(const ConnectionLimits& limits) {
    auto socket = ListeningSocket::Open({"127.0.0.1", 0}, "listen");
    ASSERT_TRUE(socket.ok()) << socket.status();
    port_ = (*socket)->port();
    acceptor_ = std::make_unique<Acceptor>(
        *std::move(socket), limits, [this](UniqueFd connection) {
          MutexLock lock(&mutex_);
          taken_.push_back(std::move(connection));
          changed_.NotifyAll();
        });
  }

  void AwaitTaken(size_t count) {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(changed_.WaitFor(&mutex_, absl::Minutes(1),
                                 [&] { return taken_.size() >= count; }));
  }

  size_t Taken() {
    MutexLock lock(&mutex_);
    return taken_.size();
  }

  void CloseFirst() {
    MutexLock lock(&mutex_);
    taken_.erase(taken_.begin());
  }

  int port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::vector<UniqueFd> taken_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, HandsOnConnections) {
  Start({.all = 10, .per_address = 10});
  const auto clients = testing::SilentClients(port_, 3);
  AwaitTaken(3);
  EXPECT_EQ(acceptor_->open(), 3);
  EXPECT_EQ(acceptor_->refused(), 0u);
}

TEST_F(AcceptorTest, OneAddressDoesNotCrowdOutOthers) {
  Start({.all = 10, .per_address = 2});
  const auto clients = testing::SilentClients(port_, 5);
  for (size_t i = 2; i < clients.size(); ++i) {
    EXPECT_TRUE(clients[i].AwaitEnd());
  }
  EXPECT_EQ(acceptor_->refused(), 3u);
  const SocketClient other(port_, "127.0.0.2");
  AwaitTaken(3);
  EXPECT_FALSE(other.AwaitReadable(/*timeout_ms=*/0));
  EXPECT_FALSE(clients[1].AwaitReadable(/*timeout_ms=*/0));
}

TEST_F(AcceptorTest, EnforcesTheTotalLimit) {
  Start({.all = 1, .per_address = 10});
  const SocketClient first(port_);
  AwaitTaken(1);
  const SocketClient second(port_, "127.0.0.2");
  EXPECT_TRUE(second.AwaitEnd());
  EXPECT_EQ(acceptor_->refused(), 1u);
  // A client can reconnect after it was refused.
  CloseFirst();
  const SteadyTime end = SteadyNow() + absl::Minutes(1);
  while (Taken() == 0 && SteadyNow() < end) {
    (void)SocketClient(port_).AwaitReadable(/*timeout_ms=*/10);
  }
  EXPECT_EQ(Taken(), 1u);
}

TEST_F(AcceptorTest, ClosesTheNewestConnectionOfTheBusiestAddress) {
  Start({.all = 3, .per_address = 3});
  const auto clients = testing::SilentClients(port_, 3);
  const SocketClient other(port_, "127.0.0.2");
  AwaitTaken(4);
  EXPECT_TRUE(clients[2].AwaitEnd());
  EXPECT_EQ(acceptor_->ended_for_others(), 1u);
  EXPECT_EQ(acceptor_->refused(), 0u);
  for (const SocketClient* client : {&clients[0], &clients[1], &other}) {
    EXPECT_FALSE(client->AwaitReadable(/*timeout_ms=*/0));
  }
}

TEST_F(AcceptorTest, ClosesItsPortWhenItStops) {
  Start({.all = 10, .per_address = 10});
  const SocketClient client(port_);
  AwaitTaken(1);
  acceptor_->Stop();
  EXPECT_FALSE(SocketClient(port_).connected());
  EXPECT_FALSE(client.AwaitReadable(/*timeout_ms=*/0));
  acceptor_->Stop();
  EXPECT_EQ(acceptor_->open(), 1);
}

}  // namespace
}  // namespace millrace
