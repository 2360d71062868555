// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/nccl/collective.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/ptxemu/hooks.h"
#include "tests/ptxemu/nccl/sum.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ncclemu {
namespace {

using ptxemu::Schedule;

constexpr absl::Duration kLookInterval = absl::Milliseconds(100);
constexpr absl::Duration kComplaintDelay = absl::Seconds(10);
constexpr int kSpoiledByte = 0xCD;
// Operations whose descriptions the seats keep.
constexpr uint64_t kDescriptions = 4;

absl::Status Named(const absl::Status& status, const Description& description,
                   const char* buffer) {
  return absl::InternalError(
      absl::StrCat(ToText(description), ", ", buffer, ": ", status.message()));
}

}  // namespace

Collective::Luck Collective::Draw(std::mt19937_64* random) {
  const Schedule schedule = ptxemu::GetSettings().schedule;
  const bool is_random = schedule == Schedule::kRandom;
  return {.delay = GetNcclSettings().max_delay *
                   static_cast<int64_t>((*random)() % 1000) / 1000,
          .reads_late = schedule == Schedule::kLazy ||
                        (is_random && (*random)() % 2 == 0),
          .ends_early = schedule == Schedule::kEager ||
                        (is_random && (*random)() % 4 == 0)};
}

Collective::Collective(std::shared_ptr<Communicator> communicator,
                       const Communicator::Call& call, uint64_t number,
                       const Luck& luck)
    : communicator_(std::move(communicator)),
      call_(call),
      number_(number),
      luck_(luck) {}

Collective::~Collective() { ++communicator_->ended_; }

Seat& Collective::own_seat() const { return place().seat(rank()); }

size_t Collective::bytes() const {
  return call_.description.count * SizeOf(call_.description.type);
}

absl::StatusOr<bool> Collective::Step() {
  if (communicator_->is_aborted()) {
    SpoilResult();
    return true;
  }
  if (communicator_->ended_ != number_) return false;  // not its turn
  if (phase_ == Phase::kWaiting && !Wait()) return false;
  if (phase_ == Phase::kStarted && !Arrive()) return false;
  MILLRACE_ASSIGN_OR_RETURN(const bool agrees, Agrees());
  if (!agrees) return false;
  LookForDead();
  if (phase_ == Phase::kArrived) {
    MILLRACE_ASSIGN_OR_RETURN(const bool is_given, Give());
    if (!is_given) return false;
  }
  return Take();
}

bool Collective::Wait() {
  const SteadyTime now = SteadyNow();
  if (!reached_.has_value()) reached_ = looked_ = now;
  if (now - *reached_ < luck_.delay) return false;
  phase_ = Phase::kStarted;
  return true;
}

// The window is free once all ranks are through with the operation before the
// last one.
bool Collective::Arrive() {
  for (int r = 0; r < ranks(); ++r) {
    if (place().seat(r).done + 1 < number_) return false;
  }
  own_seat().descriptions[number_ % kDescriptions] = call_.description;
  own_seat().arrived = number_ + 1;
  phase_ = Phase::kArrived;
  return true;
}

// Also looks at the operation before, which this rank may have ended before the
// others came to it.
absl::StatusOr<bool> Collective::Agrees() {
  for (uint64_t k = number_ == 0 ? 0 : number_ - 1; k <= number_; ++k) {
    const Description& own = own_seat().descriptions[k % kDescriptions];
    for (int r = 0; r < ranks(); ++r) {
      const Seat& seat = place().seat(r);
      if (seat.arrived <= k || seat.arrived > k + 2) continue;
      const Description& other = seat.descriptions[k % kDescriptions];
      if (other == own) continue;
      return Mismatch(absl::StrCat("operation ", k, " is ", ToText(own),
                                   " on rank ", rank(), ", but ", ToText(other),
                                   " on rank ", r));
    }
  }
  return true;
}

absl::StatusOr<bool> Collective::Mismatch(const std::string& what) {
  if (!communicator_->HasFailed()) {
    communicator_->Fail(ncclInvalidUsage,
                        absl::StrCat("ranks do not do the same: ", what));
  }
  if (GetNcclSettings().mismatch_hangs) return false;
  return absl::InternalError(absl::StrCat("ranks do not do the same: ", what));
}

absl::StatusOr<bool> Collective::Give() {
  if (luck_.reads_late && !AllHave(&Seat::arrived)) return false;
  const bool has_input =
      call_.description.kind == OperationKind::kAllReduce || is_root();
  if (has_input) {
    const absl::StatusOr<uint8_t*> from = ptxemu::hooks::Resolve(
        communicator_->place().device, call_.send, bytes());
    if (!from.ok()) {
      return Named(from.status(), call_.description, "sendbuff");
    }
    std::memcpy(place().Window(rank(), number_), *from, bytes());
  }
  own_seat().given = number_ + 1;
  phase_ = Phase::kGiven;
  return true;
}

bool Collective::AllHave(std::atomic<uint64_t> Seat::*counter) const {
  for (int r = 0; r < ranks(); ++r) {
    if (place().seat(r).*counter <= number_) return false;
  }
  return true;
}

bool Collective::HasEnough() const {
  if (call_.description.kind == OperationKind::kAllReduce ||
      !luck_.ends_early) {
    return AllHave(&Seat::given);
  }
  return place().seat(call_.description.root).given > number_;
}

absl::StatusOr<bool> Collective::Take() {
  if (!HasEnough()) return false;
  const absl::StatusOr<uint8_t*> to = ptxemu::hooks::Resolve(
      communicator_->place().device, call_.receive, bytes());
  if (!to.ok()) return Named(to.status(), call_.description, "recvbuff");
  if (call_.description.kind == OperationKind::kBroadcast) {
    std::memcpy(*to, place().Window(call_.description.root, number_), bytes());
  } else {
    SumJob job{.inputs = {},
               .count = call_.description.count,
               .type = call_.description.type,
               .order = place().order(),
               .seed = place().seed() * 1000003 + number_};
    for (int r = 0; r < ranks(); ++r) {
      job.inputs.push_back(place().Window(r, number_));
    }
    AddUp(job, *to);
  }
  own_seat().done = number_ + 1;
  return true;
}

void Collective::LookForDead() {
  const SteadyTime now = SteadyNow();
  if (now - looked_ < kLookInterval) return;
  looked_ = now;
  std::string absent;
  for (int r = 0; r < ranks(); ++r) {
    const bool is_present = place().IsPresent(r);
    if (!is_present && GetNcclSettings().reports_dead &&
        !communicator_->HasFailed()) {
      communicator_->Fail(ncclRemoteError,
                          absl::StrCat("rank ", r, " is gone"));
    }
    if (place().seat(r).arrived <= number_) {
      absl::StrAppend(&absent, " ", r, is_present ? "" : " (gone)");
    }
  }
  if (has_complained_ || absent.empty() || now - *reached_ < kComplaintDelay) {
    return;
  }
  has_complained_ = true;
  Say(absl::StrCat("rank ", rank(), ": ", ToText(call_.description),
                   " still waits for rank", absent));
}

void Collective::SpoilResult() {
  const absl::StatusOr<uint8_t*> to = ptxemu::hooks::Resolve(
      communicator_->place().device, call_.receive, bytes());
  if (to.ok()) std::memset(*to, kSpoiledByte, bytes());
}

}  // namespace millrace::ncclemu
