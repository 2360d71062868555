// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/graph/store.h"
#include "server/options.h"

namespace millrace {

// A sampler server: serves the mapped partitions of a store over gRPC, with
// health ("" and "partition/N") and reflection.
// States: serving -> draining -> ended.
// Threads: any thread may call any method; Drain() and Stop() once.
class SamplerServer {
 public:
  // Serves from the moment it returns. It need not reach its peers.
  // INVALID_ARGUMENT: an option (message starts with its name). Errors of
  // TlsFiles::Open.
  // UNAVAILABLE: cannot listen.
  static absl::StatusOr<std::unique_ptr<SamplerServer>> Start(
      std::shared_ptr<const Store> store, ServerOptions options);
  // Stop() unless that was done.
  ~SamplerServer();
  SamplerServer(const SamplerServer&) = delete;
  SamplerServer& operator=(const SamplerServer&) = delete;

  int port() const;
  // "HOST:PORT" with the real port.
  const std::string& address() const;

  // Tells health checks and clients to go elsewhere, answers no new Sample
  // (leaf calls still), and waits until those that run are done. False when
  // `timeout` passed first.
  bool Drain(absl::Duration timeout);

  // Ends all calls that run. Idempotent.
  void Stop();

  bool draining() const;

  // Whether it serves any partition: not all of them are damaged.
  bool sound() const;

  // Whether the port answers; see PortCheck::Ask().
  absl::Status CheckPort(absl::Duration timeout) const;

  // In Prometheus' text format.
  std::string Metrics() const;

 private:
  struct State;
  explicit SamplerServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace millrace
