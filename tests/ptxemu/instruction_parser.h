// SPDX-License-Identifier: Apache-2.0
// Parses one PTX instruction.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/tokens.h"

namespace millrace::ptxemu {

// Parses instructions of one function. Ends the process with a message if there
// is one that it does not know.
class InstructionParser {
 public:
  // Looks up variables that are declared outside of the function; null if there
  // is none of the name.
  using FindSymbol = std::function<const Symbol*(const std::string&)>;

  // Both must outlive the parser; `function` has the names declared so far.
  InstructionParser(TokenCursor* cursor, const Function* function,
                    FindSymbol find_outside);

  // Parses the instruction that begins at the cursor, with its guard and its
  // semicolon. Of a branch, sets `label` to what it names: a label, or a table
  // of labels.
  Instruction Parse(std::string* label);

 private:
  // The parts of an instruction's name, such as add, cc, u32.
  void ParseName();
  void ReadModifiers();
  bool Has(std::string_view modifier) const;
  // The place of the first part that is one of `names`; -1 if none is.
  int IndexIn(std::initializer_list<std::string_view> names) const;

  void ParseRest(std::string* label);
  bool ParseControl(std::string* label);
  bool ParseMemory();
  bool ParseData();
  bool ParseBarrier();
  bool ParseWarpOperation();
  void ParseOperation();
  void ParseMove();
  void ParseComparison();
  void ParseCall();
  void ParseBarrierReduction();

  Operand ParseOperand();
  Operand ParseSymbol(const std::string& name);
  void ParseResult();
  // Parses the result and so many sources.
  void ParseOperands(int source_count);
  void ParseSource(int index);
  void ParseVector();
  // One operand, or several in braces.
  void ParseVectorOrOperand();
  void ParseAddress();
  std::vector<std::string> ParseNames();

  TokenCursor& cursor_;
  const Function& function_;
  const FindSymbol find_outside_;
  Instruction in_;
  std::string name_;
  std::vector<std::string> parts_;
  std::vector<ValueType> types_;
};

}  // namespace millrace::ptxemu
