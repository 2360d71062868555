// SPDX-License-Identifier: Apache-2.0
#include "client/cli/fleet_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace millrace {
namespace {

constexpr int kMostPartitions = 1024;
// METIS numbers adjacency entries, two per edge, with 32 bits.
constexpr double kMostMetisEdges = 0x1p30;
// --memory of import and partition.
constexpr double kWindowBytes = 0x1p30;

double ClientSeconds(const BatchSize& batch, bool tls) {
  return batch.edges * kClientSecondsPerEdge +
         batch.bytes * (kClientSecondsPerByte + (tls ? kTlsSecondsPerByte : 0));
}

// The memory of one server of `partitions`, if there are `servers`.
void SetMemory(const PlanRequest& request, FleetPlan& plan) {
  plan.store = request.store_of(plan.partitions);
  const double partition = plan.store.partition_bytes() / plan.partitions *
                           (plan.partitions == 1 ? 1 : kBalance);
  plan.disk_bytes = partition + plan.store.split_bytes;
  plan.mapped_bytes = plan.disk_bytes;
  // A batch more than its share, since batches do not come one by one.
  plan.inflight_bytes =
      request.trainers * request.window_bytes / plan.servers() +
      request.batch.bytes;
  plan.memory_bytes = plan.mapped_bytes + plan.inflight_bytes + kProcessBytes;
}

bool Fits(const PlanRequest& request, const FleetPlan& plan) {
  return plan.memory_bytes <= kMemoryShare * request.host.memory_bytes;
}

void ChoosePartitions(const PlanRequest& request, FleetPlan& plan) {
  plan.partitions = std::max(1, request.partitions);
  SetMemory(request, plan);
  while (request.partitions == 0 && !Fits(request, plan) &&
         plan.partitions < kMostPartitions) {
    ++plan.partitions;
    SetMemory(request, plan);
  }
}

double PeerBytes(const PlanRequest& request, const FleetPlan& plan) {
  const double elsewhere = 1 - 1.0 / plan.partitions;
  return request.batch.edges * elsewhere * kPeerBytesPerEdge;
}

// How many servers the load needs, by cores and by network.
struct Needed {
  double by_cores = 0;
  double by_network = 0;
};

Needed NeededServers(const PlanRequest& request, const FleetPlan& plan) {
  const double rate = request.batches_per_second;
  const double seconds =
      rate * ServerSeconds(request.batch, request.tls) * request.machine_factor;
  const double bits =
      8 * rate * (request.batch.bytes + PeerBytes(request, plan));
  return {seconds / (kBusyShare * request.host.cores),
          bits / (kBusyShare * request.host.network_bits)};
}

void ChooseReplicas(const PlanRequest& request, FleetPlan& plan) {
  const Needed needed = NeededServers(request, plan);
  const double most = std::max(needed.by_cores, needed.by_network);
  const int replicas =
      std::max(1, static_cast<int>(std::ceil(most / plan.partitions - 1e-9)));
  plan.replicas = request.replicas == 0 ? replicas : request.replicas;
  if (plan.replicas < replicas) {
    const bool cores = needed.by_cores > needed.by_network;
    plan.notes.push_back(absl::StrFormat(
        "%d servers are too few: their %s would serve %.3g batches/s; use %d "
        "replicas",
        plan.servers(), cores ? "cores" : "network",
        request.batches_per_second * plan.servers() / most, replicas));
  }
  if (plan.replicas == 1) {
    plan.notes.push_back(
        "one replica: while a server is restarted or lost, trainers wait; use "
        "2 replicas");
    return;
  }
  // Fully busy servers are enough for as long as one is missing.
  const int rest = std::max(
      1,
      static_cast<int>(std::ceil(kBusyShare * most / plan.partitions - 1e-9)));
  if (plan.replicas >= replicas && plan.replicas <= rest) {
    plan.notes.push_back(absl::StrFormat(
        "while a server is restarted or lost, the others of its partition "
        "cannot keep up; use %d replicas",
        rest + 1));
  }
}

void SetLoad(const PlanRequest& request, FleetPlan& plan) {
  const double rate = request.batches_per_second;
  plan.busy_cores = rate * ServerSeconds(request.batch, request.tls) *
                    request.machine_factor / plan.servers();
  plan.client_bits = 8 * rate * request.batch.bytes / plan.servers();
  plan.peer_bits = 8 * rate * PeerBytes(request, plan) / plan.servers();
  const double each = rate / request.trainers;
  plan.trainer_bits = 8 * each * request.batch.bytes;
  plan.trainer_cores =
      each * ClientSeconds(request.batch, request.tls) * request.machine_factor;
  plan.trainer_bytes = request.window_bytes + request.batch.bytes;
  if (plan.trainer_bits > kBusyShare * request.host.network_bits) {
    plan.notes.push_back(
        "a trainer's network is too slow: use --cache-ratio, float16 features "
        "or a faster network");
  }
}

void SetPreparation(const PlanRequest& request, FleetPlan& plan) {
  const double factor = request.machine_factor;
  plan.import_seconds = factor * request.edges * kImportSecondsPerEdge;
  plan.import_bytes = kWindowBytes + request.nodes * kImportBytesPerNode;
  plan.metis_fits = request.edges <= kMostMetisEdges;
  plan.partition_seconds =
      factor * request.edges *
      (plan.metis_fits ? kMetisSecondsPerEdge : kLdgSecondsPerEdge);
  plan.partition_bytes =
      kWindowBytes + request.nodes * kImportBytesPerNode +
      (plan.metis_fits ? request.edges * kMetisBytesPerEdge : 0);
  if (!plan.metis_fits && plan.partitions > 1) {
    plan.notes.push_back(
        "METIS cannot number this many edges: use --method ldg");
  }
}

}  // namespace

double ServerSeconds(const BatchSize& batch, bool tls) {
  return batch.edges * kServerSecondsPerEdge +
         batch.bytes * (kServerSecondsPerByte + (tls ? kTlsSecondsPerByte : 0));
}

double MachineFactor(const BatchSize& measured) {
  const double expected = measured.edges * kLocalSecondsPerEdge +
                          measured.bytes * kLocalSecondsPerByte;
  return expected <= 0 ? 1 : measured.cpu_seconds / expected;
}

FleetPlan PlanFleet(const PlanRequest& request) {
  FleetPlan plan;
  ChoosePartitions(request, plan);
  ChooseReplicas(request, plan);
  SetMemory(request, plan);
  SetLoad(request, plan);
  if (!Fits(request, plan)) {
    plan.notes.push_back(absl::StrFormat(
        "a server does not fit in %.0f %% of a host's memory: use more "
        "partitions, or expect reads from disk",
        100 * kMemoryShare));
  }
  SetPreparation(request, plan);
  return plan;
}

}  // namespace millrace
