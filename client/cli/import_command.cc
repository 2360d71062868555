// SPDX-License-Identifier: Apache-2.0
// millrace import: makes a dataset.
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/commands.h"
#include "client/cli/import_formats.h"
#include "client/cli/label_json.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/cli/numbers.h"
#include "common/cli/program.h"
#include "common/cli/words.h"
#include "common/file/atomic_directory.h"
#include "common/graph/label_summary.h"
#include "common/graph/manifest.h"
#include "common/graph/store.h"
#include "common/ingest/formats/name_output.h"
#include "common/ingest/formats/owner_output.h"
#include "common/ingest/import_options.h"
#include "common/ingest/importer.h"

namespace millrace {
namespace {

const std::map<std::string, SelfLoops> kSelfLoops = {
    {"keep", SelfLoops::kKeep},
    {"add", SelfLoops::kAdd},
    {"remove", SelfLoops::kRemove}};
const std::map<std::string, EdgeSplitBy> kEdgeSplitBys = {
    {"random", EdgeSplitBy::kRandom}, {"time", EdgeSplitBy::kTime}};
const std::map<std::string, Normalization> kNormalizations = {
    {"none", Normalization::kNone},
    {"row", Normalization::kRow},
    {"standard", Normalization::kStandard}};

// Reads the summary of the labels back from the new dataset, as `inspect` does.
absl::StatusOr<LabelSummaries> SummarizeTarget(const std::string& target) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::Open(target));
  MILLRACE_ASSIGN_OR_RETURN(LabelSummaries labels, SummarizeLabels(*store));
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!labels[i].has_value() || !labels[i]->sparse) continue;
    LogWarning(
        SparseClassesText(*labels[i], store->schema().node_types[i].name));
  }
  return labels;
}

void PrintJson(const std::string& target, const Manifest& manifest,
               const LabelSummaries& labels) {
  nlohmann::json json = {{"dataset", target},
                         {"nodes", nlohmann::json::object()},
                         {"edges", nlohmann::json::object()},
                         {"labels", nlohmann::json::object()},
                         {"splits", nlohmann::json::array()}};
  const Schema& schema = manifest.schema;
  for (size_t i = 0; i < schema.node_types.size(); ++i) {
    const NodeType& type = schema.node_types[i];
    json["nodes"][type.name] = type.count;
    if (labels[i].has_value()) {
      json["labels"][type.name] = LabelJson(*labels[i]);
    }
  }
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    json["edges"][schema.RelationName(static_cast<int>(i))] =
        schema.relations[i].edge_count;
  }
  for (const SplitInfo& split : manifest.splits) {
    json["splits"].push_back({{"type", schema.node_types[split.type].name},
                              {"name", split.name},
                              {"count", split.count}});
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    json["splits"].push_back({{"type", schema.RelationName(split.relation)},
                              {"name", split.name},
                              {"count", split.count}});
  }
  std::cout << json.dump() << "\n";
}

void PrintText(const std::string& target, const Manifest& manifest,
               const LabelSummaries& labels) {
  const Schema& schema = manifest.schema;
  std::cout << "dataset " << target << "\n";
  for (size_t i = 0; i < schema.node_types.size(); ++i) {
    const NodeType& type = schema.node_types[i];
    std::cout << "  " << type.name << ": " << type.count << " nodes";
    if (type.feature.present()) {
      std::cout << ", " << type.feature.row_shape[0] << " features";
    }
    if (labels[i].has_value()) std::cout << ", " << LabelText(*labels[i]);
    if (type.has_time) std::cout << ", times";
    std::cout << "\n";
  }
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    std::cout << "  " << schema.RelationName(static_cast<int>(i)) << ": "
              << schema.relations[i].edge_count << " edges\n";
  }
  for (const SplitInfo& split : manifest.splits) {
    std::cout << "  split " << split.name << " of "
              << schema.node_types[split.type].name << ": " << split.count
              << "\n";
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    std::cout << "  split " << split.name << " of "
              << schema.RelationName(split.relation) << ": " << split.count
              << "\n";
  }
}

absl::StatusOr<Manifest> Import(const ImportFlags& flags,
                                const ImportFormat& format) {
  ImportFlags resolved = flags;
  ImportOptions& options = resolved.options;
  // If there are folds, the fractions can only be the format's default.
  if (options.folds != 0) options.split_fractions.clear();
  options.self_loops = kSelfLoops.at(flags.self_loops);
  options.normalize_features = kNormalizations.at(flags.normalize_features);
  options.edge_split_by = kEdgeSplitBys.at(flags.edge_split_by);
  const std::string& owners = flags.assignment_out;
  // Cheap checks first: describing a graph may mean reading it.
  MILLRACE_RETURN_IF_ERROR(AtomicDirectory::CheckTarget(flags.target));
  if (!owners.empty()) MILLRACE_RETURN_IF_ERROR(CheckNewOwnerFile(owners));
  MILLRACE_ASSIGN_OR_RETURN(const RawGraph graph, format.open(resolved));
  if (!owners.empty()) MILLRACE_RETURN_IF_ERROR(CheckOwners(graph, owners));
  const std::string& names = flags.names_out;
  if (!names.empty()) MILLRACE_RETURN_IF_ERROR(CheckNames(graph, names));
  MILLRACE_ASSIGN_OR_RETURN(Manifest manifest,
                            ImportGraph(graph, options, flags.target));
  if (!owners.empty()) MILLRACE_RETURN_IF_ERROR(WriteOwners(graph, owners));
  if (!names.empty()) MILLRACE_RETURN_IF_ERROR(WriteNames(graph, names));
  return manifest;
}

