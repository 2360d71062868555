// SPDX-License-Identifier: Apache-2.0
// millrace up: runs a fleet on this machine until Ctrl-C.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/local_fleet.h"
#include "common/base/child_process.h"
#include "common/base/status_macros.h"
#include "common/cli/numbers.h"
#include "common/cli/program.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

struct UpFlags {
  std::string store;
  int servers = 0;  // 0 means one per partition
};

// The path of millrace-server, which is next to this program.
absl::StatusOr<std::filesystem::path> ServerProgram() {
  const std::filesystem::path program =
      PathBesideThisProgram("millrace-server");
  if (!std::filesystem::exists(program)) {
    return absl::NotFoundError(
        absl::StrCat(program.string(),
                     " does not exist\nbuild or install millrace-server "
                     "beside millrace"));
  }
  return program;
}

absl::Status RunUp(const UpFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const std::filesystem::path program,
                            ServerProgram());
  int parts = 0;
  {
    MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                              Store::Open(flags.store));
    parts = store->partition_count();
  }
  LocalFleet fleet(program);
  MILLRACE_ASSIGN_OR_RETURN(
      const std::string list,
      fleet.Start(flags.store, parts,
                  flags.servers == 0 ? parts : flags.servers));
  std::printf("%s\n", list.c_str());
  MILLRACE_RETURN_IF_ERROR(FlushResults());
  return fleet.WaitForSignal();
}

}  // namespace

void AddUpCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "up", "run a fleet on this machine; prints its LIST, stops with Ctrl-C");
  const auto flags = std::make_shared<UpFlags>();
  command->add_option("STORE", flags->store, "dataset or store to serve")
      ->required();
  command
      ->add_option("--servers", flags->servers,
                   "number of server processes; if there are more than "
                   "partitions, some are replicas; 0 means one per partition")
      ->check(WholeNumber(0, 1000));
  command->footer("  millrace up cora-2 --servers 4");
  command->callback(
      [flags, &body] { body = [flags] { return RunUp(*flags); }; });
}

}  // namespace millrace
