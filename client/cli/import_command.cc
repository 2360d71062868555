// SPDX-License-Identifier: Apache-2.0
// millrace import: makes datasets.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "client/cli/commands.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/program.h"
#include "common/graph/manifest.h"
#include "common/ingest/fake_importer.h"
#include "common/ingest/import_options.h"
#include "common/ingest/importer.h"
#include "common/ingest/npy_importer.h"
#include "common/ingest/ogb_importer.h"

namespace millrace {
namespace {

const std::map<std::string, SelfLoops> kSelfLoops = {
    {"keep", SelfLoops::kKeep},
    {"add", SelfLoops::kAdd},
    {"remove", SelfLoops::kRemove}};
const std::map<std::string, Normalization> kNormalizations = {
    {"none", Normalization::kNone},
    {"row", Normalization::kRow},
    {"standard", Normalization::kStandard}};

// Options as they were typed. Kept alive by the body of the command.
struct ImportFlags {
  ImportOptions options;
  std::string self_loops = "keep";
  std::string normalize_features = "none";
  std::string target;
  bool json = false;

  FakeInput fake;

  std::string ogb_directory;
  std::string ogb_split;

  std::vector<std::string> edges, node_counts;
  std::vector<std::string> features, labels, node_times;
  std::vector<std::string> edge_weights, edge_times, edge_types, edge_features;
  std::vector<std::string> train, valid, test;
};

// "NAME=FILE" or "FILE" (name "").
std::pair<std::string, std::string> SplitName(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

absl::StatusOr<NamedFiles> ParseFiles(const std::string& option,
                                      const std::vector<std::string>& texts) {
  NamedFiles files;
  for (const std::string& text : texts) {
    const auto [name, path] = SplitName(text);
    if (!files.emplace(name, path).second) {
      return absl::InvalidArgumentError(
          StrCat(option, " ", text, ": given twice for ",
                 name.empty() ? "the same type" : name));
    }
  }
  return files;
}

absl::StatusOr<NpyInput> ParseNpyInput(const ImportFlags& flags) {
  NpyInput input;
  for (const std::string& text : flags.edges) {
    input.edges.push_back(SplitName(text));
  }
  for (const std::string& text : flags.node_counts) {
    const auto [name, number] = SplitName(text);
    int64_t count = 0;
    if (!absl::SimpleAtoi(number, &count) || count < 0) {
      return absl::InvalidArgumentError(
          StrCat("--num-nodes ", text, ": give N or TYPE=N"));
    }
    input.node_counts[name] = count;
  }
  const std::pair<const char*,
                  std::pair<const std::vector<std::string>*, NamedFiles*>>
      columns[] = {
          {"--features", {&flags.features, &input.features}},
          {"--labels", {&flags.labels, &input.labels}},
          {"--node-times", {&flags.node_times, &input.node_times}},
          {"--edge-weights", {&flags.edge_weights, &input.edge_weights}},
          {"--edge-times", {&flags.edge_times, &input.edge_times}},
          {"--edge-types", {&flags.edge_types, &input.edge_types}},
          {"--edge-features", {&flags.edge_features, &input.edge_features}},
          {"--train", {&flags.train, &input.train}},
          {"--valid", {&flags.valid, &input.valid}},
          {"--test", {&flags.test, &input.test}}};
  for (const auto& [option, column] : columns) {
    MILLRACE_ASSIGN_OR_RETURN(*column.second,
                              ParseFiles(option, *column.first));
  }
  return input;
}

absl::StatusOr<RawGraph> DescribeOgbFlags(const ImportFlags& flags) {
  OgbInput input;
  input.directory = flags.ogb_directory;
  input.split = flags.ogb_split;
  if (!input.split.empty() && !flags.options.split_fractions.empty()) {
    return absl::InvalidArgumentError(
        "--split and --split-fractions exclude each other");
  }
  MILLRACE_ASSIGN_OR_RETURN(input.features,
                            ParseFiles("--features", flags.features));
  return DescribeOgb(input, flags.options);
}

absl::StatusOr<RawGraph> DescribeNpyFlags(const ImportFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const NpyInput input, ParseNpyInput(flags));
  return DescribeNpy(input);
}

absl::StatusOr<RawGraph> DescribeFakeFlags(const ImportFlags& flags) {
  return DescribeFake(flags.fake);
}

void PrintJson(const std::string& target, const Manifest& manifest) {
  nlohmann::json json = {{"dataset", target},
                         {"nodes", nlohmann::json::object()},
                         {"edges", nlohmann::json::object()},
                         {"splits", nlohmann::json::array()}};
  const Schema& schema = manifest.schema;
  for (const NodeType& type : schema.node_types) {
    json["nodes"][type.name] = type.count;
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
  std::cout << json.dump() << "\n";
}

void PrintText(const std::string& target, const Manifest& manifest) {
  const Schema& schema = manifest.schema;
  std::cout << "dataset " << target << "\n";
  for (const NodeType& type : schema.node_types) {
    std::cout << "  " << type.name << ": " << type.count << " nodes";
    if (type.feature.present()) {
      std::cout << ", " << type.feature.row_shape[0] << " features";
    }
    if (type.label.present()) std::cout << ", labels";
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
}

using Describe = absl::StatusOr<RawGraph> (*)(const ImportFlags&);

absl::StatusOr<Manifest> Import(const ImportFlags& flags, Describe describe) {
  ImportOptions options = flags.options;
  options.self_loops = kSelfLoops.at(flags.self_loops);
  options.normalize_features = kNormalizations.at(flags.normalize_features);
  MILLRACE_ASSIGN_OR_RETURN(const RawGraph graph, describe(flags));
  return ImportGraph(graph, options, flags.target);
}

// What is wrong with an input is mended there, whatever reads it.
absl::Status AdviseOnInput(const absl::Status& status) {
  const std::string what(status.message());
  if (what.starts_with("--") || what.find('\n') != std::string::npos) {
    return status;
  }
  if (absl::IsInvalidArgument(status)) {
    return absl::InvalidArgumentError(
        what + "\ncorrect the input and import it again; nothing was written");
  }
  if (absl::IsDataLoss(status)) {
    return absl::DataLossError(
        what +
        "\nthe input is damaged: get or make that file again, then import "
        "again; nothing was written");
  }
  return status;
}

absl::Status RunImport(const ImportFlags& flags, Describe describe) {
  const absl::StatusOr<Manifest> imported = Import(flags, describe);
  if (!imported.ok()) return AdviseOnInput(imported.status());
  const Manifest& manifest = *imported;
  flags.json ? PrintJson(flags.target, manifest)
             : PrintText(flags.target, manifest);
  return absl::OkStatus();
}

// Options of all importers.
void AddSharedOptions(CLI::App& command, ImportFlags& flags) {
  ImportOptions& options = flags.options;
  command.add_option("--out", flags.target, "Dataset to write; must not exist")
      ->required();
  command.add_flag("--undirected", options.undirected,
                   "Add the reverse of every edge inside one node type");
  command.add_flag("--add-reverse", options.add_reverse,
                   "Add a relation DST__rev_NAME__SRC for every relation");
  command.add_flag("--coalesce", options.coalesce,
                   "Keep the lowest edge id of equal (source, destination)");
  command
      .add_option("--self-loops", flags.self_loops,
                  "keep, add (where a node has none) or remove")
      ->check(CLI::IsMember(kSelfLoops));
  command
      .add_option("--normalize-features", flags.normalize_features,
                  "none, row (rows sum to 1, as PyG's NormalizeFeatures) or "
                  "standard (columns of mean 0, deviation 1)")
      ->check(CLI::IsMember(kNormalizations));
  command
      .add_option("--split-fractions", options.split_fractions,
                  "Shares of train, valid and test among the labelled nodes, "
                  "e.g. 0.8,0.1,0.1; replaces the input's splits")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--split-seed", options.split_seed,
                     "Seed of --split-fractions");
  command
      .add_option("--memory", options.memory_bytes,
                  "Bytes for edges in memory; the rest waits on disk")
      ->transform(ByteSize())
      ->default_str("1G");
  command.add_flag("--json", flags.json, "Print the result as JSON");
}

void AddFiles(CLI::App& command, const char* option,
              std::vector<std::string>& files, const char* help) {
  command.add_option(option, files, help)
      ->type_name("[NAME=]FILE")
      ->allow_extra_args(false);
}

void AddOgb(CLI::App& import, const std::shared_ptr<ImportFlags>& flags,
            CommandBody& body) {
  CLI::App* ogb = import.add_subcommand(
      "ogb", "A folder in OGB's raw layout: raw/, split/NAME/");
  ogb->add_option("DIR", flags->ogb_directory, "The folder with raw/")
      ->required();
  ogb->add_option("--split", flags->ogb_split,
                  "Folder under split/; needed where there are several");
  AddFiles(*ogb, "--features", flags->features,
           "Node features (.npy) instead of the folder's, TYPE=FILE where "
           "there are several types; repeatable");
  AddSharedOptions(*ogb, *flags);
  ogb->callback([flags, &body] {
    body = [flags] { return RunImport(*flags, &DescribeOgbFlags); };
  });
}

void AddNpy(CLI::App& import, const std::shared_ptr<ImportFlags>& flags,
            CommandBody& body) {
  CLI::App* npy = import.add_subcommand("npy", "Arrays in .npy files");
  AddFiles(*npy, "--edges", flags->edges,
           "Integers [2, E] (sources, destinations) or [E, 2]; "
           "SRC__NAME__DST=FILE for each of several relations");
  npy->get_option("--edges")->required();
  npy->add_option("--num-nodes", flags->node_counts,
                  "Nodes of a type, where not all have features, labels or "
                  "edges")
      ->type_name("[TYPE=]N")
      ->allow_extra_args(false);
  AddFiles(*npy, "--features", flags->features, "Node features [n, d]");
  AddFiles(*npy, "--labels", flags->labels,
           "Node labels [n] or [n, k]: integers, or floats (NaN: none)");
  AddFiles(*npy, "--node-times", flags->node_times, "Integers [n]");
  AddFiles(*npy, "--edge-weights", flags->edge_weights, "Floats [E]");
  AddFiles(*npy, "--edge-times", flags->edge_times, "Integers [E]");
  AddFiles(*npy, "--edge-types", flags->edge_types, "Integers [E]");
  AddFiles(*npy, "--edge-features", flags->edge_features, "Floats [E, d]");
  const char* seeds = "Seeds: node ids, or a bool mask [n]";
  AddFiles(*npy, "--train", flags->train, seeds);
  AddFiles(*npy, "--valid", flags->valid, seeds);
  AddFiles(*npy, "--test", flags->test, seeds);
  AddSharedOptions(*npy, *flags);
  npy->callback([flags, &body] {
    body = [flags] { return RunImport(*flags, &DescribeNpyFlags); };
  });
}

void AddFake(CLI::App& import, const std::shared_ptr<ImportFlags>& flags,
             CommandBody& body) {
  CLI::App* fake = import.add_subcommand(
      "fake", "Random numbers that a model can learn from");
  FakeInput& input = flags->fake;
  fake->add_option("--nodes", input.nodes, "Number of nodes")->required();
  fake->add_option("--avg-degree", input.average_degree, "Edges per node")
      ->required();
  fake->add_option("--features", input.features, "Features of a node")
      ->required();
  fake->add_option("--classes", input.classes, "Number of classes")->required();
  fake->add_option("--seed", input.seed, "Of the random numbers");
  flags->options.split_fractions = {0.8, 0.1, 0.1};
  AddSharedOptions(*fake, *flags);
  fake->callback([flags, &body] {
    body = [flags] { return RunImport(*flags, &DescribeFakeFlags); };
  });
}

}  // namespace

void AddImportCommand(CLI::App& app, CommandBody& body) {
  CLI::App* import =
      app.add_subcommand("import", "Make a dataset of a graph's files");
  import->require_subcommand(1);
  AddOgb(*import, std::make_shared<ImportFlags>(), body);
  AddNpy(*import, std::make_shared<ImportFlags>(), body);
  AddFake(*import, std::make_shared<ImportFlags>(), body);
}

}  // namespace millrace
