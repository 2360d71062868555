// SPDX-License-Identifier: Apache-2.0
// Splits PTX into tokens, and walks through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::ptxemu {

struct Token {
  std::string_view text;
  int line;
};

// The tokens are views of `text`. Comments are left out.
std::vector<Token> Tokenize(std::string_view text);

// The value of an integer, or the bits of a float (0f3F800000, 0d...).
uint64_t ParseNumber(std::string_view text);
bool IsNumber(std::string_view text);

// A place in a list of tokens.
class TokenCursor {
 public:
  TokenCursor(const std::vector<Token>& tokens, size_t position)
      : tokens_(tokens), position_(position) {}

  // The token `ahead` places on; empty beyond the end.
  std::string_view Peek(size_t ahead = 0) const;
  bool Is(std::string_view text) const { return Peek() == text; }
  bool AtEnd() const { return position_ >= tokens_.size(); }
  int line() const;
  size_t position() const { return position_; }

  // The next four end the process with a message if there are no more tokens.
  std::string_view Take();
  // Takes the next token if it is `text`.
  bool TakeIf(std::string_view text);
  // Takes the next token, which must be `text`.
  void Expect(std::string_view text);
  // Skips all tokens up to and including `text`.
  void SkipPast(std::string_view text);
  void SkipLine();
  // Skips what is between { and }, which begins here.
  void SkipBraces();

  // Ends the process with a message that names the line.
  [[noreturn]] void Fail(std::string_view what) const;

 private:
  const std::vector<Token>& tokens_;
  size_t position_;
};

}  // namespace millrace::ptxemu
