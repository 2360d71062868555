// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status_table.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/printable.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"
#include "common/grpc/fleet/member_report.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;

// The longest IPv4 address with a port.
constexpr size_t kAddressWidth = 21;

// The two largest units: "3d4h", "5h12m", "1m30s", "7s".
std::string UptimeText(absl::Duration uptime) {
  const int64_t seconds = absl::ToInt64Seconds(uptime);
  const int64_t minutes = seconds / 60;
  const int64_t hours = minutes / 60;
  if (hours >= 24) return absl::StrCat(hours / 24, "d", hours % 24, "h");
  if (hours > 0) return absl::StrCat(hours, "h", minutes % 60, "m");
  if (minutes > 0) return absl::StrCat(minutes, "m", seconds % 60, "s");
  return absl::StrCat(seconds, "s");
}

// "512", "1.5M", "16G": at most five characters, units of 1024.
std::string ShortBytes(uint64_t bytes) {
  constexpr char kUnits[] = "KMGTPE";
  if (bytes < 1024) return absl::StrCat(bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.5; ++unit) value /= 1024;
  return absl::StrFormat("%.*f%c", value < 9.95 ? 1 : 0, value, kUnits[unit]);
}

// "7.5" or "12" milliseconds.
std::string Milliseconds(absl::Duration time) {
  const double milliseconds = absl::ToDoubleMilliseconds(time);
  return absl::StrFormat("%.*f", milliseconds < 9.95 ? 1 : 0, milliseconds);
}

std::string Row(const std::vector<FleetMemberInfo>& members, size_t index) {
  const FleetMemberInfo& member = members[index];
  const ServerLoad& load = member.load;
  // Servers before version 0.2 say nothing about their load.
  const bool known = load.resident_bytes > 0;
  return absl::StrFormat(
      "%-11s %-10s %7d %4s %7s %11s %5s %12s %5s %7s  %s",
      AbslView(StateName(member.state)), absl::StrJoin(member.partitions, ","),
      ReplicaNumber(members, index),
      known ? absl::StrFormat("%.0f%%", 100 * load.sampling_busy_ratio) : "-",
      known ? absl::StrFormat("%.1f", load.batches_per_second) : "-",
      known ? absl::StrCat(Milliseconds(load.sample_p50), "/",
                           Milliseconds(load.sample_p99))
            : "-",
      known ? absl::StrCat(load.sample_calls) : "-",
      absl::StrCat(ShortBytes(member.inflight_bytes), "/",
                   ShortBytes(member.max_inflight_bytes)),
      known ? ShortBytes(load.resident_bytes) : "-", UptimeText(member.uptime),
      Printable(member.version));
}

// What is wrong with a server that answers.
std::vector<std::string> Remarks(const FleetMemberInfo& member) {
  std::vector<std::string> remarks;
  if (!member.error.ok()) {
    remarks.push_back(Printable(FirstLine(member.error)));
  }
  if (!member.failure.empty()) {
    remarks.push_back(
        absl::StrCat(Printable(member.failure), ": restart this server"));
  }
  for (const auto& [partition, what] : member.damaged) {
    remarks.push_back(absl::StrCat("partition ", partition,
                                   " is damaged: ", Printable(what)));
  }
  if (member.leaf_only) {
    remarks.push_back(
        "ready for leaf calls only: it has some partitions and no --peers");
  }
  return remarks;
}

bool Answers(const FleetMemberInfo& member) {
  return !member.version.empty() && member.state != State::kUnreachable;
}

}  // namespace

std::string StatusTable(const std::vector<FleetMemberInfo>& members) {
  size_t width = kAddressWidth;
  for (const FleetMemberInfo& member : members) {
    width = std::max(width, member.address.size());
  }
  const int columns = static_cast<int>(width);
  std::string table = absl::StrFormat(
      "%-*s %-11s %-10s %7s %4s %7s %11s %5s %12s %5s %7s  %s\n", columns,
      "ADDRESS", "STATE", "PARTITIONS", "REPLICA", "BUSY", "BATCH/S",
      "P50/P99 ms", "CALLS", "INFLIGHT/MAX", "RSS", "UPTIME", "VERSION");
  std::string remarks;
  for (size_t i = 0; i < members.size(); ++i) {
    const FleetMemberInfo& member = members[i];
    if (!Answers(member)) {
      absl::StrAppendFormat(&table, "%-*s %-11s %s\n", columns, member.address,
                            AbslView(StateName(member.state)),
                            Printable(FirstLine(member.error)));
      continue;
    }
    absl::StrAppendFormat(&table, "%-*s %s\n", columns, member.address,
                          Row(members, i));
    for (const std::string& remark : Remarks(member)) {
      absl::StrAppend(&remarks, member.address, ": ", remark, "\n");
    }
  }
  return table + remarks;
}

}  // namespace millrace
