// SPDX-License-Identifier: Apache-2.0
// State shared by all calls of one server.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/base/thread_pool.h"
#include "common/graph/store.h"
#include "common/grpc/call/call_timer.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/fleet/fleet.h"
#include "common/sample/feature_rows.h"
#include "common/sample/hop_counter.h"
#include "common/sample/neighbor_drawer.h"
#include "common/sample/neighbor_source.h"
#include "common/sample/topology_sampler.h"
#include "common/tier/load_store.h"
#include "server/core/damage.h"
#include "server/core/metrics.h"
#include "server/core/options.h"
#include "server/core/served_store.h"
#include "server/load/active_calls.h"
#include "server/load/admission.h"
#include "server/load/connection_calls.h"

namespace millrace {

// Owned by SamplerServer; outlives all calls. All members may be used from any
// thread.
struct ServerCore {
  // `fleet` may be null. Zeros in `options` are replaced by the defaults.
  ServerCore(LoadedStore loaded, ServerOptions options,
             std::unique_ptr<Fleet> fleet);

  // OK if this server can answer for `partition` of the store with this
  // `fingerprint`.
  // FAILED_PRECONDITION: it is another store, or a partition not served here.
  // DATA_LOSS: the partition is damaged.
  absl::Status CheckTarget(uint32_t partition,
                           const std::string& fingerprint) const;

  // Whether to read the partition here rather than ask another server.
  bool Reads(int partition) const {
    return store->partition(partition) != nullptr &&
           !damage.IsDamaged(partition);
  }

  // Whether all partitions are read here.
  bool ReadsAll() const;

  // Whether the server takes new work.
  bool IsReady() const;

  // Whether the server was started with some partitions only and without peers,
  // so that it fails Sample calls that need the others.
  bool IsLeafOnly() const;

  // Draws from the lists of a partition that is mapped here, on a device where
  // that is possible, and returns whether it was. Fails as DrawNeighbors() and
  // NeighborDrawer::Draw() do.
  absl::StatusOr<bool> Draw(int partition, const DrawContext& context,
                            const Frontier& frontier, Picks& picks);

  // Returns what a call should end with after this result of a device. If the
  // device has failed (UNAVAILABLE), logs that once, and probes fail from now
  // on. If memory is short, the client may retry.
  absl::Status DeviceError(const absl::Status& status);

  // Returns the error that a call should end with. An error about a damaged
  // file of this store makes the server stop serving the file's partition, and
  // becomes one that sends the client to another server and does not reveal the
  // store's path.
  absl::Status ErrorForClient(absl::Status status);

  // The client's deadline, capped by the longest allowed one; if the client set
  // none, the default from now on.
  SteadyTime DeadlineOf(const ::grpc::CallbackServerContext& context) const;

  ServedStore store;
  // Null if the CPU samples, or reads feature rows.
  const std::unique_ptr<TopologySampler> sampler;
  const std::unique_ptr<NeighborDrawer> drawer;
  const std::shared_ptr<FeatureRows> features;
  // The files of the served partitions that are mapped, and copies in memory.
  const std::vector<MemoryCopy> copies;
  const std::vector<int> gpus;
  std::atomic<bool> device_failed = false;
  // Called when that becomes true; may be null. Set before the first call.
  std::function<void()> on_device_failure;
  HopCounter hops;
  std::atomic<uint64_t> cpu_rows = 0;  // feature rows read without `features`
  Damage damage;
  const ServerOptions options;
  const SteadyTime started;
  const std::string instance;  // see DescribeReply.instance
  const std::unique_ptr<Fleet> fleet;
  // For calls to other servers.
  CallTimer peer_timer;
  Hedging peer_hedging;

  Admission admission;       // Sample calls
  Admission leaf_admission;  // all others except Describe
  ServerMetrics metrics;
  ConnectionCalls connection_calls;
  // A call is first in reading_calls or reading_describe_calls while its
  // request arrives, then in the member for its kind.
  ActiveCalls reading_calls;
  ActiveCalls reading_describe_calls;
  ActiveCalls sample_calls;
  ActiveCalls gather_calls;
  ActiveCalls leaf_calls;  // Expand, HasEdges, Resolve
  ActiveCalls describe_calls;

  // Sampling may wait for other servers; leaf work (leaf calls, and gathering
  // rows for frames) never does, so two servers cannot deadlock waiting for
  // each other.
  // Last, because their tasks use all of the above.
  ThreadPool leaf_pool;
  ThreadPool sample_pool;
  // Inspects the store for Describe calls, which must not queue behind other
  // work.
  ThreadPool describe_pool;
};

}  // namespace millrace
