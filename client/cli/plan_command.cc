// SPDX-License-Identifier: Apache-2.0
// millrace plan: how many servers of which size a job needs
// (docs/performance.md, section 4).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/cli/batch_size.h"
#include "client/cli/commands.h"
#include "client/cli/fleet_plan.h"
#include "client/cli/plan_graph.h"
#include "client/flags/job_flags.h"
#include "client/open_source.h"
#include "common/base/bytes_text.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/cli/program.h"
#include "common/sample/resolve_job.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct PlanFlags {
  PlanGraphFlags graph;
  JobFlags job;
  double batches_per_second = 0;
  double step_seconds = 0;
  int trainers = 1;
  int parts = 0;
  int replicas = 0;
  uint64_t host_memory = uint64_t{64} << 30;
  double host_cores = 16;
  double host_network = 10;  // Gbit/s
  uint32_t batches = 8;
  // Of a batch, as measured elsewhere; 0 if not given.
  double batch_nodes = 0;
  double batch_edges = 0;
  bool plaintext = false;
  bool json = false;
};

// What the size of a batch is.
enum class Basis : uint8_t {
  kBound,     // the most that one can hold
  kGiven,     // what the user says
  kMeasured,  // the mean of batches that were made
};

std::string_view BasisName(Basis basis) {
  switch (basis) {
    case Basis::kBound:
      return "bound";
    case Basis::kGiven:
      return "given";
    case Basis::kMeasured:
      return "measured";
  }
  return "";
}

struct Sized {
  BatchSize batch;
  Basis basis = Basis::kBound;

  bool measured() const { return basis == Basis::kMeasured; }
};

absl::StatusOr<Sized> SizeBatch(const PlanFlags& flags,
                                const PlanGraph& graph) {
  MILLRACE_ASSIGN_OR_RETURN(JobSpec spec, flags.job.SamplingSpec());
  MILLRACE_ASSIGN_OR_RETURN(const Columns columns, flags.job.WantedColumns());
  Sized sized;
  flags.job.InferSeedType(graph.manifest, spec);
  if (!graph.store.empty()) {
    SourceOptions options;
    options.store = graph.store;
    MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<BatchSource> source,
                              OpenSource(options));
    MILLRACE_ASSIGN_OR_RETURN(
        sized.batch, MeasureBatch(*source, spec, columns, flags.batches));
    sized.basis = Basis::kMeasured;
    return sized;
  }
  // Without a store there may be no such split either.
  spec.split.clear();
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(spec, graph.manifest));
  MILLRACE_RETURN_IF_ERROR(CheckColumns(columns, graph.manifest.schema));
  MILLRACE_ASSIGN_OR_RETURN(sized.batch,
                            BoundBatch(job, columns, graph.manifest.schema));
  if (flags.batch_nodes > 0) {
    // Most of the bytes are those of nodes.
    sized.batch.bytes *= flags.batch_nodes / sized.batch.nodes;
    sized.batch.nodes = flags.batch_nodes;
    sized.batch.edges = flags.batch_edges;
    sized.basis = Basis::kGiven;
  }
  return sized;
}

absl::StatusOr<double> WantedRate(const PlanFlags& flags) {
  const bool rate = flags.batches_per_second > 0;
  if (rate == (flags.step_seconds > 0)) {
    return UsageError(
        "the load is not known\ngive either --batches-per-second, or "
        "--step-seconds with --trainers");
  }
  return rate ? flags.batches_per_second : flags.trainers / flags.step_seconds;
}

// What is said after a batch's size.
std::string_view BasisText(Basis basis) {
  switch (basis) {
    case Basis::kBound:
      return " (give STORE to measure it)";
    case Basis::kGiven:
      return " (as given)";
    case Basis::kMeasured:
      return " (measured)";
  }
  return "";
}

std::string RateText(double bits) {
  return bits < 1e9 ? absl::StrFormat("%.1f Mbit/s", bits / 1e6)
                    : absl::StrFormat("%.1f Gbit/s", bits / 1e9);
}

std::string TimeText(double seconds) {
  if (seconds < 120) return absl::StrFormat("%.0f s", std::ceil(seconds));
  if (seconds < 7200) return absl::StrFormat("%.0f min", seconds / 60);
  return absl::StrFormat("%.1f h", seconds / 3600);
}

Json StoreJson(const FleetPlan& plan) {
  return {{"parts", plan.partitions},
          {"bytes",
           std::llround(plan.store.partition_bytes() + plan.store.split_bytes)},
          {"feature_bytes", std::llround(plan.store.feature_bytes)},
          {"split_bytes", std::llround(plan.store.split_bytes)},
          {"partition_bytes",
           std::llround(plan.store.partition_bytes() / plan.partitions)}};
}

