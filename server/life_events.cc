// SPDX-License-Identifier: Apache-2.0
#include "server/life_events.h"

#include "absl/strings/str_join.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"
#include "common/graph/store.h"
#include "server/load/open_connections.h"
#include "server/server.h"

namespace millrace {
namespace {

std::string ClientAuth(const ServerOptions& options) {
  if (!options.tls.enabled()) return "none";
  return options.clients.require_certificate ? "require" : "none";
}

}  // namespace

void LogStarting(const ServerStart& start) {
  const ServerOptions& options = start.options;
  LogFields fields = {{"version", MILLRACE_VERSION},
                      {"store", start.store},
                      {"partitions", start.partitions},
                      {"listen", options.listen},
                      {"tls", options.tls.enabled() ? "on" : "off"},
                      {"client_auth", ClientAuth(options)},
                      {"graph_memory", WordOf(start.memory.graph)},
                      {"feature_memory", WordOf(start.memory.features)}};
  fields.insert(fields.end(),
                {{"verify", start.verify},
                 {"scrub_bytes_per_second", options.scrub_bytes_per_second},
                 {"drain_timeout", start.drain_timeout}});
  if (!options.clients.allow.empty()) {
    fields.push_back({"tls_allow", absl::StrJoin(options.clients.allow, ",")});
  }
  if (!options.advertise.empty()) {
    fields.push_back({"advertise", options.advertise});
  }
  if (!start.metrics.empty()) fields.push_back({"metrics", start.metrics});
  if (!options.peers.empty()) fields.push_back({"peers", options.peers});
  if (options.trace_slow > absl::ZeroDuration()) {
    fields.push_back({"trace_slow", absl::FormatDuration(options.trace_slow)});
  }
  LogInfo(LogComponent::kServer, "starting", fields);
}

void LogServing(const SamplerServer& server, const Store& store,
                const std::string& address, absl::Duration loading) {
  const ServerOptions& options = server.options();
  const ConnectionLimits connections = DecideLimits(options.connections);
  LogInfo(LogComponent::kServer, "serving",
          {{"partitions", absl::StrJoin(store.mapped_partitions(), ",")},
           {"parts", store.partition_count()},
           {"address", address},
           {"store_uuid", store.manifest().uuid},
           {"fingerprint", store.manifest().fingerprint},
           {"threads", options.threads},
           {"max_inflight_bytes", options.max_inflight_bytes},
           {"max_connections", connections.all},
           {"max_connections_per_address", connections.per_address},
           {"seconds", LogSeconds(loading)}});
}

void LogEnded(const absl::Status& status, absl::Duration uptime) {
  const bool stopped =
      status.ok() || (absl::IsCancelled(status) && Interrupted());
  const LogFields fields = {
      {"why", stopped ? InterruptName() : FirstLine(status)},
      {"uptime_seconds", LogSeconds(uptime)}};
  if (stopped) {
    LogInfo(LogComponent::kServer, "ended", fields);
  } else {
    LogError(LogComponent::kServer, "ended", fields);
  }
}

}  // namespace millrace
