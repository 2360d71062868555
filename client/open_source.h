// SPDX-License-Identifier: Apache-2.0
// Opens a source of batches from a store or from servers.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls/tls_options.h"
#include "common/sample/batch_source.h"
#include "common/sample/memory_options.h"

namespace millrace {

class DeviceCache;

struct SourceOptions {
  // Exactly one of these must be set.
  std::string store;    // a dataset or store, read in this process
  std::string servers;  // LIST: host:port,host:port | @FILE | dns:///name:port

  // Only for servers: the PEM files for TLS; empty for plaintext.
  TlsOptions tls = {};

  // Only for store: threads that make batches in this process; 0 for one per
  // core.
  int threads = 0;
  // Only for store: where to keep it.
  MemoryOptions memory = {};
  // Only for servers: how long to wait for a partition that has no living
  // server.
  absl::Duration partition_wait = absl::Minutes(5);
  // Only for servers: log batches that take longer to arrive than this, with
  // where the time went; 0 for none.
  absl::Duration trace_slow = absl::ZeroDuration();
  // Share of each partition's feature rows, hottest first, from 0 to 1. With
  // servers: to keep in this process. With a store: if not 0, the same as
  // memory.cache_ratio.
  double cache_ratio = 0;
  // Only for servers: keeps these rows on a GPU, for batches that go there. For
  // millrace-train; its type is not part of the interface. Null to keep them in
  // memory of the host.
  std::shared_ptr<DeviceCache> device_cache = nullptr;
};

// Opens the store, or connects to the fleet and waits until it can be
// described.
// INVALID_ARGUMENT: neither or both of store and servers, a bad LIST, a
// cache_ratio outside 0 to 1, memory together with servers.
// UNAVAILABLE: no server answered within partition_wait.
// FAILED_PRECONDITION: the fleet's members disagree.
// UNAUTHENTICATED, PERMISSION_DENIED: certificates or names prevent access to
// every server.
// Also errors of Store::Open, LoadStore and of the TLS files.
absl::StatusOr<std::shared_ptr<BatchSource>> OpenSource(
    const SourceOptions& options);

}  // namespace millrace
