// SPDX-License-Identifier: Apache-2.0
#include "common/cli/numbers.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

// What is wrong with `text` as a number of 64 bits; what is no number at all
// is left to CLI11. The base is found as CLI11 finds it: 0x10 is 16.
std::string WrongSigned(const std::string& text) {
  errno = 0;
  std::strtoll(text.c_str(), nullptr, 0);
  return errno == ERANGE ? absl::StrCat(text, " exceeds 64 bits") : "";
}

std::string WrongUnsigned(const std::string& text) {
  if (text.find('-') != std::string::npos) {
    return absl::StrCat(text, " is no whole number of at least 0");
  }
  errno = 0;
  std::strtoull(text.c_str(), nullptr, 0);
  return errno == ERANGE ? absl::StrCat(text, " exceeds 64 bits") : "";
}

}  // namespace

void CheckWholeNumbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    // Exactly these: the name of a type goes on with those of validators.
    const std::string type = option->get_type_name();
    if (type == "UINT") option->check(CLI::Validator(WrongUnsigned, ""));
    if (type == "INT") option->check(CLI::Validator(WrongSigned, ""));
  }
  for (CLI::App* sub : app.get_subcommands(nullptr)) CheckWholeNumbers(*sub);
}

CLI::Validator AtLeast(int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) -> std::string {
        int64_t number = 0;
        if (CLI::detail::lexical_cast(text, number) && number >= least &&
            WrongSigned(text).empty()) {
          return "";
        }
        return absl::StrCat(text, " is no whole number of at least ", least);
      },
      absl::StrCat("at least ", least));
}

}  // namespace millrace
