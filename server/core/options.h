// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/grpc/tls/tls_options.h"
#include "server/load/open_connections.h"

namespace millrace {

// Settings of a server; main.cc fills them from the command line.
struct ServerOptions {
  // HOST:PORT; port 0 picks a free port.
  std::string listen = "127.0.0.1:0";

  // The servers of the fleet, in the form of AddressList; may include this
  // server. If empty, the other partitions are unreachable, which is fine if
  // this server has them all.
  std::string peers;

  // The address by which others know this server, for logs and its status page;
  // if empty, the one that it listens on.
  std::string advertise;

  // TLS files for this server and for its calls to peers; if empty, plaintext.
  // A server needs `cert` and `key`; `ca` verifies peers, and clients if they
  // must present a certificate.
  TlsOptions tls = {};
  TlsClientPolicy clients;

  // Sampling threads; leaf calls get as many again. 0 means one per core.
  int threads = 0;

  // Limits on open connections. Zeros mean the defaults of DecideLimits().
  ConnectionLimits connections;
  // Time limit for the TLS and HTTP/2 handshakes.
  absl::Duration handshake_timeout = absl::Seconds(5);
  // How long a connection may stay open without a call, at least 1 s. gRPC
  // clients reconnect for their next call.
  absl::Duration idle_timeout = absl::Minutes(1);

  // Limit on running and queued Sample calls; more get RESOURCE_EXHAUSTED.
  int max_sample_calls = 1024;
  // The same for Expand, HasEdges and Resolve calls together; applies
  // separately to Gather calls and to Describe calls.
  int max_leaf_calls = 4096;
  // The same for calls whose request has not arrived yet and which count
  // towards no other limit; applies separately to Describe and to all others
  // together.
  int max_reading_calls = 16384;

  // Memory of all Sample calls together. 0 means a quarter of the memory of
  // this host or container.
  uint64_t max_inflight_bytes = 0;
  // Additional memory of all leaf calls (Expand, Resolve, HasEdges, Gather)
  // together. 0 means a quarter of max_inflight_bytes, at least 192 MiB.
  uint64_t max_leaf_bytes = 0;

  // Deadline of calls whose client set none.
  absl::Duration default_deadline = absl::Seconds(60);
  // Longer deadlines are reduced to this.
  absl::Duration max_deadline = absl::Minutes(10);

  // How long a client may take to send its request. The default allows the
  // largest one, 16 MiB, at 7 Mbit/s.
  absl::Duration request_timeout = absl::Seconds(20);
  // How long a client may take to accept each message.
  absl::Duration client_timeout = absl::Seconds(60);

  // Bytes per second at which files are reread to find damage; 0 means never.
  uint64_t scrub_bytes_per_second = 0;

  // Calls that take longer are logged, with where they spent their time; 0
  // means none.
  absl::Duration trace_slow = absl::ZeroDuration();

  // How long a hop waits for a server of another partition to appear.
  absl::Duration peer_wait = absl::Seconds(2);
};

}  // namespace millrace
