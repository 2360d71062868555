// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "server/server.h"

namespace millrace {

// The pages that a server offers over HTTP: / for people, and /status.json that
// it shows; for Prometheus and probes, /metrics; /healthz, whether its gRPC
// port answers; /readyz, whether it also accepts new work. See
// docs/protocol.md, section 8.
// States: starting -> serving. Probes that report a problem answer 503 with one
// line; /metrics always answers.
// Threads: any.
class StatusPages {
 public:
  // Returns pages that are already served. Fails like HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<StatusPages>> Start(
      const HostPort& address);
  StatusPages(const StatusPages&) = delete;
  StatusPages& operator=(const StatusPages&) = delete;

  // The pages report on `server` from now on, and share ownership of it.
  void SetServer(std::shared_ptr<SamplerServer> server);

  // "HOST:PORT" with the actual port.
  const std::string& address() const { return http_->address(); }

 private:
  StatusPages() = default;
  std::shared_ptr<SamplerServer> server() const;
  HttpResponse Status() const;
  HttpResponse Metrics() const;
  HttpResponse Health() const;
  HttpResponse Readiness() const;

  mutable Mutex mutex_;
  // Shared with the program. Null while starting.
  std::shared_ptr<SamplerServer> server_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<HttpServer> http_;  // last, as its pages use all of the above
};

}  // namespace millrace
