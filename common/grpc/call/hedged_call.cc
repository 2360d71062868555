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
// States: no replica has sent a message -> one replica has won -> finished.
//
// A call runs through Start() -> AskReplica() -> OnMessage() ->
// OnReplicaEnd() -> FinishIfOver(). Meanwhile the timer calls OnWake(), which
// asks further replicas and abandons those that are not worth waiting for.
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
    AskReplica(std::move(member));
    MutexLock lock(&mutex_);
    if (!finished_) WakeAfter(std::min(delay_, kLongSilence));
  }

  void Cancel() override {
    std::vector<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
      calls = CallsExcept(kNoWinner);
    }
    for (const auto& call : calls) call->Cancel();
  }

  void OnWake() override {
    std::vector<ReplicaCall> replica_calls;
    absl::Duration silence;
    int winner = kNoWinner;
    if (EndIfOverdue()) return;
    {
      MutexLock lock(&mutex_);
      if (finished_ || cancelled_ || running_ == 0) return;
      waking_ = true;  // keeps FinishIfOver() from finishing
      winner = winner_;
      replica_calls = replica_calls_;
      silence = options_.timer.Now() - last_activity_;
    }
    const absl::Duration next =
        winner == kNoWinner
            ? TryAnother(replica_calls, silence)
            : CheckAlive(winner, *replica_calls[winner].member, silence);
    {
      MutexLock lock(&mutex_);
      waking_ = false;
      if (running_ > 0 && !cancelled_) WakeAfter(next);
    }
    FinishIfOver();
  }

 private:
  static constexpr int kNoWinner = -1;

  // Tells the call which replica an event belongs to.
  class Observer final : public CallObserver {
   public:
    Observer(std::shared_ptr<HedgedCall> call, int index)
        : call_(std::move(call)), index_(index) {}
    absl::Status OnMessage() override { return call_->OnMessage(index_); }
    void OnEnd(absl::Status status) override {
      call_->OnReplicaEnd(index_, std::move(status));
    }

   private:
    const std::shared_ptr<HedgedCall> call_;  // alive until all replicas end
    const int index_;
  };

  // A call to one replica.
  struct ReplicaCall {
    std::shared_ptr<FleetMember> member;  // shared with the fleet
    std::shared_ptr<Call> call;  // while it runs, once it has been started
    SteadyTime start;
    bool over = false;
    bool abandoned = false;  // cancelled because the replica is lost
  };

  void AskReplica(std::shared_ptr<FleetMember> member) {
    int index = 0;
    {
      MutexLock lock(&mutex_);
      index = static_cast<int>(replica_calls_.size());
      replica_calls_.push_back({member, nullptr, options_.timer.Now()});
      last_activity_ = options_.timer.Now();
      ++running_;
    }
    std::shared_ptr<Call> call =
        request_->Send(std::move(member),
                       std::make_shared<Observer>(shared_from_this(), index));
    bool unwanted = false;
    {
      MutexLock lock(&mutex_);
      if (replica_calls_[index].over) return;
      replica_calls_[index].call = call;
      unwanted =
          cancelled_ || overdue_ || (winner_ != kNoWinner && winner_ != index);
    }
    if (unwanted) call->Cancel();
  }

  absl::Status OnMessage(int index) {
    std::vector<std::shared_ptr<Call>> losers;
    {
      MutexLock lock(&mutex_);
      if (winner_ == kNoWinner) {
        winner_ = index;
        losers = CallsExcept(index);
        options_.hedging.NoteAnswer(options_.kind,
                                    options_.timer.Now() - start_);
      } else if (winner_ != index) {
        return absl::CancelledError("another replica was faster");
      }
      last_activity_ = last_message_ = options_.timer.Now();
    }
    for (const auto& call : losers) call->Cancel();
    return absl::OkStatus();
  }

  void OnReplicaEnd(int index, absl::Status status) {
    ReplicaCall ended;
    bool too_late = false;
    bool cancelled_here = false;  // by Cancel(), not by the replica
    {
      MutexLock lock(&mutex_);
      replica_calls_[index].over = true;
      replica_calls_[index].call = nullptr;
      ended = replica_calls_[index];
      too_late = winner_ != kNoWinner && winner_ != index;
      if (overdue_ && absl::IsCancelled(status)) {
        status = OverdueError();
      }
      cancelled_here = cancelled_ && absl::IsCancelled(status);
    }
    if (ended.abandoned && absl::IsCancelled(status)) {
      // No Judge(): the fleet already knows that it is lost.
      status = AbandonedError(*ended.member);
    } else if (!too_late && !cancelled_here) {
      status = request_->Judge(*ended.member, ended.start, std::move(status));
    }
    {
      MutexLock lock(&mutex_);
      // In the meantime, another replica may have sent its first message, or
      // even ended.
      if (index == winner_ || (winner_ == kNoWinner && result_.ok())) {
        result_ = status;
        answered_by_ = ended.member;
      }
      --running_;
    }
    FinishIfOver();
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

  absl::Status AbandonedError(const FleetMember& member) const {
    return WithErrorInfo(
        absl::UnavailableError(
            StrCat(member.address, " did not answer and was abandoned")),
        {.partition = options_.partition});
  }

  absl::Status OverdueError() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const SteadyTime now = options_.timer.Now();
    const auto text = [](absl::Duration time) {
      return absl::FormatDuration(absl::Trunc(time, absl::Milliseconds(1)));
    };
    return absl::DeadlineExceededError(
        now < options_.deadline
            ? StrCat("no message for ", text(now - last_message_))
            : StrCat("not done after ", text(now - start_)));
  }

  // Ends the call if it is overdue. gRPC ends calls at their deadlines too, but
  // late when the clock is set back.
  bool EndIfOverdue() {
    std::vector<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(&mutex_);
      if (finished_) return false;
      ForgetPause();
      if (options_.timer.Now() < overdue_time()) return false;
      overdue_ = true;
      calls = CallsExcept(kNoWinner);
    }
    for (const auto& call : calls) call->Cancel();
    return true;
  }

  // Does not count time during which this process was stopped, and could not
  // receive anything, as silence.
  void ForgetPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration late = options_.timer.Now() - due_;
    if (late < kLongSilence) return;
    last_activity_ += late;
    last_message_ += late;
  }

  // Called while no replica has sent a message for `silence`. Calls one more
  // replica, if there is one that has not been called, and if hedging is due
  // and allowed or all replicas called so far are lost. Returns when to check
  // again.
  absl::Duration TryAnother(const std::vector<ReplicaCall>& replica_calls,
                            absl::Duration silence) {
    Replicas& replicas = options_.replicas;
    // The replicas called so far, and those of them that may still answer.
    std::vector<const FleetMember*> asked, may_answer;
    for (const ReplicaCall& replica_call : replica_calls) {
      asked.push_back(replica_call.member.get());
      if (!replica_call.over && !replicas.IsLost(*replica_call.member)) {
        may_answer.push_back(replica_call.member.get());
      }
    }
    absl::StatusOr<std::shared_ptr<FleetMember>> other =
        replicas.Pick(options_.partition, SteadyTime::InfinitePast(), asked);
    if (!other.ok()) return kLongSilence;
    const bool may_hedge = replica_calls.size() == 1;
    const bool hedge =
        may_hedge && silence >= delay_ && options_.hedging.Take();
    if (hedge || may_answer.empty()) {
      AskReplica(*std::move(other));
      for (size_t i = 0; may_answer.empty() && i < replica_calls.size(); ++i) {
        Abandon(static_cast<int>(i));
      }
      return kLongSilence;
    }
    absl::Duration next = kLongSilence - silence;
    if (silence >= kLongSilence) {
      for (const FleetMember* member : may_answer) replicas.Suspect(*member);
      next = kCheckAgain;
    }
    if (may_hedge && silence < delay_) next = std::min(next, delay_ - silence);
    return next;
  }

  // Abandons the winner if it is lost and there is another replica. Returns
  // when to check again.
  absl::Duration CheckAlive(int winner, const FleetMember& winning,
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
    Abandon(winner);
    return kLongSilence;
  }

  void Abandon(int index) {
    std::shared_ptr<Call> call;
    {
      MutexLock lock(&mutex_);
      replica_calls_[index].abandoned = true;
      call = replica_calls_[index].call;
    }
    if (call != nullptr) call->Cancel();
  }

  void WakeAfter(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const SteadyTime now = options_.timer.Now();
    wait = std::min(wait, overdue_time() - now);
    due_ = now + wait;
    ticket_ = options_.timer.Add(wait, shared_from_this());
  }

  // When to fail the call: at its deadline, or after options_.max_silence
  // without a message.
  SteadyTime overdue_time() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min(options_.deadline, last_message_ + options_.max_silence);
  }

  // The running calls except the one to replica `index`.
  std::vector<std::shared_ptr<Call>> CallsExcept(int index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::shared_ptr<Call>> calls;
    for (size_t i = 0; i < replica_calls_.size(); ++i) {
      const bool other = static_cast<int>(i) != index;
      const auto& call = replica_calls_[i].call;
      if (other && call != nullptr) calls.push_back(call);
    }
    return calls;
  }

  const HedgedCallOptions options_;
  const std::shared_ptr<HedgedRequest> request_;  // shared with its calls
  const absl::Duration delay_;                    // until a hedge
  const SteadyTime start_;

  Mutex mutex_;
  std::vector<ReplicaCall> replica_calls_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;         // calls to replicas
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;     // OnWake() is running
  int winner_ ABSL_GUARDED_BY(mutex_) = kNoWinner;  // sent a message first
  // The start of the latest call to a replica, or the winner's last message.
  SteadyTime last_activity_ ABSL_GUARDED_BY(mutex_) = start_;
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
