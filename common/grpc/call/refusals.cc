// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/refusals.h"

#include <algorithm>
#include <utility>

#include "common/base/status_lines.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {

void Refusals::Add(int partition, const FleetMember& member,
                   const absl::Status& why) {
  MutexLock lock(&mutex_);
  by_partition_[partition].push_back(
      {&member, member.address, why, SteadyNow()});
}

SteadyTime Refusals::Start(int partition) const {
  MutexLock lock(&mutex_);
  const auto found = by_partition_.find(partition);
  return found == by_partition_.end() ? SteadyTime::InfinitePast()
                                      : found->second.front().time;
}

absl::StatusOr<std::shared_ptr<FleetMember>> Refusals::Pick(Fleet& fleet,
                                                            int partition) {
  std::vector<Refusal> refusals;
  {
    MutexLock lock(&mutex_);
    const auto found = by_partition_.find(partition);
    if (found != by_partition_.end()) refusals = found->second;
  }
  std::vector<const FleetMember*> members;
  for (const Refusal& refusal : refusals) members.push_back(refusal.member);
  auto member = fleet.Pick(partition, SteadyTime::InfinitePast(), members);
  if (member.ok() || refusals.empty()) return member;
  // The list may name other servers by now.
  if (!fleet.AwaitList(refusals.front().time, SteadyTime::InfinitePast())) {
    return member;
  }
  if (fleet.OnlyThese(partition, members)) return Explain(partition, refusals);
  // While the caller waits for others, these may have recovered.
  MutexLock lock(&mutex_);
  by_partition_.erase(partition);
  return member;
}

bool Refusals::Include(int partition, const FleetMember& member) const {
  MutexLock lock(&mutex_);
  const auto found = by_partition_.find(partition);
  return found != by_partition_.end() &&
         std::any_of(
             found->second.begin(), found->second.end(),
             [&](const Refusal& refusal) { return refusal.member == &member; });
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
      {.partition = partition, .moved = absl::IsFailedPrecondition(first)});
}

}  // namespace millrace
