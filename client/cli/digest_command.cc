// SPDX-License-Identifier: Apache-2.0
// millrace digest: prints the fingerprint of every batch of an epoch.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "client/cli/commands.h"
#include "client/cli/place_report.h"
#include "client/flags/job_flags.h"
#include "client/loader.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/sample/digest.h"

namespace millrace {
namespace {

struct DigestFlags {
  SourceFlags source;
  JobFlags job;
  uint32_t epoch = 0;
  uint32_t batches = 0;  // 0 means all
  bool json = false;
};

void PrintBatch(const DigestFlags& flags, const Batch& batch,
                const Sha256& digest) {
  if (!flags.json) {
    std::printf("%u %u %s\n", batch.epoch, batch.index, Hex(digest).c_str());
    return;
  }
  nlohmann::ordered_json line;
  line["epoch"] = batch.epoch;
  line["batch"] = batch.index;
  line["digest"] = Hex(digest);
  std::printf("%s\n", line.dump().c_str());
}

void PrintTotal(const DigestFlags& flags, const std::string& hash,
                const std::optional<PlaceCounts>& places) {
  const std::string text = places ? DescribePlaces(*places) : "";
  if (!text.empty()) LogInfo(text);
  if (!flags.json) {
    std::printf("total %s\n", hash.c_str());
    return;
  }
  nlohmann::ordered_json line;
  line["total"] = hash;
  if (places) AddPlaces(*places, line);
  std::printf("%s\n", line.dump().c_str());
}

absl::Status RunDigest(const DigestFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(JobSpec spec, flags.job.SamplingSpec());
  MILLRACE_ASSIGN_OR_RETURN(const Columns wanted, flags.job.WantedColumns());
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<BatchSource> source,
                            flags.source.Open());
  if (flags.job.InferSeedType(source->manifest(), spec)) LogSeedType(spec);
  LoaderOptions options;
  options.first_epoch = flags.epoch;
  options.columns = DigestColumns(wanted.features, wanted.edge_features);
  options.prefetch_batches = flags.job.prefetch_batches();
  options.prefetch_bytes = flags.job.prefetch_bytes();
  MILLRACE_ASSIGN_OR_RETURN(options.seeds, flags.job.Seeds(spec.seed_kind));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                            Loader::Create(source, spec, std::move(options)));
  const uint32_t total =
      flags.batches == 0 ? loader->batches_per_epoch()
                         : std::min(flags.batches, loader->batches_per_epoch());
  // On a terminal the printed lines themselves show the progress.
  std::optional<Progress> progress;
  if (isatty(STDOUT_FILENO) == 0) progress.emplace("digest", total, "batches");
  DigestTotal sum;
  for (uint32_t i = 0; i < total; ++i) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(std::optional<LoaderStep> step, loader->Next());
    if (!step.has_value()) break;
    const Sha256 digest = DigestBatch(*step->batch, source->manifest().schema);
    PrintBatch(flags, *step->batch, digest);
    sum.Add(digest);
    if (progress.has_value()) progress->Add(1);
  }
  if (progress.has_value()) progress->Finish();
  PrintTotal(flags, Hex(sum.Finish()), source->counts());
  return absl::OkStatus();
}

}  // namespace

void AddDigestCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "digest",
      "print one line `EPOCH BATCH HASH` per batch, then `total HASH`");
  const auto flags = std::make_shared<DigestFlags>();
  flags->source.AddTo(*command);
  flags->job.AddTo(*command);
  flags->source.AddConnectionTo(*command);
  command->add_option("--epoch", flags->epoch, "epoch of the batches");
  command->add_option("--batches", flags->batches,
                      "number of batches, from the first; 0 means all");
  command->add_flag("--json", flags->json, "print one JSON object per line");
  command->footer(
      "  millrace digest --store cora --fanouts 25,10 --batch-size 64 "
      "--epoch 3");
  command->callback(
      [flags, &body] { body = [flags] { return RunDigest(*flags); }; });
}

}  // namespace millrace
