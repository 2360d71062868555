// SPDX-License-Identifier: Apache-2.0
// millrace partition: makes a partitioned store from a dataset.
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/flags/job_flags.h"
#include "client/flags/option_errors.h"
#include "common/base/dtype.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/cli/program.h"
#include "common/cli/report.h"
#include "common/cli/words.h"
#include "common/graph/schema.h"
#include "common/partition/partition.h"

namespace millrace {
namespace {

const std::map<std::string, PartitionMethod> kMethods = {
    {"metis", PartitionMethod::kMetis},
    {"ldg", PartitionMethod::kLdg},
    {"random", PartitionMethod::kRandom},
    {"hash", PartitionMethod::kHash},
    {"given", PartitionMethod::kGiven}};
const std::map<std::string, StoredDirections> kDirections = {
    {"in", StoredDirections::kIn},
    {"out", StoredDirections::kOut},
    {"both", StoredDirections::kBoth}};
const std::map<std::string, HotnessMethod> kHotness = {
    {"degree", HotnessMethod::kDegree},
    {"presample", HotnessMethod::kPresample}};

struct PartitionFlags {
  std::string dataset;
  std::string out;
  std::string method = "metis";
  std::string directions = "in";
  std::string hot = "degree";
  std::string hot_job;
  std::string feature_dtype;
  std::vector<std::string> assignment;
  PartitionOptions options;
  bool json = false;
};

// Parses "F.npy" for the node type of a homogeneous graph, and "TYPE=F.npy" for
// one of several types.
absl::Status ParseAssignment(const std::vector<std::string>& values,
                             PartitionOptions& options) {
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    const bool named = equals != std::string::npos;
    std::string type =
        named ? value.substr(0, equals) : std::string(kHomogeneousType);
    std::string file = named ? value.substr(equals + 1) : value;
    if (!options.assignment.emplace(type, std::move(file)).second) {
      return UsageError(
          StrCat("--assignment: node type \"", type, "\" is named twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<JobSpec> ParseHotJob(const std::string& text) {
  CLI::App parser("JOB");
  JobFlags flags;
  flags.AddTo(parser);
  CheckValues(parser);
  try {
    parser.parse(text, /*program_name_included=*/false);
  } catch (const CLI::ParseError& error) {
    return UsageError(
        StrCat("--hot-job '", text, "': ", DescribeParseError(parser, error)));
  }
  absl::StatusOr<JobSpec> spec = flags.SamplingSpec();
  if (spec.ok()) return spec;
  const absl::Status refusal = InTermsOfOptions(spec.status());
  return UsageError(
      StrCat("--hot-job '", text, "': ", std::string(refusal.message())));
}

absl::StatusOr<PartitionOptions> OptionsOf(const PartitionFlags& flags) {
  PartitionOptions options = flags.options;
  options.method = kMethods.at(flags.method);
  options.directions = kDirections.at(flags.directions);
  options.hot = kHotness.at(flags.hot);
  MILLRACE_RETURN_IF_ERROR(ParseAssignment(flags.assignment, options));
  if (!flags.feature_dtype.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(options.feature_dtype,
                              DTypeFromName(flags.feature_dtype));
  }
  if (flags.hot_job.empty()) return options;
  if (options.hot != HotnessMethod::kPresample) {
    return UsageError("--hot-job needs --hot presample");
  }
  MILLRACE_ASSIGN_OR_RETURN(options.hot_job, ParseHotJob(flags.hot_job));
  return options;
}

nlohmann::json ReportJson(const PartitionReport& report) {
  nlohmann::json parts = nlohmann::json::array();
  for (const PartSummary& part : report.parts) {
    parts.push_back({{"nodes", part.nodes},
                     {"edges", part.edges},
                     {"cut_edges", part.cut_edges}});
  }
  return {{"nodes", report.nodes},
          {"edges", report.edges},
          {"cut_edges", report.cut_edges},
          {"node_balance", report.node_balance()},
          {"edge_balance", report.edge_balance()},
          {"parts", std::move(parts)}};
}

double Percent(int64_t part, int64_t whole) {
  return whole == 0
             ? 0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void PrintReport(const PartitionReport& report, const std::string& out) {
  absl::PrintF("%9s %14s %7s %14s %7s %7s\n", "partition", "nodes", "share",
               "edges", "share", "cut");
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const PartSummary& part = report.parts[i];
    absl::PrintF("%9d %14d %6.2f%% %14d %6.2f%% %6.2f%%\n", i, part.nodes,
                 Percent(part.nodes, report.nodes), part.edges,
                 Percent(part.edges, report.edges),
                 Percent(part.cut_edges, part.edges));
  }
  absl::PrintF("%s: %d nodes (balance %.3f), %d edges (balance %.3f), ", out,
               report.nodes, report.node_balance(), report.edges,
               report.edge_balance());
  absl::PrintF("%d of them cut (%.2f%%)\n", report.cut_edges,
               Percent(report.cut_edges, report.edges));
}

absl::Status RunPartition(const PartitionFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const PartitionOptions options, OptionsOf(flags));
  MILLRACE_ASSIGN_OR_RETURN(
      const PartitionReport report,
      PartitionDataset(flags.dataset, flags.out, options));
  if (flags.json) {
    absl::PrintF("%s\n", ReportJson(report).dump());
  } else {
    PrintReport(report, flags.out);
  }
  return absl::OkStatus();
}

void AddInputOptions(CLI::App& command, PartitionFlags& flags) {
  PartitionOptions& options = flags.options;
  command.add_option("DATASET", flags.dataset, "dataset to partition")
      ->required();
  command.add_option("--parts", options.parts, "number of partitions")
      ->required();
  command.add_option("--out", flags.out, "store to write; must not exist")
      ->required()
      ->type_name("STORE");
  command
      .add_option("--method", flags.method,
                  "metis: few cut edges, graph in memory; ldg: streaming; "
                  "random: equal shares; hash: by original id only; given: "
                  "--assignment")
      ->check(OneOf(kMethods));
  command
      .add_option("--assignment", flags.assignment,
                  "F.npy or TYPE=F.npy: the partition of each node, for "
                  "--method given; repeatable")
      ->type_name("FILE");
  command.add_option("--seed", options.seed, "seed for metis, random and hash");
}

void AddStoreOptions(CLI::App& command, PartitionFlags& flags) {
  PartitionOptions& options = flags.options;
  command
      .add_option("--directions", flags.directions,
                  "neighbour lists to store: in, out or both")
      ->check(OneOf(kDirections));
  command
      .add_option("--hot", flags.hot,
                  "order of ids inside a partition: by degree, or by the "
                  "visits of sampled batches")
      ->check(OneOf(kHotness));
  command
      .add_option("--hot-job", flags.hot_job,
                  "options of the job that --hot presample samples, at most "
                  "100 batches (default: --split train --fanouts 15,10,5 with "
                  "--seed)")
      ->type_name("'JOB'");
  command
      .add_option("--feature-dtype", flags.feature_dtype,
                  "convert node features (default: as in the dataset)")
      ->check(OneOf({"float32", "float16", "bfloat16"}));
  command.add_flag("--neighbor-original-ids,!--no-neighbor-original-ids",
                   options.neighbor_original_ids,
                   "store the original id of each neighbour in the lists, "
                   "which --method labor needs (4 or 8 bytes per edge)");
  command
      .add_option("--memory", options.memory_bytes,
                  "bytes of memory for windows of rows and lists, in addition "
                  "to METIS and data that grows with the number of nodes")
      ->transform(ByteSize())
      ->default_str("1G");
  command.add_flag("--json", flags.json, "print the report as JSON");
}

}  // namespace

void AddPartitionCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "partition", "divide a dataset into the partitions of a store");
  const auto flags = std::make_shared<PartitionFlags>();
  AddInputOptions(*command, *flags);
  AddStoreOptions(*command, *flags);
  command->footer("  millrace partition cora --parts 2 --out cora-2");
  command->callback(
      [flags, &body] { body = [flags] { return RunPartition(*flags); }; });
}

}  // namespace millrace
