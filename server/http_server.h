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
  std::string body;
};

// Makes a page, on a thread of the server; it may take a few seconds.
using HttpPage = std::function<HttpResponse()>;
using HttpPages = std::map<std::string, HttpPage>;  // by path: "/metrics"

// An HTTP/1.1 server of a few pages for the programs that watch this one: GET
// and HEAD, one request for each connection, no TLS. CivetWeb does the work.
//
// A client has a thread of its own while it is served, and 1 s to send its
// request. While all threads are taken by clients that send nothing, others
// wait their turn: 300 silent clients delay an answer by 2 s.
//
// Threads: pages run on several at a time.
class HttpServer {
 public:
  // Serves from the moment it returns. `option`, such as "--metrics", is for
  // messages.
  // UNAVAILABLE: cannot listen (names the address and the cause).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HostPort& address, const std::string& option, HttpPages pages);
  // Closes all connections, and waits for pages that are being made. Takes up
  // to 2 s.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "HOST:PORT" with the real port.
  const std::string& address() const { return address_; }

 private:
  explicit HttpServer(HttpPages pages);
  absl::Status Listen(const HostPort& address, const std::string& option);
  static int Answer(mg_connection* connection);

  const HttpPages pages_;
  std::string address_;
  mg_context* context_ = nullptr;  // null: not started
};

}  // namespace millrace
