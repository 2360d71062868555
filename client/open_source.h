// SPDX-License-Identifier: Apache-2.0
// From --store or --servers to a source of batches.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls_options.h"
#include "common/sample/batch_source.h"

namespace millrace {

struct SourceOptions {
  // Exactly one of the two.
  std::string store;    // a dataset or store: batches are made in this process
  std::string servers;  // LIST: host:port,host:port | @FILE | dns:///name:port

  // Servers only: PEM files, as of --tls-ca and so on; none: plaintext.
  TlsOptions tls = {};

  // Threads that make batches in this process; 0: one per core.
  int threads = 0;
  // How long a partition without a living server is waited for.
  absl::Duration partition_wait = absl::Minutes(5);
  // Share of each partition's feature rows, the hottest, that this process
  // keeps; 0: none. Servers only: the pages of a mapped store are kept anyway.
  double cache_ratio = 0;
};

// Opens the store, or connects to the fleet and waits until it can be
// described.
// INVALID_ARGUMENT: neither or both of store and servers, a bad LIST, a
// cache_ratio beyond 0 to 1, or with a store.
// Errors of Store::Open and of the TLS files; UNAVAILABLE: no server answered
// within partition_wait; FAILED_PRECONDITION: the fleet's members disagree;
// UNAUTHENTICATED, PERMISSION_DENIED: certificates or names keep this program
// from every server.
absl::StatusOr<std::shared_ptr<BatchSource>> OpenSource(
    const SourceOptions& options);

}  // namespace millrace
