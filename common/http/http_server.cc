// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <civetweb.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// CivetWeb's settings. Each client occupies a thread until it has sent its
// request, at most 1 s; further connections wait in the kernel's queue.
constexpr const char* kThreads = "128";
constexpr const char* kRequestTimeoutMs = "1000";
constexpr const char* kBacklog = "1024";
constexpr const char* kMaxRequestBytes = "8192";

// The address in CivetWeb's notation, where "+PORT" means every IPv6 and IPv4
// address.
std::string ListeningPort(const HostPort& address) {
  return address.host == "::" ? StrCat("+", address.port)
                              : address.WithPort(address.port);
}

// Returns why CivetWeb, as it was built, cannot listen on the address; empty if
// it can.
std::string Obstacle(const HostPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 && mg_check_feature(MG_FEATURES_IPV6) == 0
             ? "CivetWeb, which serves it, was built without IPv6"
             : "";
}

absl::Status CannotListen(const HostPort& address, const std::string& field,
                          std::string_view cause) {
  return WithAdvice(
      FieldStatus(absl::StatusCode::kUnavailable,
                  {.field = field,
                   .value = address.WithPort(address.port),
                   .limit = StrCat("cannot listen there: ", cause)}),
      "give an IPv4 address of this host and a free port (`ss -tln` shows "
      "those in use); port 0 picks a free one");
}

void Send(mg_connection* connection, const HttpResponse& response) {
  const std::string length = StrCat(response.body.size());
  const auto add = [connection](const char* name, std::string_view value) {
    mg_response_header_add(connection, name, value.data(),
                           static_cast<int>(value.size()));
  };
  mg_response_header_start(connection, response.status);
  add("Content-Type", response.type);
  add("Content-Length", length);
  add("Content-Security-Policy", response.content_security_policy);
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cache-Control", "no-store");
  add("Connection", "close");
  if (response.status == 405) add("Allow", "GET, HEAD");
  mg_response_header_send(connection);
  if (std::string_view("HEAD") !=
      mg_get_request_info(connection)->request_method) {
    mg_write(connection, response.body.data(), response.body.size());
  }
}

HttpResponse Refusal(int status) {
  HttpResponse response;
  response.status = status;
  response.body = status == 404 ? "there is no such page\n"
                                : "only GET and HEAD are allowed\n";
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const HostPort& address, const std::string& field, HttpPages pages) {
  std::unique_ptr<HttpServer> made(new HttpServer(std::move(pages)));
  MILLRACE_RETURN_IF_ERROR(made->Listen(address, field));
  return made;
}

HttpServer::HttpServer(HttpPages pages) : pages_(std::move(pages)) {
  mg_init_library(MG_FEATURES_DEFAULT);
}

HttpServer::~HttpServer() {
  if (context_ != nullptr) mg_stop(context_);
  mg_exit_library();
}

absl::Status HttpServer::Listen(const HostPort& address,
                                const std::string& field) {
  const std::string obstacle = Obstacle(address);
  if (!obstacle.empty()) return CannotListen(address, field, obstacle);
  const std::string port = ListeningPort(address);
  const char* options[] = {"listening_ports",
                           port.c_str(),
                           "num_threads",
                           kThreads,
                           "request_timeout_ms",
                           kRequestTimeoutMs,
                           "listen_backlog",
                           kBacklog,
                           "max_request_size",
                           kMaxRequestBytes,
                           "enable_keep_alive",
                           "no",
                           nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = Answer;
  mg_init_data init = {.callbacks = &callbacks,
                       .user_data = this,
                       .configuration_options = options};
  char text[256] = "";
  unsigned code = 0;
  mg_error_data error = {
      .code = &code, .text = text, .text_buffer_size = sizeof text};
  errno = 0;
  context_ = mg_start2(&init, &error);
  if (context_ == nullptr) {
    return CannotListen(address, field,
                        errno == 0 ? text : std::strerror(errno));
  }
  mg_server_port listening{};
  mg_get_server_ports(context_, 1, &listening);
  address_ = address.WithPort(listening.port);
  return absl::OkStatus();
}

// Answers every request itself, so that CivetWeb never looks for files.
int HttpServer::Answer(mg_connection* connection) {
  // Otherwise CivetWeb goes on reading the request's body after the answer, for
  // as long as the client sends a byte per second.
  mg_disable_connection_keep_alive(connection);
  const mg_request_info& request = *mg_get_request_info(connection);
  const auto& server = *static_cast<HttpServer*>(request.user_data);
  const std::string_view method = request.request_method;
  const auto page = server.pages_.find(request.local_uri);
  const HttpResponse response = page == server.pages_.end() ? Refusal(404)
                                : method == "GET" || method == "HEAD"
                                    ? page->second()
                                    : Refusal(405);
  Send(connection, response);
  return response.status;
}

}  // namespace millrace
