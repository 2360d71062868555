// SPDX-License-Identifier: Apache-2.0
// How many servers of which size a job needs (docs/performance.md, section 4).
// Bytes, seconds and bits are doubles, since most are estimates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/cli/batch_size.h"
#include "client/cli/store_size.h"

namespace millrace {

// Constants of docs/performance.md, section 4, measured on 2 virtual cores of
// an AMD EPYC.
inline constexpr double kLocalSecondsPerEdge = 1.07e-7;
inline constexpr double kLocalSecondsPerByte = 4.7e-10;
inline constexpr double kServerSecondsPerEdge = 9e-8;
inline constexpr double kServerSecondsPerByte = 7.2e-10;
inline constexpr double kClientSecondsPerEdge = 5e-9;
inline constexpr double kClientSecondsPerByte = 9e-10;
inline constexpr double kTlsSecondsPerByte = 5e-10;  // at each end
inline constexpr double kPeerBytesPerEdge = 7;
inline constexpr double kProcessBytes = 100e6;
inline constexpr double kMetisBytesPerEdge = 130;
inline constexpr double kMetisSecondsPerEdge = 1.2e-6;
inline constexpr double kLdgSecondsPerEdge = kMetisSecondsPerEdge / 5;
inline constexpr double kImportSecondsPerEdge = 0.6e-6;
inline constexpr double kImportBytesPerNode = 64;
// No partition is larger than the mean by more than this factor.
inline constexpr double kBalance = 1.05;
// The share of a host that is planned for: of its memory, and of its cores and
// its network, at which one scales out.
inline constexpr double kMemoryShare = 0.8;
inline constexpr double kBusyShare = 0.7;

struct Hosts {
  double memory_bytes = 64.0 * (uint64_t{1} << 30);
  double cores = 16;
  double network_bits = 10e9;  // per second
};

struct PlanRequest {
  // The store for a number of partitions.
  std::function<StoreSize(int partitions)> store_of;
  double nodes = 0;
  double edges = 0;
  BatchSize batch;
  // How much slower this machine is than that of the constants.
  double machine_factor = 1;
  double batches_per_second = 0;
  int trainers = 1;
  // Of each trainer: the bytes of batches that it has asked for and not used.
  double window_bytes = 0;
  int partitions = 0;  // 0: as few as fit
  int replicas = 0;    // 0: as few as the load needs
  bool tls = true;
  Hosts host;
};

struct FleetPlan {
  int partitions = 1;
  int replicas = 1;
  StoreSize store;
  // What limits the fleet's throughput most, and what does not fit.
  std::vector<std::string> notes;

  // Of one server.
  double disk_bytes = 0;
  double mapped_bytes = 0;    // files, best kept in the page cache
  double inflight_bytes = 0;  // batches that are being made
  double memory_bytes = 0;    // these and the process
  double busy_cores = 0;
  double client_bits = 0;  // per second, to trainers
  double peer_bits = 0;    // per second, to other servers

  // Of one trainer.
  double trainer_bits = 0;
  double trainer_cores = 0;
  double trainer_bytes = 0;  // batches that wait

  // Preparing the store, on one host.
  double import_seconds = 0, import_bytes = 0;
  double partition_seconds = 0, partition_bytes = 0;
  bool metis_fits = true;  // METIS numbers edges with 32 bits

  int servers() const { return partitions * replicas; }
};

FleetPlan PlanFleet(const PlanRequest& request);

// CPU seconds of servers, all of them together, for one batch.
double ServerSeconds(const BatchSize& batch, bool tls);
// How much slower a machine is that needs this long for the batch alone.
double MachineFactor(const BatchSize& measured);

}  // namespace millrace
