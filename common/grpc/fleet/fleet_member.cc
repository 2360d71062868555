// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet_member.h"

#include "sampler.pb.h"

namespace millrace {

void TakeAnswer(const v1::DescribeReply& reply, FleetMemberInfo& info) {
  info.version = reply.version();
  info.instance = reply.instance();
  info.partitions.assign(reply.partitions().begin(), reply.partitions().end());
  info.damaged.clear();
  for (const auto& damage : reply.damage()) {
    info.damaged[static_cast<int>(damage.partition())] = damage.what();
  }
  info.inflight_bytes = reply.inflight_bytes();
  info.max_inflight_bytes = reply.max_inflight_bytes();
  info.uptime = absl::Seconds(reply.uptime_seconds());
  info.load = {.sampling_busy_ratio = reply.load().sampling_busy_ratio(),
               .batches_per_second = reply.load().batches_per_second(),
               .sample_p50 = absl::Seconds(reply.load().sample_p50_seconds()),
               .sample_p99 = absl::Seconds(reply.load().sample_p99_seconds()),
               .sample_calls = reply.load().sample_calls(),
               .resident_bytes = reply.load().resident_bytes()};
  info.leaf_only = reply.leaf_only();
  info.failure = reply.failure();
}

}  // namespace millrace
