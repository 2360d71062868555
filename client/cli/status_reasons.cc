// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status_reasons.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_lines.h"
#include "common/grpc/fleet/member_report.h"

namespace millrace {
namespace {

using Members = std::vector<FleetMemberInfo>;
using State = FleetMemberInfo::State;

constexpr char kHowToReach[] =
    "\nstart it, or correct the address; a server that is opening its store "
    "does not listen yet: its log and /readyz say so";

}  // namespace

Members AfterTimeout(Members members, absl::Duration timeout) {
  for (FleetMemberInfo& member : members) {
    if (member.state != State::kUnknown) continue;
    member.state = State::kUnreachable;
    member.error = absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
  }
  return members;
}

absl::Status WhyNotServed(const Members& members, int parts) {
  const std::vector<int> missing = MissingPartitions(members, parts);
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "no ready server for partition ", absl::StrJoin(missing, ", "), " of ",
      parts, "\nstart one: millrace-server --store STORE --partition ",
      missing.front()));
}

absl::Status WhyNotAllReady(const Members& members) {
  std::vector<std::string> others;
  for (const FleetMemberInfo& member : members) {
    if (!TakesWork(member)) others.push_back(member.address);
  }
  if (others.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      others.size(), " of ", members.size(), " servers ",
      others.size() == 1 ? "is" : "are",
      " not ready: ", absl::StrJoin(others, ", "),
      "\nthe reason is shown beside each; without --all, one for each "
      "partition is enough"));
}

absl::Status WhyNoManifest(const absl::Status& status, size_t servers) {
  if (!absl::IsUnavailable(status) || servers == 0) return status;
  return absl::UnavailableError(absl::StrCat(
      servers == 1 ? "the server does not answer"
                   : absl::StrCat("none of the ", servers, " servers answers"),
      "\nthe reason is shown beside each; start the servers, or "
      "correct the list"));
}

absl::Status WhyNotReady(const FleetMemberInfo& member) {
  const std::string server = absl::StrCat("the server ", member.address, " ");
  const auto no = [&server](const std::string& what, const std::string& todo) {
    return absl::UnavailableError(absl::StrCat(server, what, "\n", todo));
  };
  switch (member.state) {
    case State::kUnknown:  // AfterTimeout() leaves none
    case State::kUnreachable: {
      if (absl::IsDeadlineExceeded(member.error)) {
        return no(absl::StrCat("is silent: ", FirstLine(member.error)),
                  "see its log, and whether a firewall drops what is sent to "
                  "it; --timeout gives it more time");
      }
      const std::string advice = AdviceOf(member.error);
      return absl::UnavailableError(
          absl::StrCat(server, "cannot be reached: ", FirstLine(member.error),
                       advice.empty() ? kHowToReach : advice));
    }
    case State::kRefused:
      return member.error;
    case State::kDraining:
      return no("is draining: it ends once its calls have ended",
                "use another replica, or wait until it has been started again");
    case State::kReady:
      break;
  }
  if (!member.failure.empty()) {
    return no(absl::StrCat("has failed: ", member.failure), "restart it");
  }
  if (!member.partitions.empty()) return absl::OkStatus();
  return no(absl::StrCat(
                "has only damaged partitions: ",
                member.damaged.empty() ? "" : member.damaged.begin()->second),
            "restore its store from a copy and restart it");
}

}  // namespace millrace
