// SPDX-License-Identifier: Apache-2.0
#include "server/load/active_calls.h"

#include <grpc/grpc.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "server/load/refusal.h"

namespace millrace {
namespace {

// How long after its deadline a call may be ended.
constexpr absl::Duration kReapInterval = absl::Seconds(1);

}  // namespace

absl::Status EndedForOthers() {
  return WithErrorInfo(
      absl::ResourceExhaustedError(
          StrCat(kEndedForOthers,
                 ", which hold less than their fair share\nask for less at a "
                 "time, and read what is sent")),
      {.partition = std::nullopt, .retry_after = kRetryAfter});
}

ActiveCalls::ActiveCalls(int max_calls, End end)
    : end_(std::move(end)),
      places_(static_cast<uint64_t>(max_calls)),
      reaper_([this] { Reap(); }) {}

ActiveCalls::~ActiveCalls() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_reaper_.NotifyOne();
  }
  reaper_.join();
}

// Uses our own status, because TryCancel() would tell the client that it gave
// up itself. gRPC sends only code and message here; see kEndedForOthers.
void ActiveCalls::CancelCall(Context* context, const absl::Status& why) {
  if (why.ok()) return context->TryCancel();
  const std::string message(why.message());
  grpc_call_cancel_with_status(context->c_call(),
                               static_cast<grpc_status_code>(why.code()),
                               message.c_str(), nullptr);
}

absl::Status ActiveCalls::CheckRoom(const std::string& client) const {
  MutexLock lock(&mutex_);
  return CheckRoomLocked(client);
}

absl::Status ActiveCalls::CheckRoomLocked(const std::string& client) const {
  if (draining_) {
    return WithRefusal(
        absl::UnavailableError("the server is draining\nask another replica, "
                               "or wait for it to come back"),
        RefusalReason::kDraining);
  }
  if (places_.total() < places_.limit()) return absl::OkStatus();
  const uint64_t held = places_.HeldBy(client);
  const uint64_t share = places_.ShareOf(client);
  // At most as many calls as there are places may be ending at the same time.
  if (held < share && calls_.size() < 2 * places_.limit()) {
    return absl::OkStatus();
  }
  const absl::Status full = absl::ResourceExhaustedError(
      StrCat("the server is busy: ", places_.total(), " of at most ",
             places_.limit(), " calls are running, ", held,
             " of them this client's, whose fair share is ", share));
  return WithErrorInfo(WithRefusal(full, RefusalReason::kPlaces),
                       {.partition = std::nullopt, .retry_after = kRetryAfter});
}

absl::Status ActiveCalls::Enter(Context* context, const std::string& client,
                                SteadyTime deadline) {
  MutexLock lock(&mutex_);
  MILLRACE_RETURN_IF_ERROR(CheckRoomLocked(client));
  if (places_.total() >= places_.limit()) TakePlaceFor(client);
  places_.Add(client, 1);
  calls_[context] = {
      .client = client, .deadline = deadline, .entered = SteadyNow()};
  return absl::OkStatus();
}

// Scans all calls, of which there are at most twice as many as places. For
// 32,768, the maximum, that takes a fraction of a millisecond, and it happens
// only when all places are taken; a sorted order would have to be updated with
// every message of every call.
void ActiveCalls::TakePlaceFor(const std::string& client) {
  const uint64_t share = places_.ShareOf(client);
  Call* chosen = nullptr;
  for (auto& [context, call] : calls_) {
    if (call.for_others || (chosen != nullptr && !call.EndsBefore(*chosen))) {
      continue;
    }
    // Checked last because it is the most expensive test.
    if (places_.HeldBy(call.client) > share) chosen = &call;
  }
  // All places are taken and `client` has less than its share, so some client
  // exceeds its own.
  MILLRACE_CHECK(chosen != nullptr);
  MarkForOthers(*chosen);
}

void ActiveCalls::MarkForOthers(Call& call) {
  places_.Remove(call.client, 1);
  call.for_others = true;
  any_for_others_ = true;
  ++ended_for_others_;
  wake_reaper_.NotifyOne();
}

void ActiveCalls::EndForOthers(Context* context) {
  MutexLock lock(&mutex_);
  const auto it = calls_.find(context);
  if (it != calls_.end() && !it->second.for_others) MarkForOthers(it->second);
}

void ActiveCalls::Leave(Context* context) {
  MutexLock lock(&mutex_);
  const auto it = calls_.find(context);
  if (it != calls_.end()) {
    if (!it->second.for_others) places_.Remove(it->second.client, 1);
    calls_.erase(it);
  }
  if (calls_.empty()) left_.NotifyAll();
  // gRPC may finish a call from within the function that ends it; then this is
  // the reaper's own thread and waiting would deadlock.
  if (std::this_thread::get_id() == reaper_.get_id()) return;
  const auto left_alone = [this, context]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                              mutex_) { return ending_ != context; };
  left_.Wait(&mutex_, left_alone);
}

void ActiveCalls::AwaitClient(Context* context, SteadyTime until) {
  MutexLock lock(&mutex_);
  Call& call = calls_.at(context);
  call.waiting_since = SteadyNow();
  call.client_until = until;
}

void ActiveCalls::ClientMadeProgress(Context* context) {
  MutexLock lock(&mutex_);
  Call& call = calls_.at(context);
  call.waiting_since = call.client_until = SteadyTime::InfiniteFuture();
}

void ActiveCalls::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool ActiveCalls::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

bool ActiveCalls::AwaitNone(SteadyTime deadline) const {
  MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.empty();
  };
  return left_.WaitUntil(&mutex_, deadline, none);
}

int ActiveCalls::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(calls_.size());
}

size_t ActiveCalls::clients() const {
  MutexLock lock(&mutex_);
  return places_.clients();
}

uint64_t ActiveCalls::ended_for_others() const {
  MutexLock lock(&mutex_);
  return ended_for_others_;
}

void ActiveCalls::Reap() {
  MutexLock lock(&mutex_);
  const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || any_for_others_;
  };
  while (true) {
    wake_reaper_.WaitFor(&mutex_, kReapInterval, woken);
    if (stopping_) return;
    any_for_others_ = false;
    const SteadyTime now = SteadyNow();
    std::vector<Context*> due;
    for (const auto& [context, call] : calls_) {
      if (call.IsDue(now)) due.push_back(context);
    }
    for (Context* context : due) EndCall(context, now);
  }
}

void ActiveCalls::EndCall(Context* context, SteadyTime now) {
  // The call may have left meanwhile, and a new one may have its address.
  const auto it = calls_.find(context);
  if (it == calls_.end() || !it->second.IsDue(now)) return;
  it->second.ended = true;
  const absl::Status why =
      it->second.for_others ? EndedForOthers() : absl::OkStatus();
  ending_ = context;
  mutex_.Unlock();
  end_(context, why);
  mutex_.Lock();
  ending_ = nullptr;
  left_.NotifyAll();
}

}  // namespace millrace
