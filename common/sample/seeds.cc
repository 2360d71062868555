// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds.h"

#include <string>

#include "common/base/strings.h"

namespace millrace {
absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids) {
  const PartitionBook& book = store.book(type);
  const uint64_t width = book.lookup_width();
  std::vector<uint64_t> ids;
  ids.reserve(original_ids.size());
  for (size_t i = 0; i < original_ids.size(); ++i) {
    const auto original = static_cast<uint64_t>(original_ids[i]);
    if (original >= book.node_count()) {
      return absl::InvalidArgumentError(StrCat(
          "seed ", original_ids[i], " at position ", i,
          " is out of range; node type ", store.schema().node_types[type].name,
          " has ", book.node_count(), " nodes"));
    }
    const int part = static_cast<int>(original / width);
    const Partition* partition = store.partition(part);
    if (partition == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("partition ", part, " is not open in this process"));
    }
    ids.push_back(static_cast<uint64_t>(partition->nodes[type].lookup.IntegerAt(
        static_cast<int64_t>(original % width))));
    if (ids.back() >= book.node_count()) {
      return absl::DataLossError(StrCat(
          (store.path() /
           LookupPath(part, store.schema().node_types[type].name))
              .string(),
          " is damaged: index ", original % width, " is ", ids.back(), " of ",
          book.node_count(), " nodes\nrun `millrace verify` on the store"));
    }
  }
  return ids;
}

}  // namespace millrace
