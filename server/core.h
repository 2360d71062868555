// SPDX-License-Identifier: Apache-2.0
// What all calls of one server share.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/base/thread_pool.h"
#include "common/graph/store.h"
#include "common/grpc/fleet.h"
#include "common/grpc/hedging.h"
#include "server/admission.h"
#include "server/connection_calls.h"
#include "server/damage.h"
#include "server/live_calls.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/served_store.h"

namespace millrace {

// Owned by SamplerServer; outlives all calls. All members may be used from any
// thread.
struct ServerCore {
  // `fleet` may be null. 0 in `options` is replaced by its default.
  ServerCore(std::shared_ptr<const Store> store, ServerOptions options,
             std::unique_ptr<Fleet> fleet);

  // OK when this server can answer for `partition` of that store.
  // FAILED_PRECONDITION: another store, or not a partition it serves.
  // DATA_LOSS: the partition is damaged.
  absl::Status CheckTarget(uint32_t partition,
                           const std::string& fingerprint) const;

  // Whether to read the partition here rather than ask another server for it.
  bool Reads(int partition) const {
    return store->partition(partition) != nullptr &&
           !damage.IsDamaged(partition);
  }

  // The error that a call ends with. One about a damaged file of ours becomes
  // one for another server to be asked, without the path of the store, and the
  // file's partition is no longer served.
  absl::Status NoteDamage(absl::Status status);

  // The client's deadline, but no more than may be asked for, or the default
  // from now on.
  SteadyTime DeadlineOf(const ::grpc::CallbackServerContext& context) const;

  ServedStore store;
  Damage damage;
  const ServerOptions options;
  const SteadyTime started;
  const std::unique_ptr<Fleet> fleet;
  Hedging peer_hedging;  // of calls to other servers

  Admission admission;       // Sample calls
  Admission leaf_admission;  // all others but Describe
  ServerMetrics metrics;
  ConnectionCalls connection_calls;
  // A call is in one of the first two until its request is there, and then in
  // the one of its kind.
  LiveCalls reading_calls;
  LiveCalls reading_describe_calls;
  LiveCalls sample_calls;
  LiveCalls gather_calls;
  LiveCalls leaf_calls;  // Expand, HasEdges, Resolve
  LiveCalls describe_calls;

  // Sampling may wait for other servers; leaf work (leaf calls, and gathering
  // for frames) never does, so that two servers never wait for each other.
  // Last: their tasks use all of the above.
  ThreadPool leaf_pool;
  ThreadPool sample_pool;
  // Looks into the store for Describe calls, which must not wait for others.
  ThreadPool look_pool;
};

}  // namespace millrace
