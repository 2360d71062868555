// SPDX-License-Identifier: Apache-2.0
// millrace status: lists the members of a fleet and their state.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/flags/job_flags.h"
#include "common/base/field_error.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/tls/tls.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;

struct StatusFlags {
  std::string servers;
  TlsOptions tls;
  double timeout_seconds = 5;
  std::string wait = "0s";
  bool json = false;
};

bool AllAsked(const std::vector<FleetMemberInfo>& members) {
  return !members.empty() &&
         std::none_of(members.begin(), members.end(),
                      [](const FleetMemberInfo& member) {
                        return member.state == State::kUnknown;
                      });
}

// Partitions that no ready member serves.
std::vector<int> MissingPartitions(const std::vector<FleetMemberInfo>& members,
                                   int parts) {
  std::vector<bool> served(parts);
  for (const FleetMemberInfo& member : members) {
    if (member.state != State::kReady) continue;
    for (const int part : member.partitions) {
      if (part >= 0 && part < parts) served[part] = true;
    }
  }
  std::vector<int> missing;
  for (int part = 0; part < parts; ++part) {
    if (!served[part]) missing.push_back(part);
  }
  return missing;
}

// Returns how many members before this one in the list serve the same
// partition; if it serves several, the maximum over its partitions.
int ReplicaNumber(const std::vector<FleetMemberInfo>& members, size_t index) {
  int number = 0;
  for (const int partition : members[index].partitions) {
    const auto before = std::count_if(
        members.begin(), members.begin() + static_cast<std::ptrdiff_t>(index),
        [partition](const FleetMemberInfo& other) {
          return std::count(other.partitions.begin(), other.partitions.end(),
                            partition) > 0;
        });
    number = std::max(number, static_cast<int>(before));
  }
  return number;
}

// "1h2m3s"; "0s" for zero, which Abseil prints as "0".
std::string UptimeText(absl::Duration uptime) {
  const absl::Duration whole = absl::Trunc(uptime, absl::Seconds(1));
  return whole == absl::ZeroDuration() ? "0s" : absl::FormatDuration(whole);
}

std::string Remarks(const FleetMemberInfo& member) {
  std::string remarks = FirstLine(member.error);
  for (const auto& [partition, what] : member.damaged) {
    absl::StrAppend(&remarks, remarks.empty() ? "" : "; ", "partition ",
                    partition, " is damaged: ", what);
  }
  return remarks;
}

void PrintTable(const std::vector<FleetMemberInfo>& members) {
  absl::PrintF("%-24s %-12s %-12s %7s %19s %10s  %s\n", "ADDRESS", "STATE",
               "PARTITIONS", "REPLICA", "INFLIGHT/LIMIT MiB", "UPTIME",
               "VERSION");
  for (size_t i = 0; i < members.size(); ++i) {
    const FleetMemberInfo& member = members[i];
    if (member.version.empty()) {
      absl::PrintF("%-24s %-12s %s\n", member.address,
                   AbslView(StateName(member.state)), FirstLine(member.error));
      continue;
    }
    const std::string remarks = Remarks(member);
    absl::PrintF("%-24s %-12s %-12s %7d %9.1f/%9.1f %10s  %s%s\n",
                 member.address, AbslView(StateName(member.state)),
                 absl::StrJoin(member.partitions, ","),
                 ReplicaNumber(members, i),
                 static_cast<double>(member.inflight_bytes) / (1 << 20),
                 static_cast<double>(member.max_inflight_bytes) / (1 << 20),
                 UptimeText(member.uptime), member.version,
                 remarks.empty() ? "" : absl::StrCat("  ", remarks));
  }
}

