// SPDX-License-Identifier: Apache-2.0
#include "client/remote/fetch_trace.h"

#include <optional>
#include <utility>

#include "common/base/trace_limit.h"

namespace millrace {

void FetchTrace::NoteCall(Ended call) {
  MutexLock lock(&mutex_);
  ++calls_;
  if (call.replicas_asked > 1) ++resent_;
  if (call.time >= slowest_.time) slowest_ = std::move(call);
}

void FetchTrace::LogIfSlow(const Fetched& batch, SteadyTime now,
                           absl::Duration limit) {
  if (now - start_ <= limit) return;
  const std::optional<uint64_t> left_out = SlowBatchLimit().Take(now);
  if (!left_out.has_value()) return;
  const LogRequest logged(batch.request_id);
  LogFields fields = {{"epoch", batch.epoch},
                      {"batch", batch.batch},
                      {"home", batch.home},
                      {"code", absl::StatusCodeToString(batch.code)},
                      {"total_ms", LogMilliseconds(now - start_)},
                      {"attempts", batch.attempts},
                      {"bytes", batch.bytes}};
  AppendCalls(fields);
  if (*left_out > 0) fields.push_back({"left_out", *left_out});
  LogWarning(LogComponent::kLoader, "slow batch", fields);
}

void FetchTrace::AppendCalls(LogFields& fields) {
  MutexLock lock(&mutex_);
  fields.insert(fields.end(), {{"calls", calls_}, {"resent_calls", resent_}});
  if (calls_ == 0) return;
  fields.insert(
      fields.end(),
      {{"slowest_call", slowest_.method.substr(slowest_.method.rfind('/') + 1)},
       {"slowest_partition", slowest_.partition},
       {"slowest_server", slowest_.server},
       {"slowest_ms", LogMilliseconds(slowest_.time)}});
}

}  // namespace millrace
