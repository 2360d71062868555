// SPDX-License-Identifier: Apache-2.0
#include "common/cli/man_page.h"

#include <gtest/gtest.h>

#include <string>

#include "common/cli/program.h"

namespace millrace {
namespace {

// The page without the line that has the version.
std::string PageOf(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string page = ManPage(app, words);
  return page.substr(0, 4) == ".TH " ? page.substr(page.find('\n') + 1) : page;
}

TEST(ManPageTest, DescribesAProgram) {
  CLI::App app("A mill", "race");
  std::string text;
  app.add_option("--wind", text, ".5 to 'gale-force', as in C:\\wind~1")
      ->type_name("FORCE");
  app.footer("  race --wind '^'\n.race");
  FinishOptions(app);
  EXPECT_TRUE(ManPage(app, {}).starts_with(".TH \"RACE\" 1 \"\" \"millrace "));
  const std::string page = PageOf(app, {});
  EXPECT_TRUE(
      page.starts_with(".SH NAME\n"
                       "race \\- A mill\n"
                       ".SH SYNOPSIS\n"
                       ".B \"race\"\n"
                       "[OPTIONS]\n"
                       ".SH OPTIONS\n"
                       ".SS \"Options\"\n"
                       ".TP\n"
                       ".B \"\\-\\-wind FORCE\"\n"
                       "\\&.5 to \\(aqgale\\-force\\(aq, as in "
                       "C:\\ewind\\(ti1\n"
                       ".SS \"General\"\n"))
      << page;
  EXPECT_TRUE(
      page.ends_with(".SH EXAMPLE\n"
                     ".nf\n"
                     "  race \\-\\-wind \\(aq\\(ha\\(aq\n"
                     "\\&.race\n"
                     ".fi\n"))
      << page;
}

TEST(ManPageTest, CommandsHavePagesAndSubcommandsSections) {
  CLI::App app("A mill", "race");
  CLI::App* mill = app.add_subcommand("mill", "Mills");
  CLI::App* grind = mill->add_subcommand("grind", "Grinds");
  std::string text;
  grind->add_option("GRAIN", text, "what \"to\" grind")->required();
  grind->footer("  race mill grind x");
  FinishOptions(app);
  const std::string program = PageOf(app, {});
  EXPECT_NE(program.find(".SH COMMANDS\n"
                         ".TP\n"
                         ".BR race\\-mill (1)\n"
                         "Mills\n"),
            std::string::npos)
      << program;
  EXPECT_EQ(program.find("Grinds"), std::string::npos);
  const std::string command = PageOf(app, {"mill"});
  EXPECT_TRUE(
      command.starts_with(".SH NAME\n"
                          "race\\-mill \\- Mills\n"
                          ".SH SYNOPSIS\n"
                          ".B \"race mill\"\n"
                          "[OPTIONS] COMMAND\n"
                          ".SH \"RACE MILL GRIND\"\n"
                          "Grinds\n"
                          ".PP\n"
                          ".B \"race mill grind\"\n"
                          "[OPTIONS] GRAIN\n"
                          ".SS \"Arguments\"\n"
                          ".TP\n"
                          ".B \"GRAIN\"\n"
                          "what \"to\" grind (required)\n"
                          ".PP\n"
                          ".nf\n"
                          "  race mill grind x\n"
                          ".fi\n"))
      << command;
  EXPECT_TRUE(command.ends_with(
      ".SH SEE ALSO\n"
      ".BR race (1), for the options that all commands have\n"));
  EXPECT_EQ(PageOf(app, {"kiln"}), "");
  EXPECT_EQ(PageOf(app, {"mill", "grind"}), "");
}

}  // namespace
}  // namespace millrace
