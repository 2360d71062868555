// SPDX-License-Identifier: Apache-2.0
#include "common/net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "tests/support/socket_client.h"

namespace millrace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::HttpGet;
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

std::unique_ptr<HttpServer> Start(HttpPages pages,
                                  const HttpServerOptions& options = {}) {
  auto server = HttpServer::Start({"127.0.0.1", 0}, "--metrics",
                                  std::move(pages), options);
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
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
      "Content-Length: 7\r\nCache-Control: no-store\r\nConnection: close\r\n"
      "\r\n";
  EXPECT_EQ(Ask(*server, kGetPage), head + "a page\n");
  EXPECT_EQ(Ask(*server, "HEAD /page?x=1 HTTP/1.0\r\n\r\n"), head);
}

TEST(HttpServerTest, RefusesTheRest) {
  const auto server = Start(OnePage());
  EXPECT_THAT(HttpGet(PortOf(*server), "/pages"),
              StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Ask(*server, "HEAD / HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n"));
  const std::string post =
      Ask(*server, "POST /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(post, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(Ask(*server, "hello\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, "GET / HTTP/3\r\n\r\n"),
              StartsWith("HTTP/1.1 505 "));
  EXPECT_THAT(Ask(*server, "GET / HTTP/1.1\r\n" + std::string(9000, 'x')),
              StartsWith("HTTP/1.1 431 "));
}

TEST(HttpServerTest, SilentClientsKeepNobodyFromAnAnswer) {
  HttpServerOptions options;
  options.request_timeout = absl::Hours(1);
  const auto server = Start(OnePage(), options);
  const auto silent = testing::SilentClients(PortOf(*server), 300);
  const SocketClient slow(PortOf(*server));
  slow.Send("GET /page HTTP/1.1\r\nHost: ");
  EXPECT_THAT(HttpGet(PortOf(*server), "/page"), EndsWith("a page\n"));
  // Room was made by those that had been silent for longest.
  EXPECT_TRUE(silent.front().AwaitEnd());
  EXPECT_FALSE(silent.back().AwaitReadable(/*timeout_ms=*/0));
  slow.Send("test\r\n\r\n");
  EXPECT_THAT(slow.ReadAll(), EndsWith("a page\n"));
}

TEST(HttpServerTest, EndsARequestThatTakesTooLong) {
  HttpServerOptions options;
  options.request_timeout = absl::Milliseconds(50);
  const auto server = Start(OnePage(), options);
  const SocketClient silent(PortOf(*server));
  const SocketClient half(PortOf(*server));
  half.Send("GET /page");
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(half.ReadAll(), "");
}

TEST(HttpServerTest, EndsAnAnswerThatNobodyTakes) {
  HttpServerOptions options;
  options.answer_timeout = absl::Milliseconds(50);
  const std::string large(64 << 20, 'x');
  const auto server = Start(OnePage(large), options);
  const SocketClient client(PortOf(*server));
  client.Send(kGetPage);
  ASSERT_TRUE(client.AwaitReadable());
  // A connection that is closed with a byte unread is reset.
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

TEST(HttpServerTest, MakesPagesAtTheSameTime) {
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

TEST(HttpServerTest, WaitsForPagesAtItsEnd) {
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
  const auto second = HttpServer::Start(*ParseHostPort(first->address()),
                                        "--metrics", OnePage());
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith("--metrics " + first->address() +
                         ": cannot listen there: Address already in use\n"));
}

}  // namespace
}  // namespace millrace
