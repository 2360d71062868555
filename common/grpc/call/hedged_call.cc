// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/hedged_call.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// After a silence this long, a replica is suspected, if there is another one.
constexpr absl::Duration kLongSilence = absl::Milliseconds(500);
// Interval between checks of a replica that is suspected.
constexpr absl::Duration kCheckAgain = absl::Milliseconds(100);

// Calls the replicas of a partition until one has answered.
// States: nobody has sent a message -> one replica has won -> finished.
class HedgedCall final : public Call,
                         public Sleeper,
                         public std::enable_shared_from_this<HedgedCall> {
 public:
  HedgedCall(const HedgedCallOptions& options,
             std::shared_ptr<HedgedRequest> request)
      : options_(options),
        request_(std::move(request)),
        delay_(options_.hedging.DelayOf(options_.kind).value_or(kLongSilence)),
        start_(options_.timer.Now()) {}

  void Start(std::shared_ptr<FleetMember> member) {
    options_.hedging.NoteCall();
    StartAttempt(std::move(member));
    MutexLock lock(&mutex_);
    if (!finished_) WakeAfter(std::min(delay_, kLongSilence));
  }

  void Cancel() override {
    std::vector<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      calls = CallsBut(kNobody);
    }
    for (const auto& call : calls) call->Cancel();
  }

  void OnWake() override {
    std::vector<Attempt> attempts;
    absl::Duration silence;
    bool has_winner = false;
    if (EndIfOverdue()) return;
    {
      MutexLock lock(&mutex_);
      if (finished_ || cancelled_ || running_ == 0) return;
      waking_ = true;  // keeps FinishIfOver() from finishing
      has_winner = winner_ != kNobody;
      attempts = attempts_;
      silence = options_.timer.Now() - last_news_;
    }
    const absl::Duration next =
        has_winner ? CheckAlive(*attempts[winner()].member, silence)
                   : TryAnother(attempts, silence);
    {
      MutexLock lock(&mutex_);
      waking_ = false;
      if (running_ > 0 && !cancelled_) WakeAfter(next);
    }
    FinishIfOver();
  }

 private:
  static constexpr int kNobody = -1;

  // Tells the call which of its attempts an event belongs to.
  class Observer final : public CallObserver {
   public:
    Observer(std::shared_ptr<HedgedCall> call, int index)
        : call_(std::move(call)), index_(index) {}
    absl::Status OnMessage() override { return call_->OnMessage(index_); }
    void OnEnd(absl::Status status) override {
      call_->OnAttemptEnd(index_, std::move(status));
    }

   private:
    const std::shared_ptr<HedgedCall> call_;  // alive until its attempts end
    const int index_;
  };

  // A call to one replica.
  struct Attempt {
    std::shared_ptr<FleetMember> member;
    std::shared_ptr<Call> call;  // while it runs, once it has been started
    SteadyTime start;
    bool over = false;
    bool given_up = false;  // cancelled because the replica is lost
  };

  // gRPC ends calls at their deadlines too, but late when the clock is set
  // back.
  bool EndIfOverdue() {
    std::vector<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(&mutex_);
      if (finished_) return false;
      ForgetPause();
      if (options_.timer.Now() < overdue_time()) return false;
      overdue_ = true;
      calls = CallsBut(kNobody);
    }
    for (const auto& call : calls) call->Cancel();
    return true;
  }

  // Returns when the call fails, having taken, or been silent for, too long.
  SteadyTime overdue_time() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min(options_.deadline, last_message_ + options_.patience);
  }

  // Does not count time during which this process was stopped, and could not
  // receive anything, as silence.
  void ForgetPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration late = options_.timer.Now() - due_;
    if (late < kLongSilence) return;
    last_news_ += late;
    last_message_ += late;
  }

  void StartAttempt(std::shared_ptr<FleetMember> member) {
    int index = 0;
    {
      MutexLock lock(&mutex_);
      index = static_cast<int>(attempts_.size());
      attempts_.push_back({member, nullptr, options_.timer.Now()});
      last_news_ = options_.timer.Now();
      ++running_;
    }
    std::shared_ptr<Call> call =
        request_->Send(std::move(member),
                       std::make_shared<Observer>(shared_from_this(), index));
    bool unwanted = false;
    {
      MutexLock lock(&mutex_);
      if (attempts_[index].over) return;
      attempts_[index].call = call;
      unwanted =
          cancelled_ || overdue_ || (winner_ != kNobody && winner_ != index);
    }
    if (unwanted) call->Cancel();
  }

  absl::Status OnMessage(int index) {
    std::vector<std::shared_ptr<Call>> losers;
    {
      MutexLock lock(&mutex_);
      if (winner_ == kNobody) {
        winner_ = index;
        losers = CallsBut(index);
        options_.hedging.NoteAnswer(options_.kind,
                                    options_.timer.Now() - start_);
      } else if (winner_ != index) {
        return absl::CancelledError("another replica was faster");
      }
      last_news_ = last_message_ = options_.timer.Now();
    }
    for (const auto& call : losers) call->Cancel();
    return absl::OkStatus();
  }

  void OnAttemptEnd(int index, absl::Status status) {
    Attempt attempt;
    bool too_late = false;
    {
      MutexLock lock(&mutex_);
      attempts_[index].over = true;
      attempts_[index].call = nullptr;
      attempt = attempts_[index];
      too_late = winner_ != kNobody && winner_ != index;
      if (overdue_ && absl::IsCancelled(status)) {
        status = absl::DeadlineExceededError(
            "the call took, or brought nothing for, too long");
      }
    }
    if (attempt.given_up && absl::IsCancelled(status)) {
      status = GivenUp(*attempt.member);  // no Judge(): the fleet knows
    } else if (!too_late) {
      status =
          request_->Judge(*attempt.member, attempt.start, std::move(status));
    }
    {
      MutexLock lock(&mutex_);
      // In the meantime, another replica may have sent its first message, or
      // even ended.
      if (index == winner_ || (winner_ == kNobody && result_.ok())) {
        result_ = status;
        answered_by_ = attempt.member;
      }
      --running_;
    }
    FinishIfOver();
  }

  absl::Status GivenUp(const FleetMember& member) const {
    return WithErrorInfo(
        absl::UnavailableError(
            StrCat(member.address, " did not answer and was given up")),
        {.partition = options_.partition});
  }

  // Called while no replica has sent a message for `silence`. Calls one more
  // replica, if there is one that has not been called, and if hedging is due
  // and allowed or all replicas called so far are lost. Returns when to check
  // again.
  absl::Duration TryAnother(const std::vector<Attempt>& attempts,
                            absl::Duration silence) {
    Replicas& replicas = options_.replicas;
    std::vector<const FleetMember*> asked, doubtful;
    for (const Attempt& attempt : attempts) {
      asked.push_back(attempt.member.get());
      if (!attempt.over && !replicas.IsLost(*attempt.member)) {
        doubtful.push_back(attempt.member.get());
      }
    }
    absl::StatusOr<std::shared_ptr<FleetMember>> other =
        replicas.Pick(options_.partition, SteadyTime::InfinitePast(), asked);
    if (!other.ok()) return kLongSilence;
    const bool first = attempts.size() == 1;
    const bool hedge = first && silence >= delay_ && options_.hedging.Take();
    if (hedge || doubtful.empty()) {
      StartAttempt(*std::move(other));
      for (size_t i = 0; doubtful.empty() && i < attempts.size(); ++i) {
        GiveUp(static_cast<int>(i));
      }
      return kLongSilence;
    }
    absl::Duration next = kLongSilence - silence;
    if (silence >= kLongSilence) {
      for (const FleetMember* member : doubtful) replicas.Suspect(*member);
      next = kCheckAgain;
    }
    if (first && silence < delay_) next = std::min(next, delay_ - silence);
    return next;
  }

  // Gives up the winner if it is lost and there is another replica. Returns
  // when to check again.
  absl::Duration CheckAlive(const FleetMember& winning,
                            absl::Duration silence) {
    Replicas& replicas = options_.replicas;
    if (silence < kLongSilence) return kLongSilence - silence;
    const bool alone =
        !replicas
             .Pick(options_.partition, SteadyTime::InfinitePast(), {&winning})
             .ok();
    if (alone) return kLongSilence;
    if (!replicas.IsLost(winning)) {
      replicas.Suspect(winning);
      return kCheckAgain;
    }
    GiveUp(winner());
    return kLongSilence;
  }

  int winner() {
    MutexLock lock(&mutex_);
    return winner_;
  }

  void GiveUp(int index) {
    std::shared_ptr<Call> call;
    {
      MutexLock lock(&mutex_);
      attempts_[index].given_up = true;
      call = attempts_[index].call;
    }
    if (call != nullptr) call->Cancel();
  }

  std::vector<std::shared_ptr<Call>> CallsBut(int index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::shared_ptr<Call>> calls;
    for (size_t i = 0; i < attempts_.size(); ++i) {
      const bool other = static_cast<int>(i) != index;
      const auto& call = attempts_[i].call;
      if (other && call != nullptr) calls.push_back(call);
    }
    return calls;
  }

  void WakeAfter(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const SteadyTime now = options_.timer.Now();
    wait = std::min(wait, overdue_time() - now);
    due_ = now + wait;
    ticket_ = options_.timer.Add(wait, shared_from_this());
  }

  void FinishIfOver() {
    absl::Status result;
    std::shared_ptr<FleetMember> answered_by;
    {
      MutexLock lock(&mutex_);
      if (running_ > 0 || waking_ || finished_) return;
      finished_ = true;
      result = result_;
      answered_by = answered_by_;
      if (ticket_.has_value()) options_.timer.Remove(*ticket_);
    }
    request_->Finish(std::move(result), std::move(answered_by));
  }

  const HedgedCallOptions options_;
  const std::shared_ptr<HedgedRequest> request_;  // shared with its calls
  const absl::Duration delay_;                    // until a hedge
  const SteadyTime start_;

  Mutex mutex_;
  std::vector<Attempt> attempts_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;       // number of attempts
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;   // OnWake() is running
  int winner_ ABSL_GUARDED_BY(mutex_) = kNobody;  // sent a message first
  // The start of the last attempt, or the winner's last message.
  SteadyTime last_news_ ABSL_GUARDED_BY(mutex_) = start_;
  // The start of the call, or the winner's last message.
  SteadyTime last_message_ ABSL_GUARDED_BY(mutex_) = start_;
  SteadyTime due_ ABSL_GUARDED_BY(mutex_);  // when to wake
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FleetMember> answered_by_
      ABSL_GUARDED_BY(mutex_);  // the replica that result_ came from
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool overdue_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Timer::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Call> StartHedgedCall(const HedgedCallOptions& options,
                                      std::shared_ptr<FleetMember> member,
                                      std::shared_ptr<HedgedRequest> request) {
  auto call = std::make_shared<HedgedCall>(options, std::move(request));
  call->Start(std::move(member));
  return call;
}

}  // namespace millrace
