// SPDX-License-Identifier: Apache-2.0
#include "server/status_pages.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/http/status_page.h"
#include "common/metrics/families.h"
#include "common/metrics/process_metrics.h"
#include "server/core/scraped.h"

namespace millrace {
namespace {

// How long a probe waits for the server's answer. (Kubernetes waits 1 s for a
// probe by default.)
constexpr absl::Duration kAnswerTimeout = absl::Seconds(2);

HttpResponse Yes(const std::string& what) {
  HttpResponse response;
  response.body = StrCat(what, "\n");
  return response;
}

HttpResponse No(const std::string& why) {
  HttpResponse response = Yes(why);
  response.status = 503;
  return response;
}

HttpResponse Starting() { return No("starting: the store is being opened"); }

// The metrics of a server that has no store yet.
std::string MetricsAtStart() {
  MetricFamilies all = ProcessMetrics();
  AddFamilies({ReadyFamily(false), DrainingFamily(false)}, all);
  return PrintMetrics(all);
}

HttpResponse Answers(const SamplerServer& server, const std::string& what) {
  if (server.HasFailedDevice()) {
    return No("a GPU has failed: restart this server");
  }
  const absl::Status status = server.CheckPort(kAnswerTimeout);
  if (status.ok()) return Yes(what);
  return No(StrCat(server.address(), " does not answer: ", status.ToString()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StatusPages>> StatusPages::Start(
    const HostPort& address) {
  std::unique_ptr<StatusPages> made(new StatusPages);
  const StatusPages& pages = *made;
  MILLRACE_ASSIGN_OR_RETURN(
      made->http_,
      HttpServer::Start(address, "metrics",
                        {{"/", StatusPage},
                         {"/status.json", [&pages] { return pages.Status(); }},
                         {"/metrics", [&pages] { return pages.Metrics(); }},
                         {"/healthz", [&pages] { return pages.Health(); }},
                         {"/readyz", [&pages] { return pages.Readiness(); }}}));
  return made;
}

void StatusPages::SetServer(std::shared_ptr<SamplerServer> server) {
  MutexLock lock(&mutex_);
  server_ = std::move(server);
}

std::shared_ptr<SamplerServer> StatusPages::server() const {
  MutexLock lock(&mutex_);
  return server_;
}

HttpResponse StatusPages::Status() const {
  const auto server = this->server();
  return StatusJson(server == nullptr ? PrintStartingStatus()
                                      : PrintFleetStatus(server->Status()));
}

HttpResponse StatusPages::Metrics() const {
  const auto server = this->server();
  HttpResponse response;
  response.type = std::string(kMetricsContentType);
  response.body = server == nullptr ? MetricsAtStart() : server->Metrics();
  return response;
}

HttpResponse StatusPages::Health() const {
  const auto server = this->server();
  return server == nullptr ? Starting() : Answers(*server, "ok");
}

HttpResponse StatusPages::Readiness() const {
  const auto server = this->server();
  if (server == nullptr) return Starting();
  if (server->draining()) return No("draining");
  if (!server->HasIntactPartition()) {
    return No("damaged: the log names the file");
  }
  return Answers(*server, server->IsLeafOnly()
                              ? "ready for leaf calls only: this server has "
                                "some partitions and no peers"
                              : "ready");
}

}  // namespace millrace
