// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/host_port.h"

namespace millrace {

struct HttpResponse {
  int status = 200;  // 200 or 503
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// Makes a page, on a thread of the server; it may take a few seconds.
using HttpPage = std::function<HttpResponse()>;
using HttpPages = std::map<std::string, HttpPage>;  // by path: "/metrics"

struct HttpServerOptions {
  int threads = 4;            // that make pages
  int max_connections = 128;  // open ones
  // How long a client may take to send its request, and to take the answer.
  absl::Duration request_timeout = absl::Seconds(5);
  absl::Duration answer_timeout = absl::Seconds(10);
};

// An HTTP/1.1 server of a few pages for the programs that watch this one: GET
// and HEAD, one request for each connection, no TLS.
//
// One thread reads from all clients and writes to them, so none of them waits
// for another that is slow or silent; pages are made on threads of their own.
// When there are too many connections, a new one replaces the one that has
// sent no request for longest.
//
// Threads: pages run on several at a time.
class HttpServer {
 public:
  // Serves from the moment it returns. `option`, such as "--metrics", is for
  // messages. Errors of ListeningSocket::Open.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const HostPort& address, const std::string& option, HttpPages pages,
      const HttpServerOptions& options = HttpServerOptions());
  // Closes all connections, and waits for pages that are being made.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "HOST:PORT" with the real port.
  const std::string& address() const;

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
};

}  // namespace millrace
