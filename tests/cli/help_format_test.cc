// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/cli/help.h"
#include "common/cli/program.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

// Of each kind of option, one.
TEST(HelpFormatTest, OptionsAreGroupedAndExplained) {
  CLI::App app("A mill", "race");
  CLI::App* mill = app.add_subcommand("mill", "Mills");
  // 80 columns.
  CLI::App* grind = mill->add_subcommand(
      "hand-grind",
      "grinds everything that comes, coarse or fine, by hand, slowly and with "
      "some care");
  mill->add_subcommand("weigh", "Weighs");
  std::string text = "a";
  std::vector<std::string> texts;
  int number = 3;
  unsigned positive = 4;
  double real = 0.5;
  bool flag = false;
  grind->add_option("STORE", text, "where to")->required();
  grind->add_option("GRAIN", texts, "what");
  CLI::Option* number_option = grind->add_option("--number", number, "number");
  grind->add_option("--positive", positive, "positive");
  grind->add_option("-r,--real", real, "real")->needs(number_option);
  grind->add_flag("--flag", flag, "flag")->excludes(number_option);
  grind->add_option("--texts", texts, "texts");
  // The description begins in column 28, so two columns are free before it.
  grind->add_option("--name-of-20-column", text, "fits")->type_name("FILE");
  grind->add_option("--name-of-21-columns", text, "does not")
      ->type_name("FILE");
  grind->add_option("--word", text, "word")->check(OneOf({"a", "b"}));
  CLI::Option_group* source = grind->add_option_group("Source");
  source->add_option("--wind", text, "wind")->type_name("FORCE");
  source->require_option(1);
  CLI::Option_group* drive = grind->add_option_group("Drive");
  drive->add_flag("--belt", flag, "belt");
  drive->require_option(0, 1);
  // Joins the group of the same title.
  grind->add_option_group("Source")->add_flag("--water", flag, "water");
  grind->footer("  race mill hand-grind x");
  FinishOptions(app);
  EXPECT_EQ(
      FormatHelp(*grind),
      R"(grinds everything that comes, coarse or fine, by hand, slowly and with some care
Usage: race mill hand-grind [OPTIONS] STORE [GRAIN...]

Arguments:
  STORE                     where to (required)
  GRAIN                     what

Options:
  --number N                number (default: 3; not with --flag)
  --positive N              positive (default: 4)
  -r, --real NUMBER         real (default: 0.5; with --number)
  --flag                    flag (not with --number)
  --texts TEXT ...          texts
  --name-of-20-column FILE  fits (default: a)
  --name-of-21-columns FILE
                            does not (default: a)
  --word a|b                word (default: a)

Source (one of these is required):
  --wind FORCE              wind (default: a)
  --water                   water

Drive (at most one of these):
  --belt                    belt

Example:
  race mill hand-grind x

Options can also come from variables, MILLRACE_MILL_HAND_GRIND_<OPTION> for
those below "Options" and MILLRACE_<OPTION> for the rest (--tls-ca:
MILLRACE_TLS_CA), and from a file (--config FILE); the command line wins.
Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
)");
  EXPECT_EQ(FormatHelp(*mill), R"(Mills
Usage: race mill [OPTIONS] COMMAND

Commands:
  hand-grind                grinds everything that comes, coarse or fine, by
                            hand, slowly and with some care
  weigh                     Weighs

Options can also come from variables (MILLRACE_...) and from a file (--config
FILE): the --help of each command says how.
Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
)");
}

TEST(HelpFormatTest, LinesHaveAtMost80Columns) {
  CLI::App app(std::string(40, 'a') + " " + std::string(39, 'b') + " " +
                   std::string(41, 'c') + " " + std::string(39, 'd') + " " +
                   std::string(90, 'e'),
               "race");
  FinishOptions(app);
  const std::string help = FormatHelp(app);
  EXPECT_EQ(help.substr(0, help.find("\nUsage")),
            std::string(40, 'a') + " " + std::string(39, 'b') + "\n" +
                std::string(41, 'c') + "\n" + std::string(39, 'd') + "\n" +
                std::string(90, 'e'));
}

TEST(HelpFormatTest, AProgramWithoutCommandsHasGeneralOptions) {
  CLI::App app("A mill", "race");
  int wheels = 3;
  app.add_option("--wheels", wheels, "wheels");
  FinishOptions(app);
  EXPECT_EQ(FormatHelp(app), R"(A mill
Usage: race [OPTIONS]

Options:
  --wheels N                wheels (default: 3)

General:
  -h, --help                print this and exit
  --version                 print the version and exit
  --log-level debug|info|warning|error|off
                            what to log to stderr (default: info)
  --log-format text|json    how to log: a line of text or a JSON object for each
                            event (default: text)
  --print-config            print these options as a file for --config, and exit
  --config FILE             read options from this file

Options can also come from variables, MILLRACE_<OPTION>, and from a file
(--config FILE); the command line wins.
Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
)");
}

}  // namespace
}  // namespace millrace
