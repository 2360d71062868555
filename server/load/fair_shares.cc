// SPDX-License-Identifier: Apache-2.0
#include "server/load/fair_shares.h"

#include "common/base/check.h"
#include "common/base/strings.h"

namespace millrace {

void FairShares::Add(std::string_view client, uint64_t amount) {
  if (amount == 0) return;
  held_[AbslView(client)] += amount;
  total_ += amount;
}

void FairShares::Remove(std::string_view client, uint64_t amount) {
  if (amount == 0) return;
  const auto it = held_.find(AbslView(client));
  MILLRACE_CHECK(it != held_.end() && it->second >= amount);
  it->second -= amount;
  total_ -= amount;
  if (it->second == 0) held_.erase(it);
}

uint64_t FairShares::HeldBy(std::string_view client) const {
  const auto it = held_.find(AbslView(client));
  return it == held_.end() ? 0 : it->second;
}

uint64_t FairShares::ShareOf(std::string_view client) const {
  const size_t others = held_.size() - held_.count(AbslView(client));
  return limit_ / (others + 1);
}

}  // namespace millrace
