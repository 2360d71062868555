// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/request_call.h"

#include <cstdint>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "server/rpc/client_name.h"
#include "server/rpc/parse_request.h"

namespace millrace {
namespace {

absl::Status CancelledEarly() {
  return absl::CancelledError("the call was cancelled before its work began");
}

}  // namespace

RequestCall::RequestCall(ServerCore& core, Kind kind,
                         ::grpc::CallbackServerContext* context)
    : core_(core),
      kind_(kind),
      context_(context),
      deadline_(core.DeadlineOf(*context)),
      client_(ClientName(*context)) {}

void RequestCall::Begin() {
  if (const absl::Status status = EnterReading(); !status.ok()) {
    return End(status);
  }
  StartRead(&message_);
}

absl::Status RequestCall::EnterReading() {
  MILLRACE_ASSIGN_OR_RETURN(place_,
                            core_.connection_calls.Enter(context_->peer()));
  // Refuses early: there is no need to read a request that would be refused
  // later.
  MILLRACE_RETURN_IF_ERROR(kind_.running.CheckRoom(client_));
  MILLRACE_RETURN_IF_ERROR(kind_.reading.Enter(context_, client_, deadline_));
  kind_.reading.AwaitClient(context_,
                            SteadyNow() + core_.options.request_timeout);
  return absl::OkStatus();
}

void RequestCall::OnReadDone(bool ok) {
  kind_.reading.Leave(context_);
  if (!ok) {
    return End(
        context_->IsCancelled()
            ? absl::CancelledError("the client gave up before its request came")
            : absl::InvalidArgumentError(
                  "the call has no request\nsend one message"));
  }
  const absl::Status status = kind_.running.Enter(context_, client_, deadline_);
  entered_ = status.ok();
  if (!entered_) return End(status);
  OnRequest();
}

// A task begins by taking the lock, so it cannot end the call before the lock
// is released here.
void RequestCall::Submit(ThreadPool& pool, std::function<void()> task) {
  absl::Status refused;
  {
    MutexLock lock(&task_mutex_);
    auto start = [this, task = std::move(task)] {
      {
        MutexLock start_lock(&task_mutex_);
        queued_in_ = nullptr;
      }
      task();
    };
    if (cancelled_) {
      refused = CancelledEarly();
    } else if (pool.TrySubmit(std::move(start), client_, this)) {
      queued_in_ = &pool;
    } else {
      refused = absl::UnavailableError("the server is shutting down");
    }
  }
  if (!refused.ok()) End(refused);
}

void RequestCall::OnCancel() {
  {
    MutexLock lock(&task_mutex_);
    cancelled_ = true;
    if (queued_in_ == nullptr || !queued_in_->Remove(this)) return;
    queued_in_ = nullptr;
  }
  End(CancelledEarly());
}

absl::Status RequestCall::ReserveRequest(
    Admission& admission, const ::google::protobuf::Descriptor& type) {
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t bytes,
                            RequestMemory(message_, type));
  return ReserveAnew(admission, /*job=*/0, bytes);
}

absl::Status RequestCall::ReserveAnew(Admission& admission, uint64_t job,
                                      uint64_t bytes) {
  // Frees the old reservation first; otherwise a batch that just fits would
  // always be refused.
  memory_ = {};
  const auto end = [this] { kind_.running.EndForOthers(context_); };
  MILLRACE_ASSIGN_OR_RETURN(
      memory_, admission.Reserve({.client = client_, .end = end}, job, bytes));
  return absl::OkStatus();
}

void RequestCall::AwaitClient() {
  kind_.running.AwaitClient(context_,
                            SteadyNow() + core_.options.client_timeout);
  memory_.StartWaiting();
}

void RequestCall::ClientMoved() {
  kind_.running.ClientMoved(context_);
  memory_.StopWaiting();
}

void RequestCall::Leave() {
  memory_ = {};
  // The thread that ended the call during the read may still be using it.
  kind_.reading.Leave(context_);
  if (entered_) kind_.running.Leave(context_);
}

}  // namespace millrace
