// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/host_port.h"

struct mg_connection;
struct mg_context;

namespace millrace {

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  // What a browser may load or run for the page: nothing, unless it says so.
  std::string content_security_policy =
      "default-src 'none'; frame-ancestors 'none'";
  std::string body;
};

// Makes a page. Runs on a thread of the server and may take a few seconds.
using HttpPage = std::function<HttpResponse()>;
using HttpPages = std::map<std::string, HttpPage>;  // by path, e.g. "/metrics"

// A small HTTP/1.1 server for the few pages that monitoring programs read: GET
// and HEAD, one request per connection, no TLS. CivetWeb does the work.
//
// Each client occupies a thread while it is served, and has 1 s to send its
// request. While all threads are occupied by silent clients, others queue: 300
// silent clients delay an answer by 2 s.
//
// Threads: several pages may run at once.
class HttpServer {
 public:
  // Returns a server that already accepts requests. `field`, such as
  // "metrics", is the field that errors name.
  // UNAVAILABLE: cannot listen (names the address and the cause).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HostPort& address, const std::string& field, HttpPages pages);
  // Closes all connections and waits for pages that are being made; takes up to
  // 2 s.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "HOST:PORT" with the real port.
  const std::string& address() const { return address_; }

 private:
  explicit HttpServer(HttpPages pages);
  absl::Status Listen(const HostPort& address, const std::string& field);
  static int Answer(mg_connection* connection);

  const HttpPages pages_;
  std::string address_;
  mg_context* context_ = nullptr;  // null until started
};

}  // namespace millrace
