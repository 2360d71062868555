// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/incoming_call.h"

#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/request_id.h"
#include "server/rpc/client_name.h"
#include "server/rpc/parse_request.h"

namespace millrace {

IncomingCall::IncomingCall(ServerCore& core, const char* method, Limits limits,
                           ::grpc::CallbackServerContext* context)
    : core_(core),
      method_(method),
      limits_(limits),
      context_(context),
      arrival_(SteadyNow()),
      deadline_(core.DeadlineOf(*context)),
      client_(ClientName(*context)),
      request_id_(RequestIdOf(*context)),
      trace_(core.options.trace_slow > absl::ZeroDuration()
                 ? std::make_unique<CallTrace>(SteadyNow())
                 : nullptr) {}

absl::Status IncomingCall::StartReading() {
  MILLRACE_ASSIGN_OR_RETURN(place_,
                            core_.connection_calls.Enter(context_->peer()));
  // Refuses early: there is no need to read a request that would be refused
  // later.
  MILLRACE_RETURN_IF_ERROR(limits_.running.CheckRoom(client_));
  MILLRACE_RETURN_IF_ERROR(limits_.reading.Enter(context_, client_, deadline_));
  limits_.reading.AwaitClient(context_,
                              SteadyNow() + core_.options.request_timeout);
  return absl::OkStatus();
}

absl::Status IncomingCall::FinishReading(bool ok) {
  limits_.reading.Leave(context_);
  if (trace_ != nullptr) trace_->NoteRequest(SteadyNow());
  if (!ok && context_->IsCancelled()) {
    return absl::CancelledError(
        "the client gave up before its request arrived");
  }
  if (!ok) {
    return absl::InvalidArgumentError(
        "the call has no request\nsend one message");
  }
  core_.metrics.AddRequest(method_, message_.Length());
  MILLRACE_RETURN_IF_ERROR(limits_.running.Enter(context_, client_, deadline_));
  running_ = true;
  core_.metrics.StartCall(method_);
  return absl::OkStatus();
}

absl::Status IncomingCall::ReserveRequest(
    Admission& admission, const ::google::protobuf::Descriptor& type) {
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t bytes,
                            RequestMemory(message_, type));
  return ReplaceReservation(admission, /*job=*/0, bytes);
}

absl::Status IncomingCall::ReplaceReservation(Admission& admission,
                                              uint64_t job, uint64_t bytes) {
  // Frees the old reservation first; otherwise a batch that just fits would
  // always be refused.
  memory_ = {};
  const auto end = [this] { limits_.running.EndForOthers(context_); };
  MILLRACE_ASSIGN_OR_RETURN(
      memory_, admission.Reserve({.client = client_, .end = end}, job, bytes));
  return absl::OkStatus();
}

void IncomingCall::AwaitClient() {
  if (trace_ != nullptr) trace_->AwaitClient(SteadyNow());
  limits_.running.AwaitClient(context_,
                              SteadyNow() + core_.options.client_timeout);
  memory_.StartWaiting();
}

void IncomingCall::ClientMadeProgress() {
  if (trace_ != nullptr) trace_->ClientMadeProgress(SteadyNow());
  limits_.running.ClientMadeProgress(context_);
  memory_.StopWaiting();
}

void IncomingCall::StartFinishing() {
  if (trace_ != nullptr) trace_->NoteFinish(SteadyNow());
}

void IncomingCall::NoteStatus(const absl::Status& status) {
  if (trace_ != nullptr) trace_->NoteStatus(method_, status);
  if (!IsLogged(LogLevel::kDebug)) return;
  const LogRequest logged(request_id_);
  LogFields fields = {{"method", method_},
                      {"client", client_},
                      {"code", absl::StatusCodeToString(status.code())}};
  if (!status.ok()) fields.push_back({"error", FirstLine(status)});
  LogDebug(
      LogComponent::kServer,
      status.ok() ? "call answered" : StrCat("call failed", AdviceOf(status)),
      fields);
}

void IncomingCall::Leave(const absl::Status& status) {
  NoteStatus(status);
  if (trace_ != nullptr) {
    const LogRequest logged(request_id_);
    trace_->LogIfSlow(client_, SteadyNow(), core_.options.trace_slow);
  }
  memory_ = {};
  if (running_) core_.metrics.StopCall(method_);
  core_.metrics.CountCall(method_, status, SteadyNow() - arrival_);
  // The thread that ended the call during the read may still be using it.
  limits_.reading.Leave(context_);
  if (running_) limits_.running.Leave(context_);
}

}  // namespace millrace
