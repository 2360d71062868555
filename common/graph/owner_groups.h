// SPDX-License-Identifier: Apache-2.0
// Groups items by the partition that each belongs to, and reverses the
// grouping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

// Tells GroupByOwner to leave the item out.
inline constexpr int kNoOwner = -1;

// The items of one partition, as indices into the list of all items.
struct OwnerGroup {
  int partition = 0;
  std::vector<uint32_t> places;  // ascending
};

// Groups the items 0 to count - 1 by `owner_of(item)`, which is a partition
// below `parts` or kNoOwner. A group has at most `most` items, so an owner may
// have several groups.
template <typename OwnerFn>
std::vector<OwnerGroup> GroupByOwner(
    size_t count, int parts, OwnerFn owner_of,
    size_t most = std::numeric_limits<size_t>::max()) {
  std::vector<OwnerGroup> groups;
  std::vector<std::vector<uint32_t>> open(static_cast<size_t>(parts));
  const auto close = [&](int part) {
    if (open[part].empty()) return;
    groups.push_back({part, std::exchange(open[part], {})});
  };
  for (size_t i = 0; i < count; ++i) {
    const int owner = owner_of(i);
    if (owner == kNoOwner) continue;
    open[owner].push_back(static_cast<uint32_t>(i));
    if (open[owner].size() == most) close(owner);
  }
  for (int part = 0; part < parts; ++part) close(part);
  return groups;
}

// The items at `places`, in their order.
template <typename T>
std::vector<T> TakeAt(std::span<const T> items,
                      const std::vector<uint32_t>& places) {
  std::vector<T> taken;
  taken.reserve(places.size());
  for (const uint32_t place : places) taken.push_back(items[place]);
  return taken;
}

// out[places[i]] = items[i].
template <typename T>
void PutAt(std::span<const T> items, const std::vector<uint32_t>& places,
           std::vector<T>& out) {
  for (size_t i = 0; i < places.size(); ++i) out[places[i]] = items[i];
}

}  // namespace millrace
