// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/refusals.h"

#include <utility>

#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {

void Refusals::Add(int partition, const FleetMember& member,
                   const absl::Status& why) {
  MutexLock lock(&mutex_);
  by_partition_[partition].push_back({&member, member.address, why});
}

absl::StatusOr<std::shared_ptr<FleetMember>> Refusals::Pick(Fleet& fleet,
                                                            int partition) {
  std::vector<Refusal> refusals;
  {
    MutexLock lock(&mutex_);
    refusals = by_partition_[partition];
  }
  std::vector<const FleetMember*> members;
  for (const Refusal& refusal : refusals) members.push_back(refusal.member);
  auto member = fleet.Pick(partition, SteadyTime::InfinitePast(), members);
  if (member.ok() || refusals.empty()) return member;
  if (fleet.OnlyThese(partition, members)) return Explain(partition, refusals);
  // While others are waited for, these may have been mended.
  MutexLock lock(&mutex_);
  by_partition_.erase(partition);
  return member;
}

absl::Status Refusals::Explain(int partition,
                               const std::vector<Refusal>& refusals) {
  std::string reasons;
  for (const Refusal& refusal : refusals) {
    reasons += StrCat(reasons.empty() ? "" : "; ", "server ", refusal.address,
                      ": ", FirstLine(refusal.why));
  }
  const absl::Status& first = refusals.front().why;
  return WithErrorInfo(
      absl::Status(first.code(), StrCat("partition ", partition, ": ", reasons,
                                        AdviceOf(first))),
      {.partition = partition});
}

}  // namespace millrace
