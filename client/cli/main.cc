// SPDX-License-Identifier: Apache-2.0
// millrace: the program for data and operations.
#include "client/cli/command_advice.h"
#include "client/cli/commands.h"
#include "client/flags/option_errors.h"
#include "common/cli/program.h"

int main(int argc, char** argv) {
  CLI::App app("Millrace: graph data and sampler fleets", "millrace");
  app.require_subcommand(1);
  millrace::CommandBody body;
  millrace::AddImportCommand(app, body);
  millrace::AddPartitionCommand(app, body);
  millrace::AddSplitCommand(app, body);
  millrace::AddInspectCommand(app, body);
  millrace::AddVerifyCommand(app, body);
  millrace::AddSampleCommand(app, body);
  millrace::AddDigestCommand(app, body);
  millrace::AddStatusCommand(app, body);
  millrace::AddUpCommand(app, body);
  millrace::AddBenchCommand(app, body);
  millrace::AddLineageCommand(app, body);
  millrace::AddCompletionCommand(app, body);
  millrace::AddHelpCommand(app, body);
  millrace::FinishOptions(app);
  return millrace::RunProgram(app, argc, argv, [&body] {
    return millrace::InTermsOfOptions(body(), millrace::CommandAdvice());
  });
}
