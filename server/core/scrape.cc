// SPDX-License-Identifier: Apache-2.0
#include "server/core/scrape.h"

#include <string_view>
#include <vector>

#include "common/graph/manifest.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/fleet/member_state.h"
#include "common/tier/device_tier.h"

namespace millrace {
namespace {

StateCounts PeersByState(const Fleet& fleet) {
  std::vector<std::string_view> states;
  for (const FleetMemberInfo& member : fleet.Members()) {
    states.push_back(StateName(member.state));
  }
  return CountStates(states);
}

Scraped::Pool PoolOf(const ThreadPool& pool) {
  return {.threads = pool.threads(), .load = pool.load()};
}

std::vector<Scraped::CallLimit> LimitsOf(const ServerCore& core) {
  std::vector<Scraped::CallLimit> limits;
  const auto add = [&](std::string_view method, int max_calls,
                       const ActiveCalls& calls) {
    limits.push_back({method, max_calls, calls.clients()});
  };
  add("Sample", core.options.max_sample_calls, core.sample_calls);
  add("Gather", core.options.max_leaf_calls, core.gather_calls);
  for (const char* leaf : {"Expand", "HasEdges", "Resolve"}) {
    add(leaf, core.options.max_leaf_calls, core.leaf_calls);
  }
  add("Describe", core.options.max_leaf_calls, core.describe_calls);
  return limits;
}

void ScrapeStore(const ServerCore& core, Scraped& scraped) {
  const Manifest& manifest = core.store->manifest();
  scraped.store = {.uuid = manifest.uuid,
                   .fingerprint = manifest.fingerprint,
                   .dataset_fingerprint = manifest.dataset_fingerprint,
                   .parts = core.store->partition_count()};
  for (const int part : core.store->mapped_partitions()) {
    scraped.partitions[part] = !core.damage.IsDamaged(part);
  }
  scraped.damaged_partitions = core.damage.damaged().size();
  scraped.ready = core.IsReady();
  scraped.draining = core.sample_calls.draining();
  scraped.hops = core.hops.counts();
  if (core.features != nullptr) scraped.feature_rows = core.features->counts();
  scraped.feature_rows.cpu += core.cpu_rows;
  scraped.copies = core.copies;
  scraped.gpus = MemoryOfDevices(core.gpus);
}

void ScrapeCalls(const ServerCore& core, Scraped& scraped) {
  scraped.sampling = PoolOf(core.sample_pool);
  scraped.leaf = PoolOf(core.leaf_pool);
  scraped.limits = LimitsOf(core);
  scraped.inflight_bytes = core.admission.in_use();
  scraped.max_inflight_bytes = core.admission.limit();
  for (const ActiveCalls* calls :
       {&core.reading_calls, &core.reading_describe_calls, &core.sample_calls,
        &core.gather_calls, &core.leaf_calls, &core.describe_calls}) {
    scraped.calls_ended_for_others += calls->ended_for_others();
  }
  scraped.peer_calls = core.peer_hedging.calls();
  scraped.hedged_peer_calls = core.peer_hedging.hedges();
  if (core.fleet != nullptr) scraped.peers = PeersByState(*core.fleet);
}

}  // namespace

Scraped Scrape(const ServerCore& core) {
  Scraped scraped;
  ScrapeStore(core, scraped);
  ScrapeCalls(core, scraped);
  return scraped;
}

}  // namespace millrace
