// SPDX-License-Identifier: Apache-2.0
#include "common/graph/manifest_checks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/graph/partition_book.h"

namespace millrace {
namespace {

absl::Status ValidateBook(const PartitionBook& book, const NodeType& type,
                          int parts) {
  const auto offsets = book.offsets();
  const bool fits = book.partition_count() == parts && offsets.front() == 0 &&
                    std::is_sorted(offsets.begin(), offsets.end()) &&
                    offsets.back() == static_cast<uint64_t>(type.count);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the offsets of '", type.name, "' are not ", parts + 1,
                   " ascending numbers from 0 to ", type.count));
}

// Whether `counts` are `parts` non-negative numbers that add up to `total`.
bool ArePartCounts(const std::vector<int64_t>& counts, int parts,
                   int64_t total) {
  if (counts.size() != static_cast<size_t>(parts)) return false;
  int64_t left = total;
  for (const int64_t count : counts) {
    if (count < 0 || count > left) return false;
    left -= count;
  }
  return left == 0;
}

// Checks that no owner (a node type or relation) has two splits of the same
// name.
template <typename Split, typename Index>
absl::Status CheckDistinct(const std::vector<Split>& splits,
                           Index Split::*owner, std::string_view what) {
  std::set<std::pair<Index, std::string_view>> names;
  for (const Split& split : splits) {
    if (names.insert({split.*owner, split.name}).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(what), " '", split.name, "' occurs twice"));
  }
  return absl::OkStatus();
}

absl::Status ValidateSplit(const Manifest& manifest, const SplitInfo& split) {
  const auto types = static_cast<TypeIndex>(manifest.schema.node_types.size());
  if (split.type < 0 || split.type >= types) {
    return absl::InvalidArgumentError(absl::StrCat(
        "split '", split.name, "' belongs to a node type that does not exist"));
  }
  MILLRACE_RETURN_IF_ERROR(ValidateName(split.name));
  const PartitionBook& book = manifest.books[split.type];
  bool fits =
      ArePartCounts(split.part_counts, manifest.partition_count(), split.count);
  for (int part = 0; fits && part < manifest.partition_count(); ++part) {
    fits = static_cast<uint64_t>(split.part_counts[part]) <=
           book.end(part) - book.begin(part);
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'part_counts' of split '", split.name, "' are not ",
      manifest.partition_count(), " numbers that add up to ", split.count));
}

absl::Status ValidatePath(const std::string& path) {
  const std::vector<std::string> steps = absl::StrSplit(path, '/');
  for (const std::string& step : steps) {
    const bool control = std::any_of(step.begin(), step.end(), [](char c) {
      return static_cast<unsigned char>(c) < ' ';
    });
    if (step.empty() || step == "." || step == ".." || control) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", absl::CHexEscape(path), "' is not a path inside a store"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateFiles(const std::vector<FileInfo>& files) {
  std::set<std::string_view> paths;
  for (const FileInfo& file : files) {
    MILLRACE_RETURN_IF_ERROR(ValidatePath(file.path));
    if (!paths.insert(file.path).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("file '", file.path, "' is listed twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateEdgeSplit(const Manifest& manifest,
                               const EdgeSplitInfo& split) {
  constexpr int64_t kMaxSeeds = int64_t{1} << 48;
  constexpr int64_t kMaxNegatives = int64_t{1} << 20;
  const size_t relations = manifest.schema.relations.size();
  MILLRACE_RETURN_IF_ERROR(ValidateName(split.name));
  const bool fits =
      split.relation >= 0 && static_cast<size_t>(split.relation) < relations &&
      split.count <= kMaxSeeds && split.negatives >= 0 &&
      split.negatives <= kMaxNegatives && split.label.row_shape.empty() &&
      ArePartCounts(split.part_counts, manifest.partition_count(), split.count);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the counts of edge split '", split.name, "' are inconsistent"));
}

absl::Status ValidateManifest(const Manifest& manifest) {
  const Schema& schema = manifest.schema;
  MILLRACE_RETURN_IF_ERROR(ValidateSchema(schema));
  if (manifest.books.size() != schema.node_types.size()) {
    return absl::InvalidArgumentError("a node type has no partition book");
  }
  const int parts = manifest.partition_count();
  if (parts < 1 || parts > kMaxPartitions) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts, " partitions; there may be 1 to ", kMaxPartitions));
  }
  for (size_t i = 0; i < manifest.books.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(
        ValidateBook(manifest.books[i], schema.node_types[i], parts));
  }
  for (const SplitInfo& split : manifest.splits) {
    MILLRACE_RETURN_IF_ERROR(ValidateSplit(manifest, split));
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    MILLRACE_RETURN_IF_ERROR(ValidateEdgeSplit(manifest, split));
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckDistinct(manifest.splits, &SplitInfo::type, "split"));
  MILLRACE_RETURN_IF_ERROR(CheckDistinct(
      manifest.edge_splits, &EdgeSplitInfo::relation, "edge split"));
  return ValidateFiles(manifest.files);
}

}  // namespace millrace
