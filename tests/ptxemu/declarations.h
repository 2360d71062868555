// SPDX-License-Identifier: Apache-2.0
// Parses PTX's declarations of variables and parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/tokens.h"

namespace millrace::ptxemu {

// Reads "u32", "f16x2" and so on into `type`; false if it is not a type.
bool ParseValueType(std::string_view text, ValueType* type);
// The size of ".u32", ".b8", ".pred"; 0 if it is not a type.
size_t TypeBytes(std::string_view text);

struct VariableDeclaration {
  std::string name;
  size_t alignment = 1;
  size_t bytes = 0;
  bool is_unsized = false;  // an array whose size the launch decides
  std::vector<uint8_t> initial;
};

// Reads what follows .global, .shared and so on, with the semicolon.
// `address_of` gives the addresses of variables that initial values name.
VariableDeclaration ParseVariable(
    TokenCursor* cursor,
    const std::function<uint64_t(const std::string&)>& address_of);

// Reads a list of parameters in parentheses. They get the offsets from `*bytes`
// on, which becomes the end of the last one.
std::vector<Parameter> ParseParameters(TokenCursor* cursor, size_t* bytes);

}  // namespace millrace::ptxemu
