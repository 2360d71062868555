// SPDX-License-Identifier: Apache-2.0
// The PTX of a fat binary on one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/tokens.h"

namespace millrace::ptxemu {

// Holds the functions of PTX, and the device's copies of its variables.
// Ends the process with a message if it meets PTX that it does not know, or if
// there is no memory for the variables.
class Module {
 public:
  Module(std::string text, int device);
  Module(const Module&) = delete;

  // Parses the body at the first call. Null if there is no such function. The
  // function lives as long as the module.
  const Function* FindFunction(const std::string& name);
  // The address of a variable; 0 if there is none.
  uint64_t FindVariable(const std::string& name) const;

 private:
  friend class FunctionParser;
  using Symbols = std::unordered_map<std::string, Symbol>;

  void ParseDeclaration(TokenCursor* cursor);
  // Parses a function up to its body, which is skipped.
  void ParseHead(TokenCursor* cursor);
  // Both parse a variable, which may be one of a function, and add it to
  // `symbols`.
  void DeclareGlobal(TokenCursor* cursor, Symbols* symbols);
  void DeclareShared(TokenCursor* cursor, size_t* shared_bytes,
                     Symbols* symbols);
  const Symbol* FindSymbol(const std::string& name) const;

  const std::string text_;
  const int device_;
  const std::vector<Token> tokens_;
  std::unordered_map<std::string, std::unique_ptr<Function>> functions_;
  Symbols symbols_;  // variables outside of functions
  size_t shared_bytes_ = 0;
};

}  // namespace millrace::ptxemu
