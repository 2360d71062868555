// SPDX-License-Identifier: Apache-2.0
// millrace status: lists the members of a fleet, or one server, and their
// state.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands.h"
#include "client/cli/status_reasons.h"
#include "client/cli/status_screen.h"
#include "client/cli/status_table.h"
#include "client/flags/job_flags.h"
#include "common/base/json_line.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/cli/addresses.h"
#include "common/cli/durations.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/fleet/member_report.h"
#include "common/grpc/tls/tls.h"

namespace millrace {
namespace {

using Members = std::vector<FleetMemberInfo>;
using State = FleetMemberInfo::State;

struct StatusFlags {
  std::string servers;
  std::string server;
  TlsOptions tls;
  std::string timeout_text = "5s";
  std::string wait_text = "0s";
  std::string watch_text;  // empty: do not watch
  bool all = false;
  bool json = false;

  // What these texts say, once ParseTimes() has read them.
  absl::Duration timeout;
  absl::Duration wait;
  absl::Duration watch;

  // Whether the user asks about one server rather than the fleet.
  bool of_one() const { return !server.empty(); }
  bool watches() const { return !watch_text.empty(); }
};

absl::Status ParseTimes(StatusFlags& flags) {
  constexpr absl::Duration kLeast = absl::Milliseconds(100);
  constexpr absl::Duration kMost = absl::Hours(1);
  MILLRACE_ASSIGN_OR_RETURN(
      flags.timeout,
      ParseDurationOption("--timeout", flags.timeout_text, kLeast, kMost));
  MILLRACE_ASSIGN_OR_RETURN(flags.wait,
                            ParseDurationOption("--wait", flags.wait_text));
  if (!flags.watches()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(
      flags.watch,
      ParseDurationOption("--watch", flags.watch_text, kLeast, kMost));
  return absl::OkStatus();
}

bool AllAsked(const Members& members) {
  return !members.empty() &&
         std::none_of(members.begin(), members.end(),
                      [](const FleetMemberInfo& member) {
                        return member.state == State::kUnknown;
                      });
}

bool AllTakeWork(const Members& members) {
  return !members.empty() &&
         std::all_of(members.begin(), members.end(), TakesWork);
}

// What is known about the servers at some moment.
struct Snapshot {
  Members members;
  // The number of partitions; nullopt while no server has answered.
  std::optional<int> parts;

  std::vector<int> missing() const {
    return parts.has_value() ? MissingPartitions(members, *parts)
                             : std::vector<int>{};
  }
};

nlohmann::ordered_json JsonOf(const StatusFlags& flags,
                              const Snapshot& snapshot) {
  nlohmann::ordered_json all;
  all["servers"] = MembersJson(snapshot.members);
  if (!flags.of_one()) all["missing_partitions"] = snapshot.missing();
  return all;
}

absl::StatusOr<std::unique_ptr<Fleet>> OpenFleet(const StatusFlags& flags) {
  FleetOptions options;
  options.list = flags.of_one() ? flags.server : flags.servers;
  MILLRACE_ASSIGN_OR_RETURN(options.tls, OpenClientTls(flags.tls));
  options.describe_timeout = flags.timeout;
  if (flags.watches()) {
    options.ready_interval = std::min(options.ready_interval, flags.watch / 2);
  }
  return Fleet::Create(std::move(options));
}

void Print(const StatusFlags& flags, const Snapshot& snapshot) {
  const std::string text = flags.json ? JsonLine(JsonOf(flags, snapshot)) + "\n"
                                      : StatusTable(snapshot.members);
  absl::PrintF("%s", text);
}

// millrace status --server
absl::Status ShowServer(const StatusFlags& flags) {
  const SteadyTime start = SteadyNow();
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet,
                            OpenFleet(flags));
  Snapshot snapshot;
  MILLRACE_ASSIGN_OR_RETURN(
      snapshot.members,
      fleet->AwaitMembers(AllAsked,
                          start + std::max(flags.wait, flags.timeout)));
  if (flags.wait > absl::ZeroDuration()) {
    MILLRACE_ASSIGN_OR_RETURN(
        snapshot.members, fleet->AwaitMembers(AllTakeWork, start + flags.wait));
  }
  snapshot.members = AfterTimeout(std::move(snapshot.members), flags.timeout);
  Print(flags, snapshot);
  return WhyNotReady(snapshot.members.front());
}

// millrace status --servers
absl::Status ShowFleet(const StatusFlags& flags) {
  const SteadyTime start = SteadyNow();
  const SteadyTime deadline = start + std::max(flags.wait, flags.timeout);
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet,
                            OpenFleet(flags));
  const absl::StatusOr<const Manifest*> manifest =
      fleet->WaitForManifest(deadline);
  Snapshot snapshot;
  MILLRACE_ASSIGN_OR_RETURN(snapshot.members,
                            fleet->AwaitMembers(AllAsked, deadline));
  if (manifest.ok()) snapshot.parts = (*manifest)->partition_count();
  if (manifest.ok() && flags.wait > absl::ZeroDuration()) {
    const auto enough = [&flags, parts = *snapshot.parts](const Members& now) {
      return MissingPartitions(now, parts).empty() &&
             (!flags.all || AllTakeWork(now));
    };
    MILLRACE_ASSIGN_OR_RETURN(snapshot.members,
                              fleet->AwaitMembers(enough, start + flags.wait));
  }
  snapshot.members = AfterTimeout(std::move(snapshot.members), flags.timeout);
  Print(flags, snapshot);
  if (!manifest.ok()) {
    return WhyNoManifest(manifest.status(), snapshot.members.size());
  }
  MILLRACE_RETURN_IF_ERROR(WhyNotServed(snapshot.members, *snapshot.parts));
  return flags.all ? WhyNotAllReady(snapshot.members) : absl::OkStatus();
}

// "2026-11-28 18:40:05  3 of 4 servers are ready; no ready server for ..."
std::string Headline(const Snapshot& snapshot, absl::Time now) {
  const auto ready = std::count_if(snapshot.members.begin(),
                                   snapshot.members.end(), TakesWork);
  const absl::Status missing =
      snapshot.parts.has_value()
          ? WhyNotServed(snapshot.members, *snapshot.parts)
          : absl::OkStatus();
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%S", now, absl::LocalTimeZone()), "  ",
      ready, " of ", snapshot.members.size(),
      snapshot.members.size() == 1 ? " server is ready" : " servers are ready",
      missing.ok() ? "" : absl::StrCat("; ", FirstLine(missing)));
}

