// SPDX-License-Identifier: Apache-2.0
#include "common/sample/neighbor_source.h"

namespace millrace {
namespace {

template <typename T>
void Append(const std::vector<T>& from, size_t at, uint32_t count,
            std::vector<T>& to) {
  if (from.empty()) return;
  const auto first = from.begin() + static_cast<ptrdiff_t>(at);
  to.insert(to.end(), first, first + count);
}

}  // namespace

void Picks::AppendNode(const Picks& from, size_t at, uint32_t count) {
  counts.push_back(count);
  Append(from.neighbors, at, count, neighbors);
  Append(from.edge_ids, at, count, edge_ids);
  Append(from.feature_rows, at, count, feature_rows);
}

}  // namespace millrace