Json PlanJson(const PlanRequest& request, const Sized& sized,
              const FleetPlan& plan) {
  return {{"graph", {{"nodes", request.nodes}, {"edges", request.edges}}},
          {"store", StoreJson(plan)},
          {"batch",
           {{"basis", BasisName(sized.basis)},
            {"nodes", sized.batch.nodes},
            {"edges", sized.batch.edges},
            {"bytes", sized.batch.bytes}}},
          {"batches_per_second", request.batches_per_second},
          {"trainers", request.trainers},
          {"machine_factor", request.machine_factor},
          {"servers", plan.servers()},
          {"replicas", plan.replicas},
          {"server",
           {{"disk_bytes", std::llround(plan.disk_bytes)},
            {"memory_bytes", std::llround(plan.memory_bytes)},
            {"mapped_bytes", std::llround(plan.mapped_bytes)},
            {"inflight_bytes", std::llround(plan.inflight_bytes)},
            {"busy_cores", plan.busy_cores},
            {"client_bits_per_second", plan.client_bits},
            {"peer_bits_per_second", plan.peer_bits}}},
          {"trainer",
           {{"bits_per_second", plan.trainer_bits},
            {"cores", plan.trainer_cores},
            {"bytes", std::llround(plan.trainer_bytes)}}},
          {"import",
           {{"seconds", plan.import_seconds},
            {"memory_bytes", std::llround(plan.import_bytes)}}},
          {"partition",
           {{"method", plan.metis_fits ? "metis" : "ldg"},
            {"seconds", plan.partition_seconds},
            {"memory_bytes", std::llround(plan.partition_bytes)}}},
          {"notes", plan.notes}};
}

void PrintDemand(const PlanRequest& request, const Sized& sized,
                 const FleetPlan& plan) {
  const BatchSize& batch = sized.batch;
  std::cout << absl::StrFormat(
      "graph        %.0f nodes, %.0f edges\n"
      "store        %s: features %s, lists and the rest %s, splits %s\n"
      "batch        %s%.0f nodes, %.0f edges, %s%s\n"
      "load         %.4g batches/s of %d trainer%s: %s\n",
      request.nodes, request.edges,
      BytesText(plan.store.partition_bytes() + plan.store.split_bytes),
      BytesText(plan.store.feature_bytes), BytesText(plan.store.graph_bytes),
      BytesText(plan.store.split_bytes),
      sized.basis == Basis::kBound ? "at most " : "", batch.nodes, batch.edges,
      BytesText(batch.bytes), AbslView(BasisText(sized.basis)),
      request.batches_per_second, request.trainers,
      request.trainers == 1 ? "" : "s",
      RateText(8 * request.batches_per_second * batch.bytes));
}

void Print(const PlanRequest& request, const Sized& sized,
           const FleetPlan& plan) {
  PrintDemand(request, sized, plan);
  std::cout << absl::StrFormat(
      "servers      %d: %d partition%s x %d replica%s\n"
      "each server\n"
      "  disk       %s\n"
      "  memory     %s: files %s, batches %s, process %s\n"
      "  cores      %.1f of %.4g busy\n"
      "  network    %s to trainers, %s to other servers, of %s\n"
      "each trainer\n"
      "  network    %s\n"
      "  cores      %.1f for receiving batches\n"
      "  memory     %s for batches that wait\n"
      "making the store, on one host\n"
      "  import     %s, at most %s of memory\n",
      plan.servers(), plan.partitions, plan.partitions == 1 ? "" : "s",
      plan.replicas, plan.replicas == 1 ? "" : "s", BytesText(plan.disk_bytes),
      BytesText(plan.memory_bytes), BytesText(plan.mapped_bytes),
      BytesText(plan.inflight_bytes), BytesText(kProcessBytes), plan.busy_cores,
      request.host.cores, RateText(plan.client_bits), RateText(plan.peer_bits),
      RateText(request.host.network_bits), RateText(plan.trainer_bits),
      plan.trainer_cores, BytesText(plan.trainer_bytes),
      TimeText(plan.import_seconds), BytesText(plan.import_bytes));
  if (plan.partitions > 1) {
    std::cout << absl::StrFormat("  partition  %s, at most %s of memory (%s)\n",
                                 TimeText(plan.partition_seconds),
                                 BytesText(plan.partition_bytes),
                                 plan.metis_fits ? "metis" : "ldg");
  }
  std::cout << (sized.measured()
                    ? absl::StrFormat("cores and seconds: measured constants, "
                                      "times %.2f for this machine\n",
                                      request.machine_factor)
                    : "cores and seconds: measured constants of another "
                      "machine (docs/performance.md, section 4)\n");
  for (const std::string& note : plan.notes) {
    std::cout << "note: " << note << "\n";
  }
}

