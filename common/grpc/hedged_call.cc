// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/hedged_call.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

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
      : options_(std::move(options)) {}

  void Start(std::shared_ptr<FleetMember> member) {
    options_.hedging.NoteCall();
    const absl::Duration delay =
        options_.hedging.DelayOf(options_.kind).value_or(kLongSilence);
    StartLeg(std::move(member));
    absl::MutexLock lock(&mutex_);
    if (!finished_) WakeAfter(std::min(delay, kLongSilence));
  }

  void Cancel() override {
    std::vector<std::shared_ptr<Call>> calls;
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      calls = CallsBut(kNobody);
    }
    for (const auto& call : calls) call->Cancel();
  }

  void OnWake() override {
    std::vector<Leg> legs;
    absl::Duration silence;
    bool spoken = false;
    {
      absl::MutexLock lock(&mutex_);
      if (finished_ || cancelled_ || running_ == 0) return;
      looking_ = true;  // keeps the options alive
      spoken = winner_ != kNobody;
      legs = legs_;
      silence = absl::Now() - (spoken ? last_sign_ : legs_.back().start);
    }
    const absl::Duration next =
        spoken ? CheckAlive(*legs[winner()].member, silence)
               : TryAnother(legs, silence);
    {
      absl::MutexLock lock(&mutex_);
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
    absl::Time start;
    bool over = false;
  };

  void StartLeg(std::shared_ptr<FleetMember> member) {
    int index = 0;
    {
      absl::MutexLock lock(&mutex_);
      index = static_cast<int>(legs_.size());
      legs_.push_back({member, nullptr, absl::Now()});
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
      absl::MutexLock lock(&mutex_);
      if (legs_[index].over) return;
      legs_[index].call = call;
      doomed = cancelled_ || (winner_ != kNobody && winner_ != index);
    }
    if (doomed) call->Cancel();
  }

  absl::Status OnSign(int index) {
    std::vector<std::shared_ptr<Call>> losers;
    {
      absl::MutexLock lock(&mutex_);
      if (winner_ == kNobody) {
        winner_ = index;
        losers = CallsBut(index);
        options_.hedging.NoteAnswer(options_.kind, absl::Now() - start_);
      } else if (winner_ != index) {
        return absl::CancelledError("another replica was faster");
      }
      last_sign_ = absl::Now();
    }
    for (const auto& call : losers) call->Cancel();
    return absl::OkStatus();
  }

  void OnLegDone(int index, absl::Status status) {
    std::shared_ptr<FleetMember> member;
    absl::Time start;
    bool lost = false;
    {
      absl::MutexLock lock(&mutex_);
      legs_[index].over = true;
      legs_[index].call = nullptr;
      member = legs_[index].member;
      start = legs_[index].start;
      lost = winner_ != kNobody && winner_ != index;
    }
    // Of the one that was too late nobody wants to know.
    if (!lost) status = options_.on_end(*member, start, std::move(status));
    {
      absl::MutexLock lock(&mutex_);
      if (index == winner_ || (!lost && result_.ok())) {
        result_ = status;
        speaker_ = member;
      }
      --running_;
    }
    FinishIfOver();
  }

  // Nobody has given a sign for so long: asks one more replica, if there is one
  // that was not asked, and it is allowed or those asked are lost. When to look
  // again.
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
        fleet.Pick(options_.partition, absl::InfinitePast(), asked);
    if (!other.ok()) return kLongSilence;
    const bool hedge = legs.size() == 1 && options_.hedging.Take();
    if (hedge || doubtful.empty()) {
      StartLeg(*std::move(other));
      for (size_t i = 0; doubtful.empty() && i < legs.size(); ++i) {
        CancelLeg(static_cast<int>(i));
      }
      return kLongSilence;
    }
    if (silence < kLongSilence) return kLongSilence - silence;
    for (const FleetMember* member : doubtful) fleet.Suspect(*member);
    return kLookAgain;
  }

  // Gives up the replica that is listened to, if it is lost and there is
  // another one. When to look again.
  absl::Duration CheckAlive(const FleetMember& speaker,
                            absl::Duration silence) {
    Fleet& fleet = options_.fleet;
    if (silence < kLongSilence) return kLongSilence - silence;
    const bool alone =
        !fleet.Pick(options_.partition, absl::InfinitePast(), {&speaker}).ok();
    if (alone) return kLongSilence;
    if (!fleet.IsLost(speaker)) {
      fleet.Suspect(speaker);
      return kLookAgain;
    }
    CancelLeg(winner());
    return kLongSilence;
  }

  int winner() {
    absl::MutexLock lock(&mutex_);
    return winner_;
  }

  void CancelLeg(int index) {
    std::shared_ptr<Call> call;
    {
      absl::MutexLock lock(&mutex_);
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
    ticket_ = options_.hedging.timer().Add(wait, shared_from_this());
  }

  void FinishIfOver() {
    std::function<void(absl::Status, std::shared_ptr<FleetMember>)> done;
    absl::Status result;
    std::shared_ptr<FleetMember> speaker;
    {
      absl::MutexLock lock(&mutex_);
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
  const absl::Time start_ = absl::Now();

  absl::Mutex mutex_;
  std::vector<Leg> legs_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;                // legs
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;           // in OnWake
  int winner_ ABSL_GUARDED_BY(mutex_) = kNobody;           // gave a sign first
  absl::Time last_sign_ ABSL_GUARDED_BY(mutex_) = start_;  // of it
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FleetMember> speaker_ ABSL_GUARDED_BY(mutex_);  // whose
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
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
