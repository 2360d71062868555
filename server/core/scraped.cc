// SPDX-License-Identifier: Apache-2.0
#include "server/core/scraped.h"

#include "absl/strings/str_join.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using Values = std::vector<MetricValue>;

MetricFamilies StoreFamilies(const Scraped& scraped) {
  std::vector<int> served;
  Values intact;
  for (const auto& [part, is_intact] : scraped.partitions) {
    served.push_back(part);
    intact.push_back({{{"partition", StrCat(part)}}, is_intact});
  }
  const Scraped::StoreNames& store = scraped.store;
  const std::vector<MetricLabel> labels = {
      {"store_uuid", store.uuid},
      {"fingerprint", store.fingerprint},
      {"dataset_fingerprint", store.dataset_fingerprint},
      {"partitions", absl::StrJoin(served, ",")},
      {"parts", StrCat(store.parts)}};
  return {
      GaugeFamily("millrace_store_info",
                  "The store and the partitions of it that are served.",
                  {{.labels = labels, .value = 1}}),
      GaugeFamily("millrace_partition_served",
                  "Whether a partition is served: 0 if it is damaged.", intact),
      GaugeFamily("millrace_damaged_partitions",
                  "Partitions no longer served because a file is damaged.",
                  scraped.damaged_partitions)};
}

// `what` is "sampling" or "leaf".
MetricFamilies PoolFamilies(const std::string& what,
                            const Scraped::Pool& pool) {
  const std::string prefix = StrCat("millrace_", what, "_");
  return {
      GaugeFamily(StrCat(prefix, "threads"),
                  StrCat("Threads for ", what, " work."), pool.threads),
      GaugeFamily(StrCat(prefix, "queue_length"),
                  StrCat("Tasks that wait for one of the ", what, " threads."),
                  pool.load.waiting),
      CounterFamily(
          StrCat(prefix, "busy_seconds_total"),
          StrCat("Total time that ", what, " threads were busy, in seconds."),
          pool.load.busy_seconds),
      GaugeFamily(StrCat(prefix, "busy_ratio"),
                  StrCat("Busy seconds of the ", what,
                         " threads per second and thread, in the last "
                         "minute."),
                  pool.load.busy_ratio)};
}

MetricFamilies CallFamilies(const Scraped& scraped) {
  Values max_calls, clients;
  for (const Scraped::CallLimit& limit : scraped.limits) {
    const MetricLabel method = {"method", std::string(limit.method)};
    max_calls.push_back({{method}, limit.max_calls});
    clients.push_back({{method}, limit.clients});
  }
  return {
      GaugeFamily("millrace_max_calls",
                  "Limit on the calls of an RPC; Expand, HasEdges and Resolve "
                  "share theirs.",
                  max_calls),
      GaugeFamily("millrace_clients",
                  "Clients that have calls under the limit of an RPC.",
                  clients),
      GaugeFamily("millrace_inflight_bytes", "Bytes reserved by Sample calls.",
                  scraped.inflight_bytes),
      GaugeFamily("millrace_max_inflight_bytes",
                  "Limit on millrace_inflight_bytes.",
                  scraped.max_inflight_bytes),
      CounterFamily(
          "millrace_calls_ended_for_others_total",
          "Calls ended because other clients needed their place or memory.",
          scraped.calls_ended_for_others)};
}

MetricFamilies PeerFamilies(const Scraped& scraped) {
  MetricFamilies families = {
      CounterFamily("millrace_peer_calls_total", "Calls to other servers.",
                    scraped.peer_calls),
      CounterFamily("millrace_hedged_peer_calls_total",
                    "Calls to other servers that went to a second one too.",
                    scraped.hedged_peer_calls)};
  if (!scraped.peers.has_value()) return families;
  Values states;
  for (const auto& [state, count] : *scraped.peers) {
    states.push_back({{{"state", std::string(state)}}, count});
  }
  families.push_back(GaugeFamily(
      "millrace_peers", "Servers of the fleet, by their state.", states));
  return families;
}

MetricFamilies ConnectionFamilies(const Scraped& scraped) {
  return {
      GaugeFamily("millrace_open_connections",
                  "Connections of clients and peers.",
                  scraped.open_connections),
      CounterFamily("millrace_refused_connections_total",
                    "Connections closed on arrival because too many were open "
                    "or no file descriptor was left.",
                    scraped.refused_connections),
      CounterFamily(
          "millrace_connections_ended_for_others_total",
          "Connections ended because other addresses needed their place.",
          scraped.connections_ended_for_others)};
}

