// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/graph/store.h"
#include "common/tier/load_store.h"
#include "server/core/options.h"
#include "server/fleet_status.h"

namespace millrace {

// Serves the mapped partitions of a store over gRPC, with the health service
// ("" and "partition/N") and reflection.
// States: serving -> draining -> ended.
// Threads: any thread may call any method, but calls of Drain() and Stop() must
// not overlap.
class SamplerServer {
 public:
  // Returns a server that already accepts calls. Does not wait for its peers.
  // INVALID_ARGUMENT: an invalid option (the message starts with its name).
  // UNAVAILABLE: cannot listen. Also the errors of TlsFiles::Open().
  static absl::StatusOr<std::unique_ptr<SamplerServer>> Start(
      LoadedStore loaded, ServerOptions options);
  // The CPU samples the store.
  static absl::StatusOr<std::unique_ptr<SamplerServer>> Start(
      std::shared_ptr<const Store> store, ServerOptions options) {
    return Start(LoadedStore{.store = std::move(store)}, std::move(options));
  }
  // Calls Stop().
  ~SamplerServer();
  SamplerServer(const SamplerServer&) = delete;
  SamplerServer& operator=(const SamplerServer&) = delete;

  int port() const;
  // "HOST:PORT" with the actual port.
  const std::string& address() const;

  // With zeros replaced by what the server decided, except in `connections`.
  const ServerOptions& options() const;

  // Reports to health checks and clients that the server is about to stop,
  // refuses new Sample calls (but not leaf calls), and waits for running calls
  // to finish. Returns false if `timeout` passes first.
  bool Drain(absl::Duration timeout);

  // Ends all running calls. Idempotent.
  void Stop();

  bool draining() const;

  // Whether at least one partition is not damaged and is still served.
  bool HasIntactPartition() const;

  // Whether a GPU has failed, so that the process has to be restarted.
  bool HasFailedDevice() const;

  // Whether the server has some partitions only and no peers, so that it fails
  // batches that need the others.
  bool IsLeafOnly() const;

  // Whether the port answers; see PortCheck::Ask().
  absl::Status CheckPort(absl::Duration timeout) const;

  // All metrics in Prometheus' text format.
  std::string Metrics() const;

  // This server and its peers, for the status page.
  FleetStatus Status() const;

 private:
  struct State;
  explicit SamplerServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace millrace
