// SPDX-License-Identifier: Apache-2.0
// Parses the body of a PTX function.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/module.h"
#include "tests/ptxemu/tokens.h"

namespace millrace::ptxemu {

class FunctionParser {
 public:
  FunctionParser(Module* module, Function* function);
  void Parse();

 private:
  // A branch whose target is not known yet.
  struct Branch {
    size_t instruction;
    std::string label;
  };

  void DeclareParameters();
  // False if a directive does not begin at the cursor.
  bool ParseDirective();
  // False if a label does not begin at the cursor.
  bool ParseLabel();
  void ParseInstruction();
  void ParseRegisters();
  void AddRegister(const std::string& name, uint64_t mask);
  void DeclareLocal();
  void DeclareCallParameter();
  void ResolveBranches();
  int PlaceOf(const std::string& label) const;

  Module& module_;
  Function& function_;
  TokenCursor cursor_;
  std::unordered_map<std::string, int> labels_;
  std::unordered_map<std::string, std::vector<std::string>> tables_;
  std::vector<Branch> branches_;
};

}  // namespace millrace::ptxemu