// A family of counters with one label, "place".
prometheus::MetricFamily PlaceFamily(
    const std::string& name, const std::string& help,
    const std::vector<std::pair<std::string, uint64_t>>& counts) {
  Values values;
  for (const auto& [place, count] : counts) {
    values.push_back({{{"place", place}}, count});
  }
  return CounterFamily(name, help, values);
}

MetricFamilies WorkFamilies(const Scraped& scraped) {
  return {
      PlaceFamily("millrace_hops_total",
                  "Hops by where they were sampled: of whole batches, or "
                  "one for each request to draw from a relation of a "
                  "partition.",
                  {{"gpu", scraped.hops.device}, {"cpu", scraped.hops.host}}),
      PlaceFamily("millrace_feature_rows_total",
                  "Feature rows read, by where they were read; gpu_pinned: "
                  "GPUs, from pinned memory.",
                  {{"gpu", scraped.feature_rows.gpu},
                   {"gpu_pinned", scraped.feature_rows.gpu_pinned},
                   {"cpu", scraped.feature_rows.cpu}})};
}

MetricFamilies MemoryFamilies(const Scraped& scraped) {
  Values copies, total, free;
  for (const MemoryCopy& copy : scraped.copies) {
    copies.push_back({{{"content", std::string(copy.content)},
                       {"memory", std::string(copy.memory)}},
                      copy.bytes});
  }
  for (const GpuMemory& gpu : scraped.gpus) {
    const MetricLabel label = {"gpu", StrCat(gpu.device)};
    total.push_back({{label}, gpu.total_bytes});
    free.push_back({{label}, gpu.free_bytes});
  }
  MetricFamilies families;
  if (!copies.empty()) {
    families.push_back(GaugeFamily(
        "millrace_store_memory_bytes",
        "The store's files that are mapped, and copies of it in memory.",
        copies));
  }
  if (total.empty()) return families;
  families.push_back(GaugeFamily("millrace_gpu_memory_bytes",
                                 "Memory that a GPU has.", total));
  families.push_back(GaugeFamily("millrace_gpu_memory_free_bytes",
                                 "Memory of a GPU that no process has taken.",
                                 free));
  return families;
}

MetricFamilies OptionalFamilies(const Scraped& scraped) {
  MetricFamilies families;
  if (scraped.scrub.has_value()) {
    families = {CounterFamily("millrace_scrubbed_bytes_total",
                              "Bytes read and compared with checksums.",
                              scraped.scrub->bytes),
                CounterFamily("millrace_scrub_damaged_files_total",
                              "Files found damaged or unreadable, counted once "
                              "a pass.",
                              scraped.scrub->damaged_files),
                CounterFamily("millrace_scrub_passes_total",
                              "How often all files have been read.",
                              scraped.scrub->passes)};
  }
  if (scraped.certificate_expiry.has_value()) {
    families.push_back(
        GaugeFamily("millrace_tls_certificate_expiry_timestamp_seconds",
                    "When the certificate in use expires (Unix time).",
                    *scraped.certificate_expiry));
  }
  return families;
}

}  // namespace

prometheus::MetricFamily ReadyFamily(bool ready) {
  return GaugeFamily(
      "millrace_ready",
      "Whether the server takes new work: 0 while it opens its store or "
      "drains, if all its partitions are damaged, or if a GPU has failed.",
      ready);
}

prometheus::MetricFamily DrainingFamily(bool draining) {
  return GaugeFamily("millrace_draining",
                     "Whether the server is about to stop.", draining);
}

MetricFamilies FamiliesOf(const Scraped& scraped) {
  MetricFamilies all = {ReadyFamily(scraped.ready),
                        DrainingFamily(scraped.draining)};
  for (MetricFamilies families :
       {StoreFamilies(scraped), PoolFamilies("sampling", scraped.sampling),
        PoolFamilies("leaf", scraped.leaf), CallFamilies(scraped),
        PeerFamilies(scraped), ConnectionFamilies(scraped),
        WorkFamilies(scraped), MemoryFamilies(scraped),
        OptionalFamilies(scraped)}) {
    AddFamilies(std::move(families), all);
  }
  return all;
}

}  // namespace millrace
