// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/tokens.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"

namespace millrace::ptxemu {
namespace {

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

// The length of the token or comment at the start of `rest`.
size_t TokenLength(std::string_view rest) {
  if (rest.starts_with("//")) return std::min(rest.find('\n'), rest.size());
  if (rest.starts_with("/*")) return rest.find("*/") + 2;
  if (rest[0] == '"') return rest.find('"', 1) + 1;
  const auto end = std::find_if_not(rest.begin(), rest.end(), IsWordCharacter);
  return std::max<size_t>(1, end - rest.begin());
}

}  // namespace

std::vector<Token> Tokenize(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  while (!text.empty()) {
    const bool is_blank = absl::ascii_isspace(text[0]) || text[0] == '\0';
    const bool is_comment = text.starts_with("//") || text.starts_with("/*");
    const size_t length = is_blank ? 1 : TokenLength(text);
    const std::string_view token = text.substr(0, length);
    if (!is_blank && !is_comment) tokens.push_back({token, line});
    line += static_cast<int>(std::count(token.begin(), token.end(), '\n'));
    text.remove_prefix(length);
  }
  return tokens;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && absl::ascii_isdigit(text[0]);
}

uint64_t ParseNumber(std::string_view text) {
  const std::string number(text);
  if (number.size() > 2 && number[0] == '0' &&
      std::string_view("fFdD").find(number[1]) != std::string_view::npos) {
    return std::strtoull(number.c_str() + 2, nullptr, 16);
  }
  return std::strtoull(number.c_str(), nullptr, 0);  // stops at a final U
}

std::string_view TokenCursor::Peek(size_t ahead) const {
  const size_t at = position_ + ahead;
  return at < tokens_.size() ? tokens_[at].text : std::string_view();
}

int TokenCursor::line() const {
  if (tokens_.empty()) return 0;
  return tokens_[std::min(position_, tokens_.size() - 1)].line;
}

std::string_view TokenCursor::Take() {
  if (AtEnd()) Fail("the text ends too early");
  return tokens_[position_++].text;
}

bool TokenCursor::TakeIf(std::string_view text) {
  if (!Is(text)) return false;
  ++position_;
  return true;
}

void TokenCursor::Expect(std::string_view text) {
  if (!TakeIf(text)) Fail("expected '" + std::string(text) + "'");
}

void TokenCursor::SkipPast(std::string_view text) {
  while (Take() != text) {
  }
}

void TokenCursor::SkipLine() {
  const int skipped = line();
  while (!AtEnd() && line() == skipped) ++position_;
}

void TokenCursor::SkipBraces() {
  int depth = 0;
  do {
    const std::string_view token = Take();
    if (token == "{") ++depth;
    if (token == "}") --depth;
  } while (depth > 0);
}

void TokenCursor::Fail(std::string_view what) const {
  std::fprintf(stderr, "ptxemu: PTX line %d: %s near '%s'\n", line(),
               std::string(what).c_str(), std::string(Peek()).c_str());
  std::abort();
}

}  // namespace millrace::ptxemu