// Adds advice to errors about the input if they have none.
absl::Status AdviseOnInput(const absl::Status& status) {
  if (GetFieldError(status).has_value() || !ReasonOf(status).empty() ||
      HasAdvice(status)) {
    return status;
  }
  const std::string what(status.message());
  if (absl::IsInvalidArgument(status)) {
    return absl::InvalidArgumentError(
        what + "\ncorrect the input and import it again; nothing was written");
  }
  if (absl::IsDataLoss(status)) {
    return absl::DataLossError(
        what +
        "\nthe input is damaged: download or re-create that file, then "
        "import again; nothing was written");
  }
  return status;
}

absl::Status RunImport(const ImportFlags& flags, const ImportFormat& format) {
  const absl::StatusOr<Manifest> imported = Import(flags, format);
  if (!imported.ok()) return AdviseOnInput(imported.status());
  MILLRACE_ASSIGN_OR_RETURN(const LabelSummaries labels,
                            SummarizeTarget(flags.target));
  flags.json ? PrintJson(flags.target, *imported, labels)
             : PrintText(flags.target, *imported, labels);
  return absl::OkStatus();
}

void AddEdgeSplitOptions(CLI::App& command, ImportFlags& flags) {
  ImportOptions& options = flags.options;
  CLI::Option* fractions =
      command
          .add_option(
              "--edge-split-fractions", options.edge_split_fractions,
              "make splits of edges with these shares of train, valid and "
              "test, e.g. 0.8,0.1,0.1")
          ->delimiter(',')
          ->allow_extra_args(false);
  command
      .add_option("--edge-split-by", flags.edge_split_by,
                  "random: valid and test, and their reverses, are not in the "
                  "graph; time: train has the earliest edges, and all are in "
                  "the graph")
      ->check(OneOf(kEdgeSplitBys))
      ->needs(fractions);
  command
      .add_option("--edge-split-type", options.edge_split_type,
                  "the relation to split, if there are several")
      ->type_name("SRC__NAME__DST")
      ->needs(fractions);
}

void AddSharedOptions(CLI::App& command, ImportFlags& flags) {
  ImportOptions& options = flags.options;
  command.add_option("--out", flags.target, "dataset to write; must not exist")
      ->required()
      ->type_name("DATASET");
  command.add_flag("--undirected", options.undirected,
                   "add the reverse of every edge inside one node type");
  command.add_flag("--add-reverse", options.add_reverse,
                   "add a relation DST__rev_NAME__SRC for every relation");
  command.add_flag("--coalesce", options.coalesce,
                   "keep only the edge with the lowest id for each (source, "
                   "destination)");
  command
      .add_option("--self-loops", flags.self_loops,
                  "keep, add (to nodes that have none) or remove")
      ->check(OneOf(kSelfLoops));
  command
      .add_option("--normalize-features", flags.normalize_features,
                  "none, row (rows sum to 1, as PyG's NormalizeFeatures) or "
                  "standard (columns with mean 0 and standard deviation 1)")
      ->check(OneOf(kNormalizations));
  CLI::Option* fractions =
      command
          .add_option(
              "--split-fractions", options.split_fractions,
              "shares of train, valid and test among the labelled nodes, "
              "e.g. 0.8,0.1,0.1; replaces the input's splits")
          ->delimiter(',')
          ->allow_extra_args(false);
  command
      .add_option("--folds", options.folds,
                  "number of cross-validation folds of the labelled nodes, at "
                  "least 3, with equal shares of each class; makes the splits "
                  "trainI, validI and testI for I from 0 and replaces the "
                  "input's splits")
      ->check(WholeNumber(3, 1000))
      ->excludes(fractions);
  command.add_option("--split-seed", options.split_seed,
                     "seed for --split-fractions, --folds and "
                     "--edge-split-fractions");
  AddEdgeSplitOptions(command, flags);
  command
      .add_option("--memory", options.memory_bytes,
                  "bytes of memory for edges; the rest is kept on disk")
      ->transform(ByteSize())
      ->default_str("1G");
  command.add_flag("--json", flags.json, "print the result as JSON");
}

void AddFormat(const ImportFormat& format, CLI::App& import,
               CommandBody& body) {
  CLI::App* command = import.add_subcommand(format.name, format.help);
  // Kept alive by the body of the command.
  auto flags = std::make_shared<ImportFlags>();
  format.add_options(*command, *flags);
  AddSharedOptions(*command, *flags);
  command->footer(std::string("  millrace import ") + format.example);
  command->callback([flags, &format, &body] {
    body = [flags, &format] { return RunImport(*flags, format); };
  });
}

}  // namespace

void AddImportCommand(CLI::App& app, CommandBody& body) {
  CLI::App* import =
      app.add_subcommand("import", "make a dataset from a graph's files");
  import->require_subcommand(1);
  for (const ImportFormat& format : ImportFormats()) {
    AddFormat(format, *import, body);
  }
}

}  // namespace millrace
