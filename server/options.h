// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/grpc/tls_options.h"
#include "server/open_connections.h"

namespace millrace {

// How a server runs; main.cc fills it from the command line.
struct ServerOptions {
  // HOST:PORT; port 0 picks a free one.
  std::string listen = "127.0.0.1:0";

  // LIST of the fleet (this server may be in it). Empty: the other partitions
  // are unreachable, which a server of all partitions does not mind.
  std::string peers;

  // Of this server and of its peers; none: plaintext. A server has cert and
  // key; ca is for the peers, and for clients that must show a certificate.
  TlsOptions tls = {};
  TlsClientPolicy clients;

  // Threads that sample; as many more answer leaf calls. 0: one per core.
  int threads = 0;

  // How many connections may be open. 0: see DecideLimits().
  ConnectionLimits connections;
  // How long a client may take for the handshakes of TLS and HTTP/2.
  absl::Duration handshake_timeout = absl::Seconds(5);
  // How long a connection may be open without a call, 1 s at least. gRPC's
  // clients connect again when they have one.
  absl::Duration idle_timeout = absl::Minutes(1);

  // Sample calls that run or wait; more are answered RESOURCE_EXHAUSTED.
  int max_sample_calls = 1024;
  // The same for Expand, HasEdges and Resolve calls together, for Gather calls
  // and for Describe calls.
  int max_leaf_calls = 4096;
  // The same for calls whose request is not there yet, which count as nothing
  // else: of Describe, and of all others together.
  int max_reading_calls = 16384;

  // Memory of all Sample calls together. 0: a quarter of the memory of this
  // host (or of its container).
  uint64_t max_inflight_bytes = 0;
  // Memory of all leaf calls (Expand, Resolve, Gather) together, besides. 0: a
  // quarter of max_inflight_bytes, at least 192 MiB.
  uint64_t max_leaf_bytes = 0;

  // Of calls whose client gave none.
  absl::Duration default_deadline = absl::Seconds(60);
  // The longest that is believed.
  absl::Duration max_deadline = absl::Minutes(10);

  // How long a client may take to send its request: the largest, 16 MiB, takes
  // that long at 7 Mbit/s.
  absl::Duration request_timeout = absl::Seconds(20);
  // How long a client may take to take each message.
  absl::Duration client_timeout = absl::Seconds(60);

  // How fast the files are read again and again to find damage; 0: not at all.
  uint64_t scrub_bytes_per_second = 0;

  // How long a hop waits for a server of another partition to appear.
  absl::Duration peer_wait = absl::Seconds(2);
};

}  // namespace millrace
