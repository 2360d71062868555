// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/support/manifest.h"

#include <xxhash.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/manifest.h"

namespace millrace::fuzz {
namespace {

using Json = nlohmann::ordered_json;

// The list of files as far as it can be read.
std::vector<FileInfo> FilesOf(const Json& root) {
  std::vector<FileInfo> files;
  if (!root.contains("files") || !root["files"].is_array()) return files;
  for (const Json& item : root["files"]) {
    if (!item.is_object()) return files;
    const auto path = item.find("path"), bytes = item.find("bytes"),
               xxh3 = item.find("xxh3");
    if (path == item.end() || !path->is_string() || bytes == item.end() ||
        !bytes->is_number_unsigned() || xxh3 == item.end() ||
        !xxh3->is_string()) {
      return files;
    }
    uint64_t hash = 0;
    (void)absl::SimpleHexAtoi(xxh3->get<std::string>(), &hash);
    files.push_back({path->get<std::string>(), bytes->get<uint64_t>(), hash});
  }
  return files;
}

}  // namespace

std::string WithChecksum(std::string_view json) {
  constexpr std::string_view kChecksum = "\"checksum\": \"";
  constexpr size_t kDigits = 16;
  std::string text(json);
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_object() && root.contains("fingerprint") &&
      root["fingerprint"].is_string()) {
    const std::string old = root["fingerprint"].get<std::string>();
    const size_t at = old.empty() ? std::string::npos : text.find(old);
    if (at != std::string::npos) {
      text.replace(at, old.size(), ComputeFingerprint(FilesOf(root)));
    }
  }
  const size_t at = text.rfind(kChecksum);
  if (at == std::string::npos) return text;
  const size_t digits = at + kChecksum.size();
  if (digits + kDigits >= text.size()) return text;
  text.replace(digits, kDigits, kDigits, '0');
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  text.replace(digits, kDigits,
               absl::StrCat(absl::Hex(hash, absl::kZeroPad16)));
  return text;
}

}  // namespace millrace::fuzz
