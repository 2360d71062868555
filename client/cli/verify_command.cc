// SPDX-License-Identifier: Apache-2.0
// millrace verify PATH [--partition P]
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "common/base/field_error.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/partition_list.h"
#include "common/graph/partitions_on_host.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"

namespace millrace {
namespace {

// Where a host lacks partitions, says how to check those that it has.
absl::Status WithWayToCheck(const absl::Status& status,
                            const std::string& path) {
  if (!absl::IsNotFound(status)) return status;
  const auto store = Store::OpenOnHost(path);
  if (!store.ok() || (*store)->mapped_partitions().empty()) return status;
  return Reworded(
      status,
      StrCat(FirstLine(status), "\ncheck what is here with --partition ",
             absl::StrJoin((*store)->mapped_partitions(), ","),
             ", or copy the rest from a host that has it"));
}

absl::Status Verify(const std::string& path, const std::string& partition) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int> partitions,
                            ParsePartitions(partition));
  const std::string what =
      partitions.empty() ? "" : StrCat(PartitionsText(partitions), " of ");
  const bool one = partitions.size() < 2;
  if (const absl::Status status = VerifyStore(path, std::move(partitions));
      !status.ok()) {
    return WithWayToCheck(status, path);
  }
  std::cout << what << path << (one ? " is" : " are") << " intact\n";
  return absl::OkStatus();
}

}  // namespace

void AddVerifyCommand(CLI::App& app, CommandBody& body) {
  struct Options {
    std::string path;
    std::string partition = "all";
  };
  CLI::App* command = app.add_subcommand(
      "verify",
      "check every checksum and every invariant of a dataset or "
      "store");
  auto options = std::make_shared<Options>();  // lives as long as the options
  command->add_option("STORE", options->path, "dataset or store")->required();
  command
      ->add_option("--partition", options->partition,
                   "partitions to check, for a host that has no others: a "
                   "number, a list 0,2 or all")
      ->type_name("N,...|all");
  command->footer(
      "  millrace verify cora-2\n"
      "  millrace verify cora-2 --partition 0");
  command->callback([options, &body] {
    body = [options] { return Verify(options->path, options->partition); };
  });
}

}  // namespace millrace