void PrintJson(const std::vector<FleetMemberInfo>& members,
               const std::vector<int>& missing) {
  nlohmann::ordered_json servers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < members.size(); ++i) {
    const FleetMemberInfo& member = members[i];
    nlohmann::ordered_json server;
    server["address"] = member.address;
    server["state"] = StateName(member.state);
    server["partitions"] = member.partitions;
    server["replica"] = ReplicaNumber(members, i);
    server["inflight_bytes"] = member.inflight_bytes;
    server["max_inflight_bytes"] = member.max_inflight_bytes;
    server["uptime_seconds"] = absl::ToDoubleSeconds(member.uptime);
    server["version"] = member.version;
    server["error"] = FirstLine(member.error);
    nlohmann::ordered_json damaged = nlohmann::ordered_json::object();
    for (const auto& [partition, what] : member.damaged) {
      damaged[absl::StrCat(partition)] = what;
    }
    server["damaged_partitions"] = std::move(damaged);
    servers.push_back(std::move(server));
  }
  nlohmann::ordered_json all;
  all["servers"] = std::move(servers);
  all["missing_partitions"] = missing;
  absl::PrintF("%s\n", all.dump());
}

// Returns the error to end with if nothing is known of the store. Each server's
// reason has been printed already.
absl::Status WhyNoManifest(const absl::Status& status, size_t servers) {
  if (!absl::IsUnavailable(status) || servers == 0) return status;
  return absl::UnavailableError(absl::StrCat(
      servers == 1 ? "the server does not answer"
                   : absl::StrCat("none of the ", servers, " servers answers"),
      "\nthe reason is shown beside each; start the servers, or "
      "correct the list"));
}

absl::Status RunStatus(const StatusFlags& flags) {
  absl::Duration wait;
  if (!absl::ParseDuration(flags.wait, &wait) || wait < absl::ZeroDuration()) {
    return UsageError(absl::StrCat("--wait ", flags.wait,
                                   " is not a duration; write e.g. 20s or 5m"));
  }
  const SteadyTime start = SteadyNow();
  const SteadyTime deadline =
      start + std::max(wait, absl::Seconds(flags.timeout_seconds));
  FleetOptions options;
  options.list = flags.servers;
  MILLRACE_ASSIGN_OR_RETURN(options.tls, OpenClientTls(flags.tls));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet,
                            Fleet::Create(std::move(options)));
  const absl::StatusOr<const Manifest*> manifest =
      fleet->WaitForManifest(deadline);
  MILLRACE_ASSIGN_OR_RETURN(std::vector<FleetMemberInfo> members,
                            fleet->AwaitMembers(AllAsked, deadline));
  if (manifest.ok() && wait > absl::ZeroDuration()) {
    const auto all_served = [parts = (*manifest)->partition_count()](
                                const std::vector<FleetMemberInfo>& now) {
      return MissingPartitions(now, parts).empty();
    };
    MILLRACE_ASSIGN_OR_RETURN(members,
                              fleet->AwaitMembers(all_served, start + wait));
  }
  const std::vector<int> missing =
      manifest.ok() ? MissingPartitions(members, (*manifest)->partition_count())
                    : std::vector<int>{};
  if (flags.json) {
    PrintJson(members, missing);
  } else {
    PrintTable(members);
  }
  if (!manifest.ok()) return WhyNoManifest(manifest.status(), members.size());
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "no ready server for partition ", absl::StrJoin(missing, ", "), " of ",
        (*manifest)->partition_count(),
        "\nstart one: millrace-server --store STORE --partition ",
        missing.front()));
  }
  return absl::OkStatus();
}

}  // namespace

void AddStatusCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "status",
      "show the fleet: partitions, replica, state, load, version; fails when "
      "a partition has no ready server");
  const auto flags = std::make_shared<StatusFlags>();
  AddServersFlag(*command->add_option_group("Source"), flags->servers)
      ->required();
  AddTlsFlags(*command, flags->tls);
  command
      ->add_option("--timeout", flags->timeout_seconds,
                   "seconds that servers have to answer")
      ->check(Number(0.1, 3600));
  command
      ->add_option("--wait", flags->wait,
                   "how long to wait until every partition has a ready "
                   "server, such as 30s")
      ->type_name("DURATION");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "  millrace status --servers 127.0.0.1:7001,127.0.0.1:7002 "
      "--wait 30s");
  command->callback(
      [flags, &body] { body = [flags] { return RunStatus(*flags); }; });
}

}  // namespace millrace
