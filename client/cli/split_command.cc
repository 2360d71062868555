// SPDX-License-Identifier: Apache-2.0
// millrace split: adds a split to a dataset or store.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "client/cli/commands.h"
#include "common/base/status_macros.h"
#include "common/ingest/add_split.h"

namespace millrace {
namespace {

struct SplitFlags {
  std::string store;
  NewSplit split;
  bool json = false;
};

absl::Status RunSplit(const SplitFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const SplitInfo split,
                            AddSplit(flags.store, flags.split));
  if (flags.json) {
    std::cout << nlohmann::json{{"name", split.name}, {"count", split.count}}
              << "\n";
  } else {
    std::cout << "split " << split.name << ": " << split.count << " nodes\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddSplitCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command =
      app.add_subcommand("split", "Add a split to a dataset or store");
  auto flags = std::make_shared<SplitFlags>();
  command->add_option("DATASET", flags->store, "Dataset or store")->required();
  command->add_option("--name", flags->split.name, "Name of the new split")
      ->required();
  command
      ->add_option("--ids", flags->split.ids,
                   ".npy: original ids of nodes, or a bool mask [n]")
      ->required();
  command->add_option("--type", flags->split.type,
                      "Node type, where there are several");
  command->add_flag("--json", flags->json, "Print the result as JSON");
  command->callback(
      [flags, &body] { body = [flags] { return RunSplit(*flags); }; });
}

}  // namespace millrace
