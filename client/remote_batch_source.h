// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls_options.h"
#include "common/sample/batch_source.h"

namespace millrace {

struct RemoteOptions {
  std::string servers;  // LIST
  TlsOptions tls = {};  // none: plaintext

  // How long a partition without a living server is waited for before calls
  // that need it fail.
  absl::Duration partition_wait = absl::Minutes(5);
  // Of one attempt of one call; a longer one is retried elsewhere. An attempt
  // also gets no more than what is left of partition_wait, but 1 s at least.
  absl::Duration call_timeout = absl::Seconds(60);
  // Largest batch that is accepted.
  uint64_t max_batch_bytes = uint64_t{4} << 30;

  // Share of each partition's feature rows, the hottest, that is kept here:
  // fetched before the first batch that has features of the type, and never
  // again; at most half of the memory that is then available. 0: none.
  // (Features of edges are not kept. Processes of a host share nothing.)
  double cache_ratio = 0;
};

// Batches from a fleet: the home server of a batch runs its hops, the other
// owners are asked for their rows directly; all calls are idempotent and are
// retried until partition_wait is over.
class RemoteBatchSource : public BatchSource {
 public:
  // Waits until the fleet can be described.
  // INVALID_ARGUMENT: a bad LIST, a ratio beyond 0 to 1, tls without ca. Other
  // codes: see OpenSource.
  static absl::StatusOr<std::unique_ptr<RemoteBatchSource>> Connect(
      const RemoteOptions& options);

  // Bytes of batches and rows that servers have sent so far.
  virtual uint64_t received_bytes() const = 0;
  // Streams of batches and rows that were asked for, and those that were asked
  // of a second replica because the first was slow (see Hedging).
  virtual int64_t calls() const = 0;
  virtual int64_t hedged_calls() const = 0;
};

}  // namespace millrace
