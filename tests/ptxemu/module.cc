// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/module.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/ptxemu/declarations.h"
#include "tests/ptxemu/function_parser.h"
#include "tests/ptxemu/memory.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {
namespace {

// Reads the launch bounds and other directives between a function's parameters
// and its body.
void ParseDirectives(TokenCursor* cursor, Function* function) {
  while (!cursor->Is("{") && !cursor->Is(";")) {
    const std::string_view directive = cursor->Take();
    if (directive != ".maxntid" && directive != ".reqntid") continue;
    function->max_threads = 1;
    do {
      function->max_threads *= static_cast<int>(ParseNumber(cursor->Take()));
    } while (cursor->TakeIf(","));
  }
}

}  // namespace

Module::Module(std::string text, int device)
    : text_(std::move(text)), device_(device), tokens_(Tokenize(text_)) {
  TokenCursor cursor(tokens_, 0);
  while (!cursor.AtEnd()) ParseDeclaration(&cursor);
}

void Module::ParseDeclaration(TokenCursor* cursor) {
  const std::string_view token = cursor->Peek();
  if (token == ".version" || token == ".target" || token == ".address_size" ||
      token == ".file" || token == ".loc") {
    cursor->SkipLine();
  } else if (token == ".section") {
    while (!cursor->Is("{")) cursor->Take();
    cursor->SkipBraces();
  } else if (token == ".pragma" || token == ".alias") {
    cursor->SkipPast(";");
  } else if (token == ".visible" || token == ".weak" || token == ".common" ||
             token == ".extern" || token == ";") {
    cursor->Take();
  } else if (token == ".global" || token == ".const") {
    cursor->Take();
    DeclareGlobal(cursor, &symbols_);
  } else if (token == ".shared") {
    cursor->Take();
    DeclareShared(cursor, &shared_bytes_, &symbols_);
  } else if (token == ".entry" || token == ".func") {
    cursor->Take();
    ParseHead(cursor);
  } else {
    cursor->Fail("unknown directive");
  }
}

void Module::ParseHead(TokenCursor* cursor) {
  auto function = std::make_unique<Function>();
  function->module = this;
  if (cursor->Is(".attribute")) cursor->SkipPast(")");
  if (cursor->Is("(")) {
    function->results = ParseParameters(cursor, &function->parameter_bytes);
  }
  function->name = cursor->Take();
  if (cursor->Is("(")) {
    function->parameters = ParseParameters(cursor, &function->parameter_bytes);
  }
  ParseDirectives(cursor, function.get());
  if (cursor->TakeIf(";")) return;  // only declared
  function->body = cursor->position();
  cursor->SkipBraces();
  functions_[function->name] = std::move(function);
}

void Module::DeclareGlobal(TokenCursor* cursor, Symbols* symbols) {
  const VariableDeclaration variable = ParseVariable(
      cursor, [&](const std::string& name) { return FindVariable(name); });
  Memory& memory = Memory::Get();
  const uint64_t address =
      memory.Allocate(device_, std::max<size_t>(variable.bytes, 1));
  if (address == 0) {
    std::fprintf(stderr, "ptxemu: no device memory for the variable %s\n",
                 variable.name.c_str());
    std::abort();
  }
  GetRuntime().variable_bytes += std::max<size_t>(variable.bytes, 1);
  uint8_t* const contents = memory.Contents(address);
  std::fill_n(contents, variable.bytes, 0);
  std::copy_n(variable.initial.begin(),
              std::min(variable.initial.size(), variable.bytes), contents);
  (*symbols)[variable.name] = {Space::kGlobal, address};
}

void Module::DeclareShared(TokenCursor* cursor, size_t* shared_bytes,
                           Symbols* symbols) {
  const VariableDeclaration variable = ParseVariable(
      cursor, [&](const std::string& name) { return FindVariable(name); });
  if (variable.is_unsized) {
    (*symbols)[variable.name] = {
        .space = Space::kShared, .address = 0, .is_dynamic = true};
    return;
  }
  const size_t offset = (*shared_bytes + variable.alignment - 1) /
                        variable.alignment * variable.alignment;
  (*symbols)[variable.name] = {Space::kShared, offset};
  *shared_bytes = offset + variable.bytes;
}

const Function* Module::FindFunction(const std::string& name) {
  const auto found = functions_.find(name);
  if (found == functions_.end()) return nullptr;
  Function* const function = found->second.get();
  if (function->code.empty()) FunctionParser(this, function).Parse();
  return function;
}

const Symbol* Module::FindSymbol(const std::string& name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : &found->second;
}

uint64_t Module::FindVariable(const std::string& name) const {
  const Symbol* const symbol = FindSymbol(name);
  return symbol != nullptr && symbol->space == Space::kGlobal ? symbol->address
                                                              : 0;
}

}  // namespace millrace::ptxemu
