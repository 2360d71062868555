// SPDX-License-Identifier: Apache-2.0
// millrace lineage: shows which lines of a --consumed-log count, and whether
// they contain each seed once.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/lineage.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"

namespace millrace {
namespace {

struct LineageFlags {
  std::vector<std::string> logs;
  bool valid = false;
  int64_t seeds = 0;
};

void Print(const Lineage& lineage) {
  for (const auto& [number, attempt] : lineage.attempts()) {
    std::printf("attempt %ld: from %ld:%ld, %ld lines, %ld void\n", number,
                attempt.start.epoch, attempt.start.batch, attempt.lines,
                attempt.void_lines);
  }
  for (const auto& [number, epoch] : lineage.epochs()) {
    std::printf("epoch %ld: %ld batches, %ld seeds\n", number, epoch.batches,
                epoch.seeds);
  }
  if (lineage.torn_lines() > 0) {
    std::printf("%ld torn lines, left out\n", lineage.torn_lines());
  }
}

absl::Status RunLineage(const LineageFlags& flags) {
  const auto print = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
  };
  MILLRACE_ASSIGN_OR_RETURN(const Lineage lineage,
                            flags.valid ? Lineage::Read(flags.logs, print)
                                        : Lineage::Read(flags.logs));
  if (!flags.valid) Print(lineage);
  const std::vector<std::string> faults = lineage.Faults(flags.seeds);
  if (faults.empty()) {
    if (!flags.valid) std::printf("each seed once per epoch\n");
    return absl::OkStatus();
  }
  for (const std::string& fault : faults) {
    std::fprintf(flags.valid ? stderr : stdout, "fault: %s\n", fault.c_str());
  }
  return absl::FailedPreconditionError(
      StrCat(faults.size(), faults.size() == 1 ? " fault" : " faults",
             ", the first: ", faults.front(),
             "\ngive the logs of all hosts; an interrupted last step, "
             "--drop-last, and seeds that occur twice in a list also look like "
             "faults"));
}

}  // namespace

void AddLineageCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "lineage",
      "show which lines of a --consumed-log count, and whether each seed "
      "occurs once per epoch");
  const auto flags = std::make_shared<LineageFlags>();
  command
      ->add_option("FILE", flags->logs,
                   "files written by millrace-train --consumed-log, from all "
                   "hosts")
      ->required();
  command->add_flag("--valid", flags->valid,
                    "print the lines that count instead");
  command
      ->add_option("--seeds", flags->seeds,
                   "number of seeds that each epoch must have; 0 means unknown")
      ->check(AtLeast(0));
  command->footer("  millrace lineage consumed.jsonl --seeds 140");
  command->callback(
      [flags, &body] { body = [flags] { return RunLineage(*flags); }; });
}

}  // namespace millrace