absl::Status RunPlan(const PlanFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const double rate, WantedRate(flags));
  MILLRACE_ASSIGN_OR_RETURN(const PlanGraph graph, flags.graph.Read());
  MILLRACE_ASSIGN_OR_RETURN(const Sized sized, SizeBatch(flags, graph));
  PlanRequest request;
  request.store_of = [&graph](int parts) { return graph.SizeOf(parts); };
  request.nodes = graph.nodes();
  request.edges = graph.edges();
  request.batch = sized.batch;
  if (sized.measured()) request.machine_factor = MachineFactor(sized.batch);
  request.batches_per_second = rate;
  request.trainers = flags.trainers;
  request.window_bytes =
      std::max(sized.batch.bytes,
               std::min(sized.batch.bytes * flags.job.prefetch_batches(),
                        static_cast<double>(flags.job.prefetch_bytes())));
  request.partitions = flags.parts;
  if (flags.parts == 0 && graph.is_partitioned()) {
    request.partitions = graph.partitions;
  }
  request.replicas = flags.replicas;
  request.tls = !flags.plaintext;
  request.host = {.memory_bytes = static_cast<double>(flags.host_memory),
                  .cores = flags.host_cores,
                  .network_bits = 1e9 * flags.host_network};
  const FleetPlan plan = PlanFleet(request);
  if (flags.json) {
    std::cout << PlanJson(request, sized, plan).dump(2) << "\n";
  } else {
    Print(request, sized, plan);
  }
  return absl::OkStatus();
}

void AddLoad(CLI::App& group, PlanFlags& flags) {
  group
      .add_option("--batches-per-second", flags.batches_per_second,
                  "batches that all trainers together take")
      ->check(Number(0, kInfinity));
  group
      .add_option("--trainers", flags.trainers,
                  "trainer processes, each of which takes a batch a step")
      ->check(WholeNumber(1, 1 << 20));
  group
      .add_option("--step-seconds", flags.step_seconds,
                  "seconds that a trainer computes on a batch")
      ->check(Number(0, kInfinity));
}

void AddHosts(CLI::App& group, PlanFlags& flags) {
  group
      .add_option("--parts", flags.parts,
                  "partitions; 0 means those of STORE, or as few as fit")
      ->check(WholeNumber(0, 1 << 16));
  group
      .add_option("--replicas", flags.replicas,
                  "servers of each partition; 0 means as few as the load needs")
      ->check(WholeNumber(0, 1 << 16));
  group.add_option("--host-memory", flags.host_memory, "memory of a host")
      ->transform(ByteSize())
      ->default_str("64G");
  group.add_option("--host-cores", flags.host_cores, "cores of a host")
      ->check(Number(0.1, 4096));
  group
      .add_option("--host-network", flags.host_network,
                  "network of a host, in Gbit/s")
      ->check(Number(0.001, 1e6));
  group.add_flag("--plaintext", flags.plaintext, "without TLS");
}

}  // namespace

void AddPlanCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "plan", "compute how many hosts of which size a job needs");
  const auto flags = std::make_shared<PlanFlags>();
  flags->graph.AddTo(*command);
  AddLoad(*command->add_option_group("Load"), *flags);
  AddHosts(*command->add_option_group("Hosts"), *flags);
  flags->job.AddTo(*command);
  CLI::Option* nodes =
      command
          ->add_option("--batch-nodes", flags->batch_nodes,
                       "nodes of a batch, as `millrace bench --json` counts "
                       "them for a part of the graph")
          ->check(Number(1, kInfinity));
  CLI::Option* edges =
      command->add_option("--batch-edges", flags->batch_edges, "its edges")
          ->check(Number(1, kInfinity));
  nodes->needs(edges);
  edges->needs(nodes);
  command
      ->add_option("--batches", flags->batches,
                   "batches of STORE to make, to measure them")
      ->check(WholeNumber(1, 1 << 20));
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "  millrace plan cora --fanouts 15,10 --trainers 8 --step-seconds 0.05\n"
      "  millrace plan --nodes 111059956 --edges 3231371744 --features 128 "
      "\\\n      --fanouts 15,10,5 --batches-per-second 200 --host-memory "
      "256G");
  command->callback(
      [flags, &body] { body = [flags] { return RunPlan(*flags); }; });
}

}  // namespace millrace
