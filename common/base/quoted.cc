// SPDX-License-Identifier: Apache-2.0
#include "common/base/quoted.h"

#include "absl/strings/escaping.h"
#include "common/base/strings.h"

namespace millrace {

std::string Quoted(std::string_view text, size_t max_bytes) {
  return StrCat("\"", absl::CHexEscape(AbslView(text.substr(0, max_bytes))),
                text.size() > max_bytes ? "...\"" : "\"");
}

}  // namespace millrace
