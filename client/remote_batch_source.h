// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/remote/cached_row_counts.h"
#include "client/remote/device_cache.h"
#include "common/grpc/tls/tls_options.h"
#include "common/sample/batch_source.h"

namespace millrace {

struct RemoteOptions {
  std::string servers;  // LIST; see AddressList
  TlsOptions tls = {};  // empty for plaintext

  // How long to wait for a partition without a living server before calls that
  // need it fail.
  absl::Duration partition_wait = absl::Minutes(5);
  // Timeout of one attempt of one call, after which the call is retried on
  // another replica. Capped by what remains of partition_wait, but never below
  // 1 s.
  absl::Duration call_timeout = absl::Seconds(60);
  uint64_t max_batch_bytes = uint64_t{4} << 30;
  // Batches that take longer from request to arrival are logged, with where
  // that time went, at most 10 a second; 0 for none.
  absl::Duration trace_slow = absl::ZeroDuration();

  // Share of each partition's feature rows, hottest first, to keep here; 0 for
  // none. They are fetched once, before the first batch that has features of
  // the node type, and take at most half of the memory available then. (Edge
  // features are not kept, and the processes of a host share nothing.)
  double cache_ratio = 0;
  // Keeps these rows on a GPU instead, where they take at most nine tenths of
  // the memory that is free then; null for the host. Only requests whose memory
  // is for this GPU use them, and get their features there.
  std::shared_ptr<DeviceCache> device_cache = nullptr;
};

// A server as its client knows it.
struct KnownServer {
  std::string address;
  // "ready", "draining", "unreachable", "refused" or "unknown"
  std::string state;
  std::vector<int> partitions;
  std::string version;
  std::string error;  // one line; empty if it answered last time
};

// Fetches batches from a fleet: the home server of a batch runs its hops, and
// the owners of other partitions are asked directly for their rows. All calls
// are idempotent and are retried until partition_wait has passed.
class RemoteBatchSource : public BatchSource {
 public:
  // Waits until the fleet can be described.
  // INVALID_ARGUMENT: a bad LIST, a cache_ratio outside 0 to 1, TLS without a
  // CA. Also the errors of OpenSource().
  static absl::StatusOr<std::unique_ptr<RemoteBatchSource>> Connect(
      const RemoteOptions& options);

  // Bytes of batches and rows received from servers so far.
  virtual uint64_t received_bytes() const = 0;
  // Streams of batches and rows requested so far, and those of them also
  // requested from a second replica because the first was slow (see Hedging).
  virtual int64_t calls() const = 0;
  virtual int64_t hedged_calls() const = 0;
  // How often calls that had failed were made again, for a batch all together.
  virtual int64_t retries() const = 0;
  // Feature rows of batches so far; nullopt if the cache ratio is 0.
  virtual std::optional<CachedRowCounts> cached_rows() const = 0;
  // All servers in the list, in its order.
  virtual std::vector<KnownServer> servers() const = 0;
};

}  // namespace millrace
