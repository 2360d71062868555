// SPDX-License-Identifier: Apache-2.0
// millrace split: adds a split to a dataset or store.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "client/cli/commands.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/add_split.h"

namespace millrace {
namespace {

struct SplitFlags {
  std::string store;
  std::string name;
  std::string type;  // node type or relation
  std::string ids;
  NewEdgeSplit edges;  // all but name, relation, edge_ids
  bool json = false;
};

void Print(const SplitFlags& flags, int64_t count, const char* what) {
  if (flags.json) {
    std::cout << nlohmann::json{{"name", flags.name}, {"count", count}} << "\n";
  } else {
    std::cout << "split " << flags.name << ": " << count << " " << what << "\n";
  }
}

// Refuses options that only --pairs can have.
absl::Status CheckNoPairColumns(const NewEdgeSplit& split) {
  const char* option = nullptr;
  if (!split.negatives.empty()) option = "--negatives";
  if (!split.edge_types.empty()) option = "--edge-types";
  if (!split.labels.empty()) option = "--labels";
  if (!split.times.empty()) option = "--times";
  if (option == nullptr) return absl::OkStatus();
  return UsageError(
      StrCat(option,
             " needs --pairs\nleave it out: with --ids and --all, nodes and "
             "edges have the columns of the dataset"));
}

absl::Status RunNodeSplit(const SplitFlags& flags) {
  MILLRACE_RETURN_IF_ERROR(CheckNoPairColumns(flags.edges));
  if (flags.ids.empty()) {
    return UsageError(
        "--ids is needed: the nodes of the split (.npy)\nfor edges give --type "
        "SRC__NAME__DST with --ids, --all or --pairs");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const SplitInfo split,
      AddSplit(flags.store, {flags.name, flags.type, flags.ids}));
  Print(flags, split.count, "nodes");
  return absl::OkStatus();
}

absl::Status RunEdgeSplit(const SplitFlags& flags) {
  NewEdgeSplit split = flags.edges;
  split.name = flags.name;
  split.relation = flags.type;
  split.edge_ids = flags.ids;
  const int ways = (split.all ? 1 : 0) + (split.pairs.empty() ? 0 : 1) +
                   (split.edge_ids.empty() ? 0 : 1);
  if (ways != 1) {
    return UsageError(
        "--ids, --all, --pairs: a split of edges needs one of them\ngive edge "
        "ids, take all edges, or give pairs of nodes");
  }
  if (split.pairs.empty()) {
    MILLRACE_RETURN_IF_ERROR(CheckNoPairColumns(split));
  }
  MILLRACE_ASSIGN_OR_RETURN(const EdgeSplitInfo added,
                            AddEdgeSplit(flags.store, split));
  Print(flags, added.count, "edges");
  return absl::OkStatus();
}

absl::Status RunSplit(const SplitFlags& flags) {
  const bool edges = flags.edges.all || !flags.edges.pairs.empty() ||
                     flags.type.find("__") != std::string::npos;
  return edges ? RunEdgeSplit(flags) : RunNodeSplit(flags);
}

}  // namespace

void AddSplitCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("split", "add a split to a dataset or store");
  auto flags = std::make_shared<SplitFlags>();
  command->add_option("DATASET", flags->store, "dataset or store")->required();
  command->add_option("--name", flags->name, "name of the new split")
      ->required()
      ->type_name("NAME");
  command
      ->add_option("--type", flags->type,
                   "node type, or SRC__NAME__DST for a split of edges; needed "
                   "if there are several")
      ->type_name("TYPE");
  command
      ->add_option("--ids", flags->ids,
                   ".npy: original ids of nodes, or a bool mask [n]; for a "
                   "relation, edge ids [n]")
      ->type_name("FILE");
  NewEdgeSplit& edges = flags->edges;
  command->add_flag("--all", edges.all, "all edges of the relation");
  command
      ->add_option("--pairs", edges.pairs,
                   ".npy: pairs of nodes [n, 2], which need not be edges")
      ->type_name("FILE");
  command->add_option("--times", edges.times, "with --pairs: integers [n]")
      ->type_name("FILE");
  command
      ->add_option("--edge-types", edges.edge_types,
                   "with --pairs: integers [n]")
      ->type_name("FILE");
  command->add_option("--labels", edges.labels, "with --pairs: numbers [n]")
      ->type_name("FILE");
  command
      ->add_option("--negatives", edges.negatives,
                   "with --pairs: destinations that are not edges [n, k]")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "print the result as JSON");
  command->footer("  millrace split cora --name few --ids few.npy");
  command->callback(
      [flags, &body] { body = [flags] { return RunSplit(*flags); }; });
}

}  // namespace millrace
