// SPDX-License-Identifier: Apache-2.0
// Debian's Abseil has its own string_view type; this project uses
// std::string_view.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace millrace {

inline absl::string_view AbslView(std::string_view view) {
  return {view.data(), view.size()};
}

// Returns `text` without the spaces at its ends.
inline std::string_view WithoutSpaces(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// absl::StrCat that also takes std::string_view.
template <typename... Args>
std::string StrCat(const Args&... args) {
  const auto piece = []<typename T>(const T& value) -> decltype(auto) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      return AbslView(value);
    } else {
      return static_cast<const T&>(value);
    }
  };
  return absl::StrCat(piece(args)...);
}

}  // namespace millrace
