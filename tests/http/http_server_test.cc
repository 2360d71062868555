// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "tests/support/socket_client.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::HttpGet;
using ::testing::Not;
using testing::SocketClient;
using ::testing::StartsWith;

constexpr char kGetPage[] = "GET /page HTTP/1.1\r\nHost: test\r\n\r\n";

HttpPages OnePage(const std::string& body = "a page\n") {
  return {{"/page", [body] {
             HttpResponse response;
             response.body = body;
             return response;
           }}};
}

std::unique_ptr<HttpServer> Start(HttpPages pages) {
  auto server =
      HttpServer::Start({"127.0.0.1", 0}, "metrics", std::move(pages));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

int PortOf(const HttpServer& server) {
  return ParseHostPort(server.address())->port;
}

std::string Ask(const HttpServer& server, const std::string& bytes) {
  const SocketClient client(PortOf(server));
  client.Send(bytes);
  return client.ReadAll();
}

TEST(HttpServerTest, AnswersGetAndHead) {
  const auto server = Start(OnePage());
  const auto head =
      AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
            HasSubstr("\r\nContent-Type: text/plain; charset=utf-8\r\n"),
            HasSubstr("\r\nContent-Length: 7\r\n"),
            HasSubstr("\r\nCache-Control: no-store\r\n"),
            HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(Ask(*server, kGetPage),
              AllOf(head, EndsWith("\r\n\r\na page\n")));
  EXPECT_THAT(Ask(*server, "HEAD /page?x=1 HTTP/1.1\r\n\r\n"),
              AllOf(head, EndsWith("\r\n\r\n")));
}

TEST(HttpServerTest, RefusesTheRest) {
  const auto server = Start(OnePage());
  for (const char* path : {"/pages", "/page/more", "/", "/etc/passwd"}) {
    EXPECT_THAT(HttpGet(PortOf(*server), path),
                StartsWith("HTTP/1.1 404 Not Found\r\n"));
  }
  EXPECT_THAT(Ask(*server, "HEAD / HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n"));
  const std::string post =
      Ask(*server, "POST /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(post, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(Ask(*server, "hello\r\n\r\n"), HasSubstr(" 400 Bad Request\r\n"));
  EXPECT_THAT(Ask(*server, "GET / HTTP/3\r\n\r\n"), HasSubstr(" 505 HTTP "));
  EXPECT_THAT(Ask(*server, "GET /page HTTP/1.1\r\nX: " +
                               std::string(9000, 'x') + "\r\n\r\n"),
              Not(HasSubstr("a page")));
}

TEST(HttpServerTest, SilentClientsDoNotBlockOthers) {
  const auto server = Start(OnePage());
  const auto silent = testing::SilentClients(PortOf(*server), 300, "127.0.0.2");
  const SteadyTime start = SteadyNow();
  EXPECT_THAT(HttpGet(PortOf(*server), "/page"), EndsWith("a page\n"));
  RecordProperty(
      "milliseconds",
      std::to_string(absl::ToInt64Milliseconds(SteadyNow() - start)));
  for (const SocketClient& client : silent) EXPECT_TRUE(client.AwaitEnd());
}

TEST(HttpServerTest, SlowBodiesDoNotBlockOthers) {
  const auto server = Start(OnePage());
  std::vector<SocketClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(PortOf(*server), "127.0.0.2");
    clients.back().Send(
        "POST /page HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n");
  }
  Notification answered;
  std::thread sender([&] {
    while (!answered.WaitForNotificationWithTimeout(absl::Milliseconds(100))) {
      for (const SocketClient& client : clients) {
        send(client.fd(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
    }
  });
  EXPECT_THAT(HttpGet(PortOf(*server), "/page"), EndsWith("a page\n"));
  answered.Notify();
  sender.join();
}

TEST(HttpServerTest, EndsARequestThatTakesTooLong) {
  const auto server = Start(OnePage());
  const SocketClient half(PortOf(*server));
  half.Send("GET /page");
  EXPECT_TRUE(half.AwaitEnd());
}

TEST(HttpServerTest, EndsAnAnswerThatIsNotRead) {
  const std::string large(64 << 20, 'x');
  const auto server = Start(OnePage(large));
  const SocketClient client(PortOf(*server));
  client.Send(kGetPage);
  ASSERT_TRUE(client.AwaitReadable());
  // If a byte is still unread when a connection is closed, it is reset.
  client.Send("x");
  pollfd reset = {client.fd(), 0, 0};
  EXPECT_EQ(poll(&reset, 1, 60'000), 1);
  EXPECT_LT(client.ReadAll().size(), large.size());
}

TEST(HttpServerTest, SendsAnAnswerInPieces) {
  const std::string large(16 << 20, 'x');
  const auto server = Start(OnePage(large));
  EXPECT_THAT(Ask(*server, kGetPage), EndsWith("\r\n\r\n" + large));
}

TEST(HttpServerTest, GeneratesPagesConcurrently) {
  Notification asked, go_on;
  HttpPages pages = OnePage();
  pages["/slow"] = [&] {
    asked.Notify();
    go_on.WaitForNotification();
    return HttpResponse{.status = 503, .body = "slow\n"};
  };
  const auto server = Start(std::move(pages));
  const SocketClient slow(PortOf(*server));
  slow.Send("GET /slow HTTP/1.1\r\n\r\n");
  asked.WaitForNotification();
  EXPECT_THAT(HttpGet(PortOf(*server), "/page"), EndsWith("a page\n"));
  go_on.Notify();
  EXPECT_THAT(slow.ReadAll(),
              StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
}

TEST(HttpServerTest, DestructorWaitsForPages) {
  Notification asked, go_on;
  bool made = false;
  HttpPages pages;
  pages["/slow"] = [&] {
    asked.Notify();
    go_on.WaitForNotification();
    made = true;
    return HttpResponse();
  };
  auto server = Start(std::move(pages));
  const SocketClient slow(PortOf(*server));
  slow.Send("GET /slow HTTP/1.1\r\n\r\n");
  asked.WaitForNotification();
  go_on.Notify();
  server.reset();
  EXPECT_TRUE(made);
  EXPECT_TRUE(slow.AwaitEnd());
}

TEST(HttpServerTest, SaysWhyItCannotListen) {
  const auto first = Start(OnePage());
  const auto second =
      HttpServer::Start(*ParseHostPort(first->address()), "metrics", OnePage());
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith("metrics " + first->address() +
                         ": cannot listen there: Address already in use\n"));
}

TEST(HttpServerTest, ListensAtIpv6OrSaysWhyNot) {
  const auto server = HttpServer::Start({"::", 0}, "metrics", OnePage());
  if (server.ok()) {
    EXPECT_THAT(HttpGet(PortOf(**server), "/page"), EndsWith("a page\n"));
    return;
  }
  EXPECT_THAT(std::string(server.status().message()),
              StartsWith("metrics [::]:0: cannot listen there: "));
}

}  // namespace
}  // namespace millrace
