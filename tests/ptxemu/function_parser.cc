// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/function_parser.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/round_up.h"
#include "tests/ptxemu/declarations.h"
#include "tests/ptxemu/instruction_parser.h"

namespace millrace::ptxemu {
namespace {

constexpr size_t kCallParameterAlignment = 16;
constexpr size_t kLeastCallParameterBytes = 8;

uint64_t NoAddress(const std::string&) { return 0; }

}  // namespace

FunctionParser::FunctionParser(Module* module, Function* function)
    : module_(*module),
      function_(*function),
      cursor_(module->tokens_, function->body) {}

void FunctionParser::Parse() {
  DeclareParameters();
  function_.shared_bytes = module_.shared_bytes_;
  int depth = 0;
  do {
    if (cursor_.TakeIf("{")) {
      ++depth;
    } else if (cursor_.TakeIf("}")) {
      --depth;
    } else if (!cursor_.TakeIf(";") && !ParseDirective() && !ParseLabel()) {
      ParseInstruction();
    }
  } while (depth > 0);
  Instruction end;
  end.opcode = Opcode::kReturn;
  end.line = cursor_.line();
  function_.code.push_back(std::move(end));
  ResolveBranches();
}

void FunctionParser::DeclareParameters() {
  for (const auto* parameters : {&function_.parameters, &function_.results}) {
    for (const Parameter& parameter : *parameters) {
      function_.symbols[parameter.name] = {Space::kParam, parameter.offset};
    }
  }
}

bool FunctionParser::ParseDirective() {
  if (cursor_.TakeIf(".reg")) {
    ParseRegisters();
  } else if (cursor_.TakeIf(".shared")) {
    module_.DeclareShared(&cursor_, &function_.shared_bytes,
                          &function_.symbols);
  } else if (cursor_.TakeIf(".local")) {
    DeclareLocal();
  } else if (cursor_.TakeIf(".param")) {
    DeclareCallParameter();
  } else if (cursor_.TakeIf(".global") || cursor_.TakeIf(".const")) {
    module_.DeclareGlobal(&cursor_, &function_.symbols);
  } else if (cursor_.Is(".loc")) {
    cursor_.SkipLine();
  } else if (cursor_.Is(".pragma")) {
    cursor_.SkipPast(";");
  } else {
    return false;
  }
  return true;
}

// Reads ".b32 %r<5>;" or ".b32 a, b;".
void FunctionParser::ParseRegisters() {
  const std::string_view type = cursor_.Take();
  const size_t bytes = TypeBytes(type);
  const uint64_t mask = type == ".pred" ? 1
                        : bytes >= 8    ? ~uint64_t{0}
                                        : (uint64_t{1} << 8 * bytes) - 1;
  while (!cursor_.TakeIf(";")) {
    const std::string name(cursor_.Take());
    if (name == ",") continue;
    if (!cursor_.TakeIf("<")) {
      AddRegister(name, mask);
      continue;
    }
    const uint64_t count = ParseNumber(cursor_.Take());
    cursor_.Expect(">");
    for (uint64_t i = 0; i < count; ++i) {
      AddRegister(absl::StrCat(name, i), mask);
    }
  }
}

void FunctionParser::AddRegister(const std::string& name, uint64_t mask) {
  // A name may be declared again in another block of the function.
  function_.registers[name] =
      static_cast<uint32_t>(function_.register_masks.size());
  function_.register_masks.push_back(mask);
}

void FunctionParser::DeclareLocal() {
  const VariableDeclaration variable = ParseVariable(&cursor_, NoAddress);
  const size_t offset = RoundUp(function_.local_bytes, variable.alignment);
  function_.symbols[variable.name] = {Space::kLocal, offset};
  function_.local_bytes = offset + variable.bytes;
}

// Each call has a block with parameters of its own, often of the same names.
void FunctionParser::DeclareCallParameter() {
  const VariableDeclaration variable = ParseVariable(&cursor_, NoAddress);
  Symbol& symbol = function_.symbols[variable.name];
  if (symbol.bytes > 0 && symbol.bytes >= variable.bytes) return;
  const size_t offset = RoundUp(function_.call_bytes, kCallParameterAlignment);
  symbol = {.space = Space::kParam,
            .address = kCallParamBit + offset,
            .bytes = variable.bytes};
  function_.call_bytes =
      offset + std::max(variable.bytes, kLeastCallParameterBytes);
}

bool FunctionParser::ParseLabel() {
  if (cursor_.Peek(1) != ":" || cursor_.Peek(2) == ":") return false;
  const std::string name(cursor_.Take());
  cursor_.Expect(":");
  if (!cursor_.TakeIf(".branchtargets")) {
    labels_[name] = static_cast<int>(function_.code.size());
    return true;
  }
  while (!cursor_.TakeIf(";")) {
    tables_[name].emplace_back(cursor_.Take());
    cursor_.TakeIf(",");
  }
  return true;
}

void FunctionParser::ParseInstruction() {
  InstructionParser parser(&cursor_, &function_, [&](const std::string& name) {
    return module_.FindSymbol(name);
  });
  std::string label;
  Instruction in = parser.Parse(&label);
  if (!label.empty()) branches_.push_back({function_.code.size(), label});
  function_.code.push_back(std::move(in));
}

void FunctionParser::ResolveBranches() {
  for (const Branch& branch : branches_) {
    Instruction& in = function_.code[branch.instruction];
    if (in.opcode == Opcode::kBranch) {
      in.target = PlaceOf(branch.label);
      continue;
    }
    for (const std::string& label : tables_[branch.label]) {
      in.targets.push_back(PlaceOf(label));
    }
  }
}

int FunctionParser::PlaceOf(const std::string& label) const {
  const auto found = labels_.find(label);
  if (found == labels_.end()) {
    cursor_.Fail(absl::StrCat("there is no label ", label));
  }
  return found->second;
}

}  // namespace millrace::ptxemu
