// SPDX-License-Identifier: Apache-2.0
// millrace sample: prints one batch as JSON.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/batch_json.h"
#include "client/cli/commands.h"
#include "client/cli/fetch_one.h"
#include "client/flags/job_flags.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/digest.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/request_plan.h"

namespace millrace {
namespace {

// Rejects an empty field of a list, which CLI11 would read as 0.
CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        return text.empty() ? "an empty field is not a number" : "";
      },
      "");
}

struct SampleFlags {
  SourceFlags source;
  JobFlags job;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  std::vector<int64_t> seed_ids;
  std::vector<int64_t> seed_dst_ids;
  std::vector<int64_t> seed_times;
  bool with_features = false;
  bool json = true;
};

// Refuses --seed-dst-ids and --seed-times without --seed-ids, and --seed-ids
// together with --seeds-file.
absl::Status CheckSeedFlags(const SampleFlags& flags) {
  if (!flags.seed_ids.empty()) {
    if (!flags.job.has_seeds_file()) return absl::OkStatus();
    return UsageError(
        "--seed-ids and --seeds-file exclude each other\nleave one out");
  }
  if (flags.seed_dst_ids.empty() && flags.seed_times.empty()) {
    return absl::OkStatus();
  }
  return UsageError(
      StrCat(flags.seed_times.empty() ? "--seed-dst-ids" : "--seed-times",
             " belongs to --seed-ids\ngive those too, or leave it out"));
}

absl::StatusOr<ExplicitSeeds> GivenSeeds(const SampleFlags& flags,
                                         const ResolvedJob& job) {
  const bool edges = job.spec.seed_kind == SeedKind::kEdge;
  const size_t count = flags.seed_ids.size();
  if (flags.seed_dst_ids.size() != (edges ? count : 0)) {
    return UsageError(
        StrCat("--seed-dst-ids has ", flags.seed_dst_ids.size(), " ids, ",
               "--seed-ids ", count,
               "\ngive one destination for each source of --seeds edge, and "
               "none else"));
  }
  if (!flags.seed_times.empty() && flags.seed_times.size() != count) {
    return UsageError(StrCat("--seed-times has ", flags.seed_times.size(),
                             " times for ", count,
                             " seeds\ngive one for each of --seed-ids"));
  }
  ExplicitSeeds seeds;
  seeds.ids = flags.seed_ids;
  seeds.dst = flags.seed_dst_ids;
  seeds.times = flags.seed_times;
  return seeds;
}

absl::StatusOr<BatchRequest> MakeRequest(const SampleFlags& flags,
                                         const ResolvedJob& job,
                                         const Manifest& manifest) {
  MILLRACE_ASSIGN_OR_RETURN(Columns columns, flags.job.WantedColumns());
  columns.original_ids = true;
  columns.edge_ids = true;
  columns.features = flags.with_features;
  if (!flags.seed_ids.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(ExplicitSeeds seeds, GivenSeeds(flags, job));
    return BatchRequest{.epoch = flags.epoch,
                        .batch = flags.batch,
                        .explicit_seeds = std::move(seeds),
                        .columns = columns};
  }
  MILLRACE_ASSIGN_OR_RETURN(std::optional<ExplicitSeeds> seeds,
                            flags.job.Seeds(job.spec.seed_kind));
  MILLRACE_ASSIGN_OR_RETURN(
      const RequestPlan plan,
      RequestPlan::Create(job, manifest, std::move(seeds)));
  return plan.Request(flags.epoch, flags.batch, columns);
}

absl::Status RunSample(const SampleFlags& flags) {
  MILLRACE_RETURN_IF_ERROR(CheckSeedFlags(flags));
  MILLRACE_ASSIGN_OR_RETURN(JobSpec spec, flags.job.SamplingSpec());
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<BatchSource> source,
                            flags.source.Open());
  if (flags.seed_ids.empty() &&
      flags.job.InferSeedType(source->manifest(), spec)) {
    LogSeedType(spec);
  }
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(spec, source->manifest()));
  MILLRACE_ASSIGN_OR_RETURN(BatchRequest request,
                            MakeRequest(flags, job, source->manifest()));
  MILLRACE_ASSIGN_OR_RETURN(const Batch batch,
                            FetchOne(*source, job, std::move(request)));
  const std::string text =
      BatchJson(batch, source->manifest().schema, flags.with_features).dump();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  return absl::OkStatus();
}

}  // namespace

void AddSampleCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("sample", "print one batch as a line of JSON");
  const auto flags = std::make_shared<SampleFlags>();
  flags->source.AddTo(*command);
  flags->job.AddTo(*command);
  flags->source.AddConnectionTo(*command);
  command->add_option("--epoch", flags->epoch, "epoch of the batch");
  command->add_option("--batch", flags->batch, "index of the batch");
  command
      ->add_option("--seed-ids", flags->seed_ids,
                   "seeds by original id, in this order, instead of a split")
      ->check(NotEmpty())
      ->delimiter(',');
  command
      ->add_option("--seed-dst-ids", flags->seed_dst_ids,
                   "--seeds edge: destinations, one for each of --seed-ids")
      ->check(NotEmpty())
      ->delimiter(',');
  command
      ->add_option("--seed-times", flags->seed_times,
                   "times of --seed-ids, for --temporal; default: the nodes' "
                   "own")
      ->check(NotEmpty())
      ->delimiter(',');
  command->add_flag("--with-features", flags->with_features,
                    "add x and y: features and labels");
  command->add_flag("--json", flags->json,
                    "machine-readable output (always on)");
  command->footer(
      "  millrace sample --store cora --fanouts 2,2 --seed-ids 7,2");
  command->callback(
      [flags, &body] { body = [flags] { return RunSample(*flags); }; });
}

}  // namespace millrace
