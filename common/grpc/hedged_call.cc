// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/hedged_call.h"

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

// After such a silence a replica is asked whether it lives, if there is
// another one.
constexpr absl::Duration kLongSilence = absl::Milliseconds(500);
// Between two looks at a replica that is suspected.
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

class HedgedCall final : public Call,
                         public Sleeper,
                         public std::enable_shared_from_this<HedgedCall> {
 public:
  explicit HedgedCall(HedgedCallOptions options)
      : options_(std::move(options)),
        delay_(options_.hedging.DelayOf(options_.kind).value_or(kLongSilence)) {
  }

  void Start(std::shared_ptr<FleetMember> member) {
    options_.hedging.NoteCall();
    StartLeg(std::move(member));
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
    std::vector<Leg> legs;
    absl::Duration silence;
    bool spoken = false;
    if (EndIfOverdue()) return;
    {
      MutexLock lock(&mutex_);
      if (finished_ || cancelled_ || running_ == 0) return;
      looking_ = true;  // keeps the options alive
      spoken = winner_ != kNobody;
      legs = legs_;
      silence = SteadyNow() - last_news_;
    }
    const absl::Duration next =
        spoken ? CheckAlive(*legs[winner()].member, silence)
               : TryAnother(legs, silence);
    {
      MutexLock lock(&mutex_);
      looking_ = false;
      if (running_ > 0 && !cancelled_) WakeAfter(next);
    }
    FinishIfOver();
  }

 private:
  static constexpr int kNobody = -1;

  // A call to one replica.
  struct Leg {
    std::shared_ptr<FleetMember> member;
    std::shared_ptr<Call> call;  // while it runs, once it has been started
    SteadyTime start;
    bool over = false;
    bool given_up = false;  // by us, as lost
  };

  // gRPC ends calls at their deadlines too, but late when somebody sets the
  // clock back.
  bool EndIfOverdue() {
    std::vector<std::shared_ptr<Call>> calls;
    {
      MutexLock lock(&mutex_);
      if (finished_) return false;
      ForgetPause();
      if (SteadyNow() < overdue_time()) return false;
      overdue_ = true;
      calls = CallsBut(kNobody);
    }
    for (const auto& call : calls) call->Cancel();
    return true;
  }

  // When the call has taken, or brought nothing for, too long.
  SteadyTime overdue_time() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min(options_.deadline, last_sign_ + options_.patience);
  }

  // Does not count the time in which this process was stopped, and could hear
  // nobody, as silence.
  void ForgetPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Duration late = SteadyNow() - due_;
    if (late < kLongSilence) return;
    last_news_ += late;
    last_sign_ += late;
  }

  void StartLeg(std::shared_ptr<FleetMember> member) {
    int index = 0;
    {
      MutexLock lock(&mutex_);
      index = static_cast<int>(legs_.size());
      legs_.push_back({member, nullptr, SteadyNow()});
      last_news_ = SteadyNow();
      ++running_;
    }
    std::shared_ptr<Call> call = options_.start(
        std::move(member),
        {.on_sign = [self = shared_from_this(),
                     index] { return self->OnSign(index); },
         .done =
             [self = shared_from_this(), index](absl::Status status) {
               self->OnLegDone(index, std::move(status));
             }});
    bool doomed = false;
    {
      MutexLock lock(&mutex_);
      if (legs_[index].over) return;
      legs_[index].call = call;
      doomed =
          cancelled_ || overdue_ || (winner_ != kNobody && winner_ != index);
    }
    if (doomed) call->Cancel();
  }

  absl::Status OnSign(int index) {
    std::vector<std::shared_ptr<Call>> losers;
    {
      MutexLock lock(&mutex_);
      if (winner_ == kNobody) {
        winner_ = index;
        losers = CallsBut(index);
        options_.hedging.NoteAnswer(options_.kind, SteadyNow() - start_);
      } else if (winner_ != index) {
        return absl::CancelledError("another replica was faster");
      }
      last_news_ = last_sign_ = SteadyNow();
    }
    for (const auto& call : losers) call->Cancel();
    return absl::OkStatus();
  }

  void OnLegDone(int index, absl::Status status) {
    Leg leg;
    bool too_late = false;
    {
      MutexLock lock(&mutex_);
      legs_[index].over = true;
      legs_[index].call = nullptr;
      leg = legs_[index];
      too_late = winner_ != kNobody && winner_ != index;
      if (overdue_ && absl::IsCancelled(status)) {
        status = absl::DeadlineExceededError(
            "the call took, or brought nothing for, too long");
      }
    }
    if (leg.given_up && absl::IsCancelled(status)) {
      status = GivenUp(*leg.member);  // the fleet knows
    } else if (!too_late) {
      status = options_.on_end(*leg.member, leg.start, std::move(status));
    }
    {
      MutexLock lock(&mutex_);
      // Meanwhile another one may have given a sign, or even ended.
      if (index == winner_ || (winner_ == kNobody && result_.ok())) {
        result_ = status;
        speaker_ = leg.member;
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

  // Nobody has given a sign for so long: asks one more replica, if there is one
  // that was not asked, and it is time and allowed or those asked are lost.
  // When to look again.
  absl::Duration TryAnother(const std::vector<Leg>& legs,
                            absl::Duration silence) {
    Fleet& fleet = options_.fleet;
    std::vector<const FleetMember*> asked, doubtful;
    for (const Leg& leg : legs) {
      asked.push_back(leg.member.get());
      if (!leg.over && !fleet.IsLost(*leg.member)) {
        doubtful.push_back(leg.member.get());
      }
    }
    absl::StatusOr<std::shared_ptr<FleetMember>> other =
        fleet.Pick(options_.partition, SteadyTime::InfinitePast(), asked);
    if (!other.ok()) return kLongSilence;
    const bool first = legs.size() == 1;
    const bool hedge = first && silence >= delay_ && options_.hedging.Take();
    if (hedge || doubtful.empty()) {
      StartLeg(*std::move(other));
      for (size_t i = 0; doubtful.empty() && i < legs.size(); ++i) {
        GiveUp(static_cast<int>(i));
      }
      return kLongSilence;
    }
    absl::Duration next = kLongSilence - silence;
    if (silence >= kLongSilence) {
      for (const FleetMember* member : doubtful) fleet.Suspect(*member);
      next = kLookAgain;
    }
    if (first && silence < delay_) next = std::min(next, delay_ - silence);
    return next;
  }

  // Gives up the replica that is listened to, if it is lost and there is
  // another one. When to look again.
  absl::Duration CheckAlive(const FleetMember& speaker,
                            absl::Duration silence) {
    Fleet& fleet = options_.fleet;
    if (silence < kLongSilence) return kLongSilence - silence;
    const bool alone =
        !fleet.Pick(options_.partition, SteadyTime::InfinitePast(), {&speaker})
             .ok();
    if (alone) return kLongSilence;
    if (!fleet.IsLost(speaker)) {
      fleet.Suspect(speaker);
      return kLookAgain;
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
      legs_[index].given_up = true;
      call = legs_[index].call;
    }
    if (call != nullptr) call->Cancel();
  }

  std::vector<std::shared_ptr<Call>> CallsBut(int index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::shared_ptr<Call>> calls;
    for (size_t i = 0; i < legs_.size(); ++i) {
      const bool other = static_cast<int>(i) != index;
      if (other && legs_[i].call != nullptr) calls.push_back(legs_[i].call);
    }
    return calls;
  }

  void WakeAfter(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const SteadyTime now = SteadyNow();
    wait = std::min(wait, overdue_time() - now);
    due_ = now + wait;
    ticket_ = options_.hedging.timer().Add(wait, shared_from_this());
  }

  void FinishIfOver() {
    std::function<void(absl::Status, std::shared_ptr<FleetMember>)> done;
    absl::Status result;
    std::shared_ptr<FleetMember> speaker;
    {
      MutexLock lock(&mutex_);
      if (running_ > 0 || looking_ || finished_) return;
      finished_ = true;
      done = std::move(options_.done);
      result = result_;
      speaker = speaker_;
      if (ticket_.has_value()) options_.hedging.timer().Remove(*ticket_);
    }
    done(std::move(result), std::move(speaker));
  }

  HedgedCallOptions options_;
  const absl::Duration delay_;  // before a hedge
  const SteadyTime start_ = SteadyNow();

  Mutex mutex_;
  std::vector<Leg> legs_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;       // legs
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;  // in OnWake
  int winner_ ABSL_GUARDED_BY(mutex_) = kNobody;  // gave a sign first
  // The start of the last leg, or the winner's last sign.
  SteadyTime last_news_ ABSL_GUARDED_BY(mutex_) = start_;
  // The start, or the winner's last sign.
  SteadyTime last_sign_ ABSL_GUARDED_BY(mutex_) = start_;
  SteadyTime due_ ABSL_GUARDED_BY(mutex_);  // when to wake
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FleetMember> speaker_
      ABSL_GUARDED_BY(mutex_);  // gave result_
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool overdue_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<CallTimer::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<Call> StartHedgedCall(std::shared_ptr<FleetMember> member,
                                      HedgedCallOptions options) {
  auto call = std::make_shared<HedgedCall>(std::move(options));
  call->Start(std::move(member));
  return call;
}

}  // namespace millrace
