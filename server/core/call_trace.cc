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
  EndLeafTask(begin);
  work_ += end - begin;
  bytes_ += bytes;
}

void CallTrace::EndLeafTask(SteadyTime now) {
  if (leaf_task_.has_value()) leaf_queue_ += now - *leaf_task_;
  leaf_task_.reset();
}

void CallTrace::ClientMadeProgress(SteadyTime now) {
  if (writing_since_.has_value()) writing_ += now - *writing_since_;
  writing_since_.reset();
}

void CallTrace::NoteStatus(const char* method, const absl::Status& status) {
  method_ = method;
  code_ = absl::StatusCodeToString(status.code());
}

// Messages are made while earlier ones are sent, so that work and sending may
// add up to more than the total; the gaps between them are in the other fields.
LogFields CallTrace::Fields(const std::string& client, SteadyTime now) const {
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
  fields.insert(fields.end(),
                {{"leaf_queue_ms", LogMilliseconds(leaf_queue_)},
                 {"send_ms", LogMilliseconds(writing_)},
                 {"finish_ms", LogMilliseconds(now - finished_.value_or(now))},
                 {"bytes", bytes_}});
  return fields;
}

void CallTrace::LogIfSlow(const std::string& client, SteadyTime now,
                          absl::Duration limit) {
  if (now - arrived_ <= limit) return;
  const bool is_batch = batch_.has_value();
  const std::optional<uint64_t> left_out =
      (is_batch ? SlowBatchLimit() : SlowCallLimit()).Take(now);
  if (!left_out.has_value()) return;
  ClientMadeProgress(now);
  EndLeafTask(now);
  LogFields fields = Fields(client, now);
  if (*left_out > 0) fields.push_back({"left_out", *left_out});
  LogWarning(LogComponent::kServer, is_batch ? "slow batch" : "slow call",
             fields);
}

}  // namespace millrace
