// SPDX-License-Identifier: Apache-2.0
#include "common/base/printable.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// The number of bytes of the first character of `text`, which must not be
// empty; 0 if it cannot be shown because it is a control character, an
// invisible one (such as a byte order mark), or not valid UTF-8.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  constexpr unsigned char kDelete = 0x7f;
  if (byte(0) <= kDelete) return byte(0) >= ' ' && byte(0) != kDelete;
  const size_t bytes = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (byte(0) < 0xc0 || byte(0) > 0xf7 || text.size() < bytes) return 0;
  uint32_t code = byte(0) & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // The least code that an encoding of 2, 3 or 4 bytes may have. Two-byte codes
  // below 0xa0 are control characters; overlong encodings and surrogates are
  // invalid.
  constexpr uint32_t kFirst[] = {0xa0, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  constexpr uint32_t kByteOrderMark = 0xfeff;
  const bool invisible =
      code == kByteOrderMark || (code >= 0x200b && code < 0x2010) ||
      (code >= 0x2028 && code < 0x202f) || (code >= 0x2060 && code < 0x2070);
  if (code < kFirst[bytes - 2] || code > 0x10ffff) return 0;
  return surrogate || invisible ? 0 : bytes;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      absl::StrAppend(&shown, "\\x",
                      absl::BytesToHexString(AbslView(text.substr(0, 1))));
    } else {
      shown.append(text.data(), bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

}  // namespace millrace