std::string WatchText(const StatusFlags& flags, const Snapshot& snapshot) {
  const absl::Time now = absl::Now();
  if (!flags.json) {
    return absl::StrCat(Headline(snapshot, now), "\n",
                        StatusTable(snapshot.members), "\n");
  }
  nlohmann::ordered_json json;
  json["time"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone());
  json.update(JsonOf(flags, snapshot));
  return JsonLine(json) + "\n";
}

// millrace status --watch. Returns CANCELLED when the program is interrupted.
absl::Status Watch(const StatusFlags& flags) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet,
                            OpenFleet(flags));
  Snapshot snapshot;
  MILLRACE_ASSIGN_OR_RETURN(
      snapshot.members,
      fleet->AwaitMembers(AllAsked, SteadyNow() + flags.timeout));
  snapshot.members = AfterTimeout(std::move(snapshot.members), flags.timeout);
  StatusScreen screen;
  const auto never = [](const Members&) { return false; };
  for (SteadyTime next = SteadyNow();;) {
    if (!flags.of_one() && !snapshot.parts.has_value()) {
      const auto manifest = fleet->WaitForManifest(SteadyNow());
      if (manifest.ok()) snapshot.parts = (*manifest)->partition_count();
    }
    MILLRACE_RETURN_IF_ERROR(screen.Show(WatchText(flags, snapshot)));
    next = std::max(next, SteadyNow() - absl::Seconds(1)) + flags.watch;
    MILLRACE_ASSIGN_OR_RETURN(snapshot.members,
                              fleet->AwaitMembers(never, next));
  }
}

absl::Status RunStatus(StatusFlags flags) {
  MILLRACE_RETURN_IF_ERROR(ParseTimes(flags));
  if (flags.watches()) return Watch(flags);
  return flags.of_one() ? ShowServer(flags) : ShowFleet(flags);
}

}  // namespace

void AddStatusCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "status",
      "show servers: partitions, replica, state, load, version; fails when "
      "a partition has no ready server, or --server is not ready");
  const auto flags = std::make_shared<StatusFlags>();
  CLI::Option_group* source = command->add_option_group("Source");
  AddServersFlag(*source, flags->servers);
  CLI::Option* server =
      source
          ->add_option("--server", flags->server,
                       "one server, whatever partitions it has: a health check")
          ->type_name("HOST:PORT")
          ->check(HostPortText(/*min_port=*/1));
  source->require_option(1);
  AddTlsFlags(*command, flags->tls);
  command
      ->add_option("--timeout", flags->timeout_text,
                   "how long servers have to answer, such as 500ms")
      ->type_name("DURATION");
  CLI::Option* all =
      command
          ->add_flag("--all", flags->all,
                     "all servers of the list must be ready, rather than one "
                     "for each partition")
          ->excludes(server);
  CLI::Option* wait =
      command
          ->add_option(
              "--wait", flags->wait_text,
              "how long to wait for ready servers: one for each "
              "partition, or with --all each of the list, or --server; "
              "such as 30s")
          ->type_name("DURATION");
  command
      ->add_option("--watch", flags->watch_text,
                   "show this again at this interval, until interrupted")
      ->expected(0, 1)
      ->default_str("2s")
      ->type_name("[DURATION]")
      ->excludes(wait)
      ->excludes(all);
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "  millrace status --servers 127.0.0.1:7001,127.0.0.1:7002 --wait 30s\n"
      "  millrace status --servers @servers --all --wait 2m\n"
      "  millrace status --server 127.0.0.1:7001\n"
      "  millrace status --servers 127.0.0.1:7001,127.0.0.1:7002 --watch 5s");
  command->callback(
      [flags, &body] { body = [flags] { return RunStatus(*flags); }; });
}

}  // namespace millrace
