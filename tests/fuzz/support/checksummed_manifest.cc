// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/support/checksummed_manifest.h"

#include <xxhash.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/manifest.h"

namespace millrace::fuzz {
namespace {

using Json = nlohmann::ordered_json;

// The list of files, as far as it is readable.
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

// Replaces the fingerprint of an entry in the text.
void Replace(const Json& entry, const std::string& now, std::string& text) {
  const auto old = entry.find("fingerprint");
  if (old == entry.end() || !old->is_string()) return;
  const std::string digits = old->get<std::string>();
  const size_t at = digits.empty() ? std::string::npos : text.find(digits);
  if (at != std::string::npos) text.replace(at, digits.size(), now);
}

// Calls visit(entry, folder) for each split that has a fingerprint.
void ForEachSplit(const Json& root,
                  const std::function<void(const Json&, std::string)>& visit) {
  for (const auto& [list, owner] :
       {std::pair("splits", "type"), std::pair("edge_splits", "relation")}) {
    if (!root.contains(list) || !root[list].is_array()) continue;
    for (const Json& entry : root[list]) {
      if (!entry.is_object() || !entry.contains("fingerprint")) continue;
      const auto type = entry.find(owner), name = entry.find("name");
      if (type == entry.end() || !type->is_string() || name == entry.end() ||
          !name->is_string()) {
        continue;
      }
      visit(entry, absl::StrCat("splits/", type->get<std::string>(), "/",
                                name->get<std::string>(), "/"));
    }
  }
}

void ReplaceFingerprints(const Json& root, std::string& text) {
  const std::vector<FileInfo> files = FilesOf(root);
  SplitFingerprints splits = ComputeSplitFingerprints(files);
  std::set<std::string, std::less<>> apart;
  ForEachSplit(root, [&](const Json& entry, const std::string& folder) {
    Replace(entry, splits[folder], text);
    apart.insert(folder);
  });
  Replace(root, ComputeFingerprint(files, apart), text);
}

}  // namespace

std::string WithChecksum(std::string_view json) {
  constexpr std::string_view kChecksum = "\"checksum\": \"";
  constexpr size_t kDigits = 16;
  std::string text(json);
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_object()) ReplaceFingerprints(root, text);
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
