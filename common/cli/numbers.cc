// SPDX-License-Identifier: Apache-2.0
#include "common/cli/numbers.h"

#include <cerrno>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "common/base/strings.h"
#include "common/cli/command_tree.h"

namespace millrace {
namespace {

// The number that CLI11 reads from `text`, which may be hexadecimal (0x10).
// Nothing if it is not a number, or if it exceeds 64 bits, which CLI11 does not
// notice.
template <typename Type>
std::optional<Type> Read(const std::string& text) {
  Type number{};
  errno = 0;
  if (!CLI::detail::lexical_cast(text, number) || errno == ERANGE) return {};
  return number;
}

std::string NotA(const std::string& text, const std::string& expected) {
  return StrCat("\"", text, "\" is not ", expected);
}

std::string SignedError(const std::string& text) {
  if (Read<int64_t>(text).has_value()) return "";
  return errno == ERANGE ? StrCat("\"", text, "\" exceeds 64 bits")
                         : NotA(text, "a whole number");
}

std::string UnsignedError(const std::string& text) {
  if (text.find('-') != std::string::npos) {
    return NotA(text, "a whole number of at least 0");
  }
  if (Read<uint64_t>(text).has_value()) return "";
  return errno == ERANGE ? StrCat("\"", text, "\" exceeds 64 bits")
                         : NotA(text, "a whole number");
}

std::string NumberError(const std::string& text) {
  return Read<double>(text).has_value() ? "" : NotA(text, "a number");
}

std::string FlagError(const std::string& text) {
  try {
    CLI::detail::to_flag_value(text);
    return "";
  } catch (const std::invalid_argument&) {
    return NotA(text, "true or false");
  }
}

void CheckOption(CLI::Option& option) {
  // The type name ends at the first ':'; descriptions of validators follow.
  const std::string names = option.get_type_name();
  const std::string type = names.substr(0, names.find(':'));
  if (type == "UINT") option.check(CLI::Validator(UnsignedError, ""));
  if (type == "INT") option.check(CLI::Validator(SignedError, ""));
  if (type == "FLOAT") option.check(CLI::Validator(NumberError, ""));
  if (option.get_expected_max() == 0) {
    option.check(CLI::Validator(FlagError, ""));
  }
}

}  // namespace

void CheckValues(CLI::App& app) {
  for (CLI::Option* option : OptionsOf(app)) CheckOption(*option);
  for (CLI::App* sub : Subcommands(app)) CheckValues(*sub);
}

CLI::Validator AtLeast(int64_t min) {
  return CLI::Validator(
      [min](const std::string& text) -> std::string {
        const std::optional<int64_t> number = Read<int64_t>(text);
        if (number.has_value() && *number >= min) return "";
        return NotA(text, StrCat("a whole number of at least ", min));
      },
      "");
}

CLI::Validator WholeNumber(int64_t min, int64_t max) {
  return CLI::Validator(
      [min, max](const std::string& text) -> std::string {
        const std::optional<int64_t> number = Read<int64_t>(text);
        if (number.has_value() && *number >= min && *number <= max) {
          return "";
        }
        return NotA(text, StrCat("a whole number from ", min, " to ", max));
      },
      "");
}

CLI::Validator Number(double min, double max) {
  return CLI::Validator(
      [min, max](const std::string& text) -> std::string {
        const std::optional<double> number = Read<double>(text);
        if (number.has_value() && *number >= min && *number <= max) {
          return "";
        }
        return NotA(text, std::isinf(max)
                              ? StrCat("a number of at least ", min)
                              : StrCat("a number from ", min, " to ", max));
      },
      "");
}

}  // namespace millrace
