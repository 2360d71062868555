// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

std::string FingerprintOf(std::vector<const FileInfo*> files) {
  std::sort(
      files.begin(), files.end(),
      [](const FileInfo* a, const FileInfo* b) { return a->path < b->path; });
  std::string lines;
  for (const FileInfo* file : files) {
    absl::StrAppend(&lines, file->path, " ", file->bytes, " ",
                    absl::Hex(file->xxh3, absl::kZeroPad16), "\n");
  }
  return Sha256(lines);
}

// "splits/TYPE/NAME/" for a file of a split, empty for other files.
std::string_view FolderOf(std::string_view path) {
  if (!path.starts_with("splits/")) return {};
  return path.substr(0, path.rfind('/') + 1);
}

// Whether the column holds ids, which depend on the partitions.
bool HoldsIds(std::string_view column) {
  return column == "id.npy" || column == "src.npy" || column == "dst.npy" ||
         column == "negative.npy";
}

// Calls visit(split) for all splits of a manifest, which may be const.
void ForEachSplit(auto& manifest, const auto& visit) {
  for (auto& split : manifest.splits) visit(split);
  for (auto& split : manifest.edge_splits) visit(split);
}

}  // namespace

std::string SplitFolder(const Schema& schema, const SplitInfo& split) {
  return absl::StrCat("splits/", schema.node_types[split.type].name, "/",
                      split.name, "/");
}

std::string SplitFolder(const Schema& schema, const EdgeSplitInfo& split) {
  return absl::StrCat("splits/", schema.RelationName(split.relation), "/",
                      split.name, "/");
}

SplitFingerprints ComputeSplitFingerprints(const std::vector<FileInfo>& files) {
  std::map<std::string_view, std::vector<const FileInfo*>> folders;
  for (const FileInfo& file : files) {
    const std::string_view folder = FolderOf(file.path);
    if (folder.empty()) continue;
    std::vector<const FileInfo*>& columns = folders[folder];
    const std::string_view column = file.path;
    if (!HoldsIds(column.substr(folder.size()))) columns.push_back(&file);
  }
  SplitFingerprints fingerprints;
  for (auto& [folder, columns] : folders) {
    fingerprints.emplace(folder, FingerprintOf(std::move(columns)));
  }
  return fingerprints;
}

std::string ComputeFingerprint(
    const std::vector<FileInfo>& files,
    const std::set<std::string, std::less<>>& excluded_folders) {
  std::vector<const FileInfo*> counted;
  for (const FileInfo& file : files) {
    if (!excluded_folders.contains(FolderOf(file.path))) {
      counted.push_back(&file);
    }
  }
  return FingerprintOf(std::move(counted));
}

std::string ComputeFingerprint(const Manifest& manifest) {
  std::set<std::string, std::less<>> excluded_folders;
  ForEachSplit(manifest, [&](const auto& split) {
    if (split.identity.within_store) return;
    excluded_folders.insert(SplitFolder(manifest.schema, split));
  });
  return ComputeFingerprint(manifest.files, excluded_folders);
}

void SetFingerprints(Manifest& manifest) {
  SplitFingerprints fingerprints = ComputeSplitFingerprints(manifest.files);
  ForEachSplit(manifest, [&](auto& split) {
    split.identity = {.fingerprint =
                          fingerprints[SplitFolder(manifest.schema, split)]};
  });
  manifest.fingerprint = ComputeFingerprint(manifest);
}

std::string ChangedFingerprint(const std::string& fingerprint,
                               const std::string& change) {
  return Sha256(absl::StrCat(fingerprint, "\n", change, "\n"));
}

}  // namespace millrace
