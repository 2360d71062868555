// SPDX-License-Identifier: Apache-2.0
// Text given to programs: --config files and lists of servers. Input: which of
// them, then the text.
#include <CLI/CLI.hpp>
#include <sstream>
#include <string>

#include "common/base/check.h"
#include "common/cli/config_file.h"
#include "common/cli/numbers.h"
#include "common/grpc/fleet/address_list.h"
#include "common/net/host_port.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

void ReadConfig(const std::string& text) {
  CLI::App app;
  int number = 0;
  std::string name, other;
  app.add_option("--number", number);
  CLI::App* command = app.add_subcommand("run");
  command->add_option("--own", number);
  CLI::Option_group* shared = command->add_option_group("Shared");
  shared->add_option("--name", name);
  shared->add_option("--other", other)->excludes("--name");
  app.require_subcommand(1);
  const auto config = std::make_shared<ConfigFile>(app);
  app.config_formatter(config);
  const std::filesystem::path path = WriteScratch("config.toml", text);
  app.set_config("--config");
  const std::string file = path.string();
  const std::array<const char*, 4> arguments = {"program", "--config",
                                                file.c_str(), "run"};
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Error&) {
    // The program's main() reports this error.
  }
}

void ReadAddresses(std::string_view text) {
  if (const auto address = ParseHostPort(text); address.ok()) {
    MILLRACE_CHECK(ParseHostPort(address->WithPort(7)).ok());
  }
  // Parse() does not resolve names.
  const auto list = AddressList::Parse(text);
  if (list.ok() && list->kind() == AddressList::Kind::kStatic) {
    MILLRACE_CHECK(list->Read().ok());
  }
  const std::filesystem::path path = WriteScratch("servers", text);
  const auto file = AddressList::Parse("@" + path.string());
  MILLRACE_CHECK(file.ok());
  (void)file->Read();
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Input input(data, size);
  if (input.Byte() % 2 == 0) {
    millrace::fuzz::ReadConfig(std::string(input.Rest()));
  } else {
    millrace::fuzz::ReadAddresses(input.Rest());
  }
  return 0;
}
