// SPDX-License-Identifier: Apache-2.0
#include "server/core/call_trace.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/base/trace_limit.h"

namespace millrace {
namespace {

void AppendHop(const CallTrace::Hop& hop, LogFields& fields) {
  const std::string name = StrCat("hop", hop.number);
  fields.push_back({name + "_ms", LogMilliseconds(hop.total)});
  if (hop.slowest_partition < 0) return;
  fields.push_back({name + "_wait_ms", LogMilliseconds(hop.waiting)});
  fields.push_back({name + "_slowest_partition", hop.slowest_partition});
  if (hop.slowest_server.empty()) return;
  fields.push_back({name + "_slowest_server", hop.slowest_server});
}

}  // namespace

void CallTrace::NoteWork(SteadyTime begin, SteadyTime end, size_t bytes) {
  if (!began_.has_value()) began_ = begin;
  work_ += end - begin;
  bytes_ += bytes;
}

void CallTrace::ClientMadeProgress(SteadyTime now) {
  if (writing_since_.has_value()) writing_ += now - *writing_since_;
  writing_since_.reset();
}

void CallTrace::NoteStatus(const char* method, const absl::Status& status) {
  method_ = method;
  code_ = absl::StatusCodeToString(status.code());
}

void CallTrace::LogIfSlow(const std::string& client, SteadyTime now,
                          absl::Duration limit) {
  if (now - arrived_ <= limit) return;
  const std::optional<uint64_t> left_out = TraceLimit().Take(now);
  if (!left_out.has_value()) return;
  ClientMadeProgress(now);
  const SteadyTime read = read_.value_or(now);
  LogFields fields = {
      {"method", method_},
      {"client", client},
      {"code", code_},
      {"total_ms", LogMilliseconds(now - arrived_)},
      {"read_ms", LogMilliseconds(read - arrived_)},
      {"queue_ms", LogMilliseconds(began_.value_or(now) - read)}};
  if (batch_.has_value()) {
    fields.insert(fields.end(), {{"epoch", batch_->epoch},
                                 {"batch", batch_->batch},
                                 {"partition", batch_->partition},
                                 {"sample_ms", LogMilliseconds(sampling_)}});
    for (const Hop& hop : hops_) AppendHop(hop, fields);
    fields.push_back({"gather_ms", LogMilliseconds(work_ - sampling_)});
  } else {
    fields.push_back({"work_ms", LogMilliseconds(work_)});
  }
  fields.push_back({"send_ms", LogMilliseconds(writing_)});
  fields.push_back({"bytes", bytes_});
  if (*left_out > 0) fields.push_back({"left_out", *left_out});
  LogWarning(LogComponent::kServer,
             batch_.has_value() ? "slow batch" : "slow call", fields);
}

}  // namespace millrace
