// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/graph/manifest.h"

namespace millrace {
namespace {

std::string Sha256(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int bytes = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &bytes, EVP_sha256(),
             nullptr);
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(digest.data()), bytes});
}

}  // namespace

std::string ComputeFingerprint(const std::vector<FileInfo>& files) {
  std::vector<const FileInfo*> sorted;
  for (const FileInfo& file : files) sorted.push_back(&file);
  std::sort(
      sorted.begin(), sorted.end(),
      [](const FileInfo* a, const FileInfo* b) { return a->path < b->path; });
  std::string lines;
  for (const FileInfo* file : sorted) {
    absl::StrAppend(&lines, file->path, " ", file->bytes, " ",
                    absl::Hex(file->xxh3, absl::kZeroPad16), "\n");
  }
  return Sha256(lines);
}

std::string ChangedFingerprint(const std::string& fingerprint,
                               const std::string& change) {
  return Sha256(absl::StrCat(fingerprint, "\n", change, "\n"));
}

}  // namespace millrace
