// SPDX-License-Identifier: Apache-2.0
#include "client/cli/millrace_program.h"

#include "client/cli/command_advice.h"
#include "client/cli/commands.h"
#include "client/flags/option_errors.h"
#include "common/cli/program.h"

namespace millrace {

int RunMillraceProgram(int argc, char** argv) {
  CLI::App app("Millrace: graph data and sampler fleets", "millrace");
  app.require_subcommand(1);
  CommandBody body;
  AddImportCommand(app, body);
  AddPartitionCommand(app, body);
  AddSplitCommand(app, body);
  AddInspectCommand(app, body);
  AddVerifyCommand(app, body);
  AddSampleCommand(app, body);
  AddDigestCommand(app, body);
  AddStatusCommand(app, body);
  AddUpCommand(app, body);
  AddBenchCommand(app, body);
  AddPlanCommand(app, body);
  AddLineageCommand(app, body);
  AddCompletionCommand(app, body);
  AddHelpCommand(app, body);
  FinishOptions(app);
  return RunProgram(app, argc, argv, [&body] {
    return InTermsOfOptions(body(), CommandAdvice());
  });
}

}  // namespace millrace
