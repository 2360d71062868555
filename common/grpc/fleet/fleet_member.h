// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grpc/fleet/channel_set.h"
#include "common/grpc/fleet/member_state.h"

namespace millrace {

namespace v1 {
class DescribeReply;
}  // namespace v1

// One server of the fleet. Its address never changes.
struct FleetMember {
  std::string address;  // "host:port" or "[v6]:port"
  ChannelSet channels;  // at least one; shared with calls in flight
  // Maintained by callers that want their load balanced (see Fleet::Pick).
  std::atomic<int64_t> outstanding_bytes{0};
};

// How busy a server has been in the last minute, as it says itself: see
// DescribeReply.Load. All zero for servers that do not say.
struct ServerLoad {
  double sampling_busy_ratio = 0;  // 0 to 1
  double batches_per_second = 0;
  absl::Duration sample_p50;  // time of a Sample call
  absl::Duration sample_p99;
  uint64_t sample_calls = 0;  // running or waiting now
  uint64_t resident_bytes = 0;
};

// A snapshot of what is known about a member.
struct FleetMemberInfo {
  using State = MemberState;
  std::string address;
  State state = State::kUnknown;
  std::vector<int> partitions;
  std::map<int, std::string> damaged;  // what is wrong, by partition
  std::string version;
  std::string instance;  // see DescribeReply.instance
  uint64_t inflight_bytes = 0;
  uint64_t max_inflight_bytes = 0;
  absl::Duration uptime;
  ServerLoad load;
  bool leaf_only = false;    // has some partitions only, and no peers
  std::string failure;       // why it has to be restarted; empty if not
  bool other_store = false;  // the reason for kRefused
  absl::Status error;        // the last failure; OK once it has answered since
};

// Fills in what the member's answer says of it; not its address, its state and
// why it is refused.
void TakeAnswer(const v1::DescribeReply& reply, FleetMemberInfo& info);

}  // namespace millrace
