// SPDX-License-Identifier: Apache-2.0
// millrace bench: measures how fast a source delivers the batches of a job.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/place_report.h"
#include "client/flags/job_flags.h"
#include "client/loader.h"
#include "client/remote_batch_source.h"
#include "common/base/interrupt.h"
#include "common/base/process_usage.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/cli/numbers.h"

namespace millrace {
namespace {

struct BenchFlags {
  SourceFlags source;
  JobFlags job;
  uint32_t batches = 200;
  double rate = 0;  // batches per second; 0 means as fast as they come
  bool json = false;
};

// How soon a waiting program notices an interrupt.
constexpr absl::Duration kInterruptCheck = absl::Milliseconds(100);

struct Measured {
  int64_t batches = 0;
  int64_t nodes = 0;
  int64_t edges = 0;
  int64_t bytes = 0;
  std::optional<uint64_t> received_bytes;  // from servers, including for caches
  int64_t calls = 0, hedged_calls = 0;     // to servers
  std::optional<PlaceCounts> places;       // nullopt with servers
  double seconds = 0;
  double wait_seconds = 0;
  double cpu_seconds = 0;  // used by this process
  int64_t peak_rss_bytes = 0;
};

// Waits until batch number `index` is due, at `rate` batches per second.
absl::Status AwaitTurn(SteadyTime start, int64_t index, double rate) {
  const SteadyTime due =
      start + absl::Seconds(static_cast<double>(index) / rate);
  while (true) {
    const absl::Duration left = due - SteadyNow();
    if (left <= absl::ZeroDuration()) return absl::OkStatus();
    absl::SleepFor(std::min(left, kInterruptCheck));
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  }
}

absl::StatusOr<Measured> Consume(Loader& loader, uint32_t batches,
                                 double rate) {
  Measured measured;
  const SteadyTime start = SteadyNow();
  const double cpu_start = ProcessCpuSeconds();
  Progress progress("bench", batches, "batches");
  while (measured.batches < batches) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (rate > 0) {
      MILLRACE_RETURN_IF_ERROR(AwaitTurn(start, measured.batches, rate));
    }
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<LoaderStep> step,
                              loader.Next());
    if (!step.has_value()) break;
    ++measured.batches;
    measured.bytes += static_cast<int64_t>(step->batch->total_bytes());
    for (const NodeBlock& block : step->batch->nodes) {
      measured.nodes += block.count();
    }
    for (const EdgeBlock& block : step->batch->edges) {
      measured.edges += block.edge_count();
    }
    progress.Add(1);
  }
  progress.Finish();
  measured.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  measured.cpu_seconds = ProcessCpuSeconds() - cpu_start;
  measured.wait_seconds = absl::ToDoubleSeconds(loader.waited());
  measured.peak_rss_bytes = ProcessPeakRssBytes();
  return measured;
}

void Print(const Measured& m, bool json) {
  const double batches = std::max<double>(1, static_cast<double>(m.batches));
  if (json) {
    nlohmann::ordered_json line;
    line["batches"] = m.batches;
    line["nodes"] = m.nodes;
    line["edges"] = m.edges;
    line["bytes"] = m.bytes;
    if (m.received_bytes) {
      line["received_bytes"] = *m.received_bytes;
      line["calls"] = m.calls;
      line["hedged_calls"] = m.hedged_calls;
    }
    if (m.places) AddPlaces(*m.places, line);
    line["seconds"] = m.seconds;
    line["wait_seconds"] = m.wait_seconds;
    line["cpu_seconds"] = m.cpu_seconds;
    line["peak_rss_bytes"] = m.peak_rss_bytes;
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("batches          %ld\n", static_cast<long>(m.batches));
  std::printf("batches/s        %.1f\n", batches / m.seconds);
  std::printf("edges/s          %.3g\n",
              static_cast<double>(m.edges) / m.seconds);
  std::printf("GB/s             %.3f\n",
              1e-9 * static_cast<double>(m.bytes) / m.seconds);
  std::printf("CPU s per batch  %.4f (this process)\n",
              m.cpu_seconds / batches);
  std::printf("MB per batch     %.2f\n",
              1e-6 * static_cast<double>(m.bytes) / batches);
  if (m.received_bytes) {
    std::printf("MB received      %.2f (total)\n",
                1e-6 * static_cast<double>(*m.received_bytes));
    std::printf("calls            %lld, %lld of them hedged\n",
                static_cast<long long>(m.calls),
                static_cast<long long>(m.hedged_calls));
  }
  const std::string places = m.places ? DescribePlaces(*m.places) : "";
  if (!places.empty()) std::printf("%s\n", places.c_str());
  std::printf("peak RSS         %.2f GB\n",
              1e-9 * static_cast<double>(m.peak_rss_bytes));
}

absl::Status RunBench(const BenchFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(JobSpec spec, flags.job.SamplingSpec());
  LoaderOptions options;
  MILLRACE_ASSIGN_OR_RETURN(options.columns, flags.job.WantedColumns());
  MILLRACE_ASSIGN_OR_RETURN(options.seeds, flags.job.Seeds(spec.seed_kind));
  options.prefetch_batches = flags.job.prefetch_batches();
  options.prefetch_bytes = flags.job.prefetch_bytes();
  options.epochs = flags.batches;  // enough, since an epoch has >= 1 batch
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<BatchSource> source,
                            flags.source.Open());
  if (flags.job.InferSeedType(source->manifest(), spec)) LogSeedType(spec);
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                            Loader::Create(source, spec, std::move(options)));
  MILLRACE_ASSIGN_OR_RETURN(Measured measured,
                            Consume(*loader, flags.batches, flags.rate));
  measured.places = source->counts();
  const auto* fleet = dynamic_cast<const RemoteBatchSource*>(source.get());
  if (fleet != nullptr) {
    measured.received_bytes = fleet->received_bytes();
    measured.calls = fleet->calls();
    measured.hedged_calls = fleet->hedged_calls();
  }
  Print(measured, flags.json);
  return absl::OkStatus();
}

}  // namespace

void AddBenchCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand("bench", "loader throughput");
  const auto flags = std::make_shared<BenchFlags>();
  flags->source.AddTo(*command);
  flags->job.AddTo(*command);
  flags->source.AddConnectionTo(*command);
  command
      ->add_option("--batches", flags->batches,
                   "batches to consume, over as many epochs as it takes")
      ->check(WholeNumber(1, 1 << 30));
  command
      ->add_option("--rate", flags->rate,
                   "batches per second to take at most, for a steady load; 0 "
                   "takes them as fast as they come")
      ->check(Number(0, 1e6));
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("  millrace bench --store cora-2 --fanouts 15,10,5");
  command->callback(
      [flags, &body] { body = [flags] { return RunBench(*flags); }; });
}

}  // namespace millrace
