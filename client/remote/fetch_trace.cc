// SPDX-License-Identifier: Apache-2.0
#include "client/remote/fetch_trace.h"

#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/base/trace_limit.h"

namespace millrace {
namespace {

double MillisecondsOf(absl::Duration time) {
  return absl::ToDoubleMilliseconds(absl::Trunc(time, absl::Microseconds(10)));
}

}  // namespace

void FetchTrace::NoteCall(Ended call) {
  MutexLock lock(&mutex_);
  ++calls_;
  if (call.replicas_asked > 1) ++hedged_;
  if (call.time >= slowest_.time) slowest_ = std::move(call);
}

void FetchTrace::LogIfSlow(const Fetched& batch, SteadyTime now,
                           absl::Duration limit) {
  if (now - start_ <= limit) return;
  const std::optional<uint64_t> left_out = TraceLimit().Take(now);
  if (!left_out.has_value()) return;
  const LogRequest logged(batch.request_id);
  LogFields fields = {
      {"epoch", batch.epoch},       {"batch", batch.batch},
      {"home", batch.home},         {"total_ms", MillisecondsOf(now - start_)},
      {"attempts", batch.attempts}, {"bytes", batch.bytes}};
  {
    MutexLock lock(&mutex_);
    fields.insert(fields.end(),
                  {{"calls", calls_},
                   {"hedged_calls", hedged_},
                   {"slowest_call",
                    slowest_.method.substr(slowest_.method.rfind('/') + 1)},
                   {"slowest_partition", slowest_.partition},
                   {"slowest_server", slowest_.server},
                   {"slowest_ms", MillisecondsOf(slowest_.time)}});
  }
  if (*left_out > 0) fields.push_back({"left_out", *left_out});
  LogWarning(LogComponent::kLoader, "slow batch", fields);
}

}  // namespace millrace
