// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/graph/manifest.h"

namespace millrace {
namespace {

// The result of searching the splits of one owner (a node type or relation) for
// a name: the split's index, and the names of the splits before it.
struct FoundSplit {
  std::optional<size_t> place;
  std::string names;

  absl::StatusOr<size_t> PlaceOf(const SplitIdentity& identity) const {
    if (identity.conflict.empty()) return *place;
    return absl::FailedPreconditionError(identity.conflict);
  }
};

template <typename Split, typename Index>
FoundSplit FindNamed(const std::vector<Split>& splits, Index Split::*owner,
                     Index of, std::string_view name) {
  FoundSplit found;
  for (size_t i = 0; i < splits.size() && !found.place; ++i) {
    if (splits[i].*owner != of) continue;
    if (splits[i].name == name) found.place = i;
    absl::StrAppend(&found.names, found.names.empty() ? "" : ", ",
                    splits[i].name);
  }
  if (found.names.empty()) found.names = "none";
  return found;
}

absl::Status NoSuchSplit(std::string_view name, const std::string& what) {
  absl::Status status = absl::NotFoundError(what);
  SetFieldError({.field = "split", .value = std::string(name)}, status);
  return status;
}

}  // namespace

absl::StatusOr<size_t> Manifest::FindSplit(TypeIndex type,
                                           std::string_view name) const {
  const FoundSplit found = FindNamed(splits, &SplitInfo::type, type, name);
  if (found.place) return found.PlaceOf(splits[*found.place].identity);
  return NoSuchSplit(
      name, StrCat("node type ", schema.node_types[type].name,
                   " has no split \"", name, "\"; it has: ", found.names));
}

absl::StatusOr<size_t> Manifest::FindEdgeSplit(RelationIndex relation,
                                               std::string_view name) const {
  const FoundSplit found =
      FindNamed(edge_splits, &EdgeSplitInfo::relation, relation, name);
  if (found.place) return found.PlaceOf(edge_splits[*found.place].identity);
  return NoSuchSplit(name, StrCat("relation ", schema.RelationName(relation),
                                  " has no split \"", name,
                                  "\" of edges; it has: ", found.names));
}

const EdgeSplitInfo* Manifest::EdgeSplit(RelationIndex relation,
                                         std::string_view name) const {
  const FoundSplit found =
      FindNamed(edge_splits, &EdgeSplitInfo::relation, relation, name);
  return found.place ? &edge_splits[*found.place] : nullptr;
}

}  // namespace millrace
