// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/declarations.h"

#include <algorithm>
#include <map>

#include "common/base/round_up.h"

namespace millrace::ptxemu {
namespace {

bool IsSpace(std::string_view text) {
  return text == ".ptr" || text == ".param" || text == ".reg" ||
         text == ".global" || text == ".shared" || text == ".const";
}

// Reads "[3]" or "[]"; 0 for the latter.
size_t ParseArraySize(TokenCursor* cursor) {
  cursor->Expect("[");
  if (cursor->TakeIf("]")) return 0;
  const size_t size = ParseNumber(cursor->Take());
  cursor->Expect("]");
  return size;
}

void Append(uint64_t value, size_t bytes, std::vector<uint8_t>* out) {
  for (size_t i = 0; i < bytes; ++i) {
    out->push_back(static_cast<uint8_t>(value >> 8 * i));
  }
}

// Reads the values between = and ;, each of so many bytes.
std::vector<uint8_t> ParseInitialValues(
    TokenCursor* cursor, size_t bytes,
    const std::function<uint64_t(const std::string&)>& address_of) {
  constexpr std::string_view kIgnored[] = {"{", "}", ",", "(", ")", "generic"};
  std::vector<uint8_t> values;
  while (!cursor->Is(";")) {
    const std::string_view token = cursor->Take();
    if (std::find(std::begin(kIgnored), std::end(kIgnored), token) !=
        std::end(kIgnored)) {
      continue;
    }
    if (token == "-") {
      Append(0 - ParseNumber(cursor->Take()), bytes, &values);
    } else if (token == "+") {
      cursor->Fail("an address with an offset as an initial value");
    } else if (IsNumber(token)) {
      Append(ParseNumber(token), bytes, &values);
    } else {
      Append(address_of(std::string(token)), bytes, &values);
    }
  }
  return values;
}

Parameter ParseParameter(TokenCursor* cursor, size_t* bytes) {
  size_t alignment = 0;
  size_t element_bytes = 0;
  size_t count = 1;
  std::string name;
  while (!cursor->Is(",") && !cursor->Is(")")) {
    if (cursor->Is("[")) {
      count = ParseArraySize(cursor);
      continue;
    }
    const std::string_view token = cursor->Take();
    if (token == ".align") {
      alignment = ParseNumber(cursor->Take());
    } else if (token[0] != '.') {
      name = token;
    } else if (!IsSpace(token)) {
      element_bytes = TypeBytes(token);
    }
  }
  alignment = std::max<size_t>({alignment, element_bytes, 1});
  const size_t offset = RoundUp(*bytes, alignment);
  *bytes = offset + element_bytes * count;
  return {name, offset, element_bytes * count};
}

}  // namespace

bool ParseValueType(std::string_view text, ValueType* type) {
  static const std::map<std::string_view, ValueType> kTypes = {
      {"pred", {.kind = 'p', .bytes = 1}},
      {"b8", {'b', 1}},
      {"b16", {'b', 2}},
      {"b32", {'b', 4}},
      {"b64", {'b', 8}},
      {"u8", {'u', 1}},
      {"u16", {'u', 2}},
      {"u32", {'u', 4}},
      {"u64", {'u', 8}},
      {"s8", {'s', 1}},
      {"s16", {'s', 2}},
      {"s32", {'s', 4}},
      {"s64", {'s', 8}},
      {"f16", {'f', 2}},
      {"f32", {'f', 4}},
      {"f64", {'f', 8}},
      {"bf16", {.kind = 'f', .bytes = 2, .is_bfloat = true}},
      {"f16x2", {.kind = 'f', .bytes = 4, .is_packed = true}},
      {"bf16x2",
       {.kind = 'f', .bytes = 4, .is_bfloat = true, .is_packed = true}}};
  const auto found = kTypes.find(text);
  if (found == kTypes.end()) return false;
  *type = found->second;
  return true;
}

size_t TypeBytes(std::string_view text) {
  if (text == ".pred") return 1;
  const size_t digits = text.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 0;
  return ParseNumber(text.substr(digits)) / 8;
}

VariableDeclaration ParseVariable(
    TokenCursor* cursor,
    const std::function<uint64_t(const std::string&)>& address_of) {
  VariableDeclaration variable;
  size_t element_bytes = 0;
  size_t count = 1;
  while (!cursor->TakeIf(";")) {
    if (cursor->Is("[")) {
      const size_t size = ParseArraySize(cursor);
      variable.is_unsized = size == 0;
      count *= std::max<size_t>(size, 1);
      continue;
    }
    const std::string_view token = cursor->Take();
    if (token == ".align") {
      variable.alignment = ParseNumber(cursor->Take());
    } else if (token == "=") {
      variable.initial = ParseInitialValues(cursor, element_bytes, address_of);
    } else if (token == ".attribute") {
      cursor->SkipPast(")");
    } else if (token[0] == '.') {
      if (const size_t bytes = TypeBytes(token); bytes > 0) {
        element_bytes = bytes;
      }
    } else {
      variable.name = token;
    }
  }
  variable.alignment = std::max(variable.alignment, element_bytes);
  variable.bytes = element_bytes * count;
  return variable;
}

std::vector<Parameter> ParseParameters(TokenCursor* cursor, size_t* bytes) {
  std::vector<Parameter> parameters;
  cursor->Expect("(");
  while (!cursor->TakeIf(")")) {
    parameters.push_back(ParseParameter(cursor, bytes));
    cursor->TakeIf(",");
  }
  return parameters;
}

}  // namespace millrace::ptxemu
