// SPDX-License-Identifier: Apache-2.0
#include "common/net/http_request.h"

#include <gtest/gtest.h>

#include <string>

namespace millrace {
namespace {

int ErrorOf(const std::string& bytes) {
  const auto request = ReadHttpRequest(bytes);
  return request.has_value() ? request->error : -1;
}

std::string PathOf(const std::string& target) {
  const auto request = ReadHttpRequest("GET " + target + " HTTP/1.0\r\n\r\n");
  return request.has_value() ? request->path : "";
}

TEST(ReadHttpRequestTest, ReadsMethodAndPath) {
  const auto request = ReadHttpRequest(
      "HEAD /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nmore");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->error, 0);
  EXPECT_EQ(request->method, "HEAD");
  EXPECT_EQ(request->path, "/metrics");
}

TEST(ReadHttpRequestTest, LeavesOutHostAndQuery) {
  EXPECT_EQ(PathOf("/metrics?name=x"), "/metrics");
  EXPECT_EQ(PathOf("http://host:1/healthz?x"), "/healthz");
  EXPECT_EQ(PathOf("http://host"), "/");
  EXPECT_EQ(PathOf("http://"), "/");
  EXPECT_EQ(PathOf("*"), "*");
}

TEST(ReadHttpRequestTest, WaitsForTheEndOfTheHead) {
  const std::string whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(ReadHttpRequest(whole.substr(0, bytes)).has_value()) << bytes;
  }
  EXPECT_TRUE(ReadHttpRequest(whole).has_value());
}

TEST(ReadHttpRequestTest, RefusesWhatIsNotHttp1) {
  for (const char* line :
       {"", " ", "GET", "GET /", "GET HTTP/1.1", " / HTTP/1.1", "GET  HTTP/1.1",
        "GET / FTP/1.1", "\x16\x03\x01"}) {
    EXPECT_EQ(ErrorOf(std::string(line) + "\r\n\r\n"), 400) << line;
  }
  EXPECT_EQ(ErrorOf("PRI * HTTP/2.0\r\n\r\n"), 505);
}

TEST(ReadHttpRequestTest, RefusesALongHead) {
  const std::string line = "GET / HTTP/1.1\r\nX: ";
  const std::string filler(kMaxHttpHeadBytes - line.size(), 'x');
  EXPECT_EQ(ErrorOf(line + filler), 431);
  EXPECT_EQ(ErrorOf(line + filler.substr(1)), -1);
}

}  // namespace
}  // namespace millrace
