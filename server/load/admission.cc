// SPDX-License-Identifier: Apache-2.0
#include "server/load/admission.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "server/load/active_calls.h"
#include "server/load/refusal.h"

namespace millrace {
namespace {

// Number of jobs remembered; a trainer has one or two.
constexpr size_t kMaxJobs = 4096;
constexpr double kWeight = 0.2;  // weight of the newest measurement

}  // namespace

// The memory of one call. The Admission's mutex guards all fields; the call
// itself may read without it those that only the call changes.
struct Admission::Holding {
  Admission* admission;
  Caller caller;
  uint64_t job;
  uint64_t arrival = 0;  // the newest call has the highest
  uint64_t bytes = 0;    // reserved
  uint64_t peak = 0;     // most ever requested
  SteadyTime waiting_since = SteadyTime::InfiniteFuture();
  bool ending = false;
};

Admission::Reservation::Reservation() = default;
Admission::Reservation::Reservation(std::unique_ptr<Holding> holding)
    : holding_(std::move(holding)) {}
Admission::Reservation::Reservation(Reservation&& other) noexcept = default;
Admission::Reservation::~Reservation() { Release(); }

Admission::Reservation& Admission::Reservation::operator=(
    Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    holding_ = std::move(other.holding_);
  }
  return *this;
}

void Admission::Reservation::Release() {
  if (holding_ == nullptr) return;
  holding_->admission->Forget(*holding_);
  holding_.reset();
}

uint64_t Admission::Reservation::bytes() const {
  return holding_ == nullptr ? 0 : holding_->bytes;
}

absl::Status Admission::Reservation::GrowTo(uint64_t bytes) {
  return holding_->admission->Grow(*holding_, bytes);
}

absl::Status Admission::Reservation::Settle(uint64_t bytes) {
  Admission& admission = *holding_->admission;
  {
    MutexLock lock(&admission.mutex_);
    auto& averages = admission.averages_;
    if (averages.size() >= kMaxJobs) averages.clear();
    const auto peak = static_cast<double>(std::max(holding_->peak, bytes));
    const auto [it, added] = averages.try_emplace(holding_->job, peak);
    if (!added) it->second += kWeight * (peak - it->second);
    if (bytes < holding_->bytes) {
      admission.GiveBack(*holding_, holding_->bytes - bytes);
    }
  }
  return GrowTo(bytes);
}

void Admission::Reservation::StartWaiting() {
  if (holding_ == nullptr) return;
  MutexLock lock(&holding_->admission->mutex_);
  holding_->waiting_since = SteadyNow();
}

void Admission::Reservation::StopWaiting() {
  if (holding_ == nullptr) return;
  MutexLock lock(&holding_->admission->mutex_);
  holding_->waiting_since = SteadyTime::InfiniteFuture();
}

absl::StatusOr<Admission::Reservation> Admission::Reserve(Caller caller,
                                                          uint64_t job,
                                                          uint64_t min_bytes) {
  auto holding = std::make_unique<Holding>(
      Holding{.admission = this, .caller = std::move(caller), .job = job});
  uint64_t expected = 0;
  {
    MutexLock lock(&mutex_);
    const auto it = averages_.find(job);
    if (it != averages_.end()) expected = static_cast<uint64_t>(it->second);
    holding->arrival = ++arrivals_;
    holdings_.insert(holding.get());
  }
  Reservation reservation(std::move(holding));
  // Capped by the limit, so that the average cannot refuse a call forever.
  MILLRACE_RETURN_IF_ERROR(
      reservation.GrowTo(std::max(min_bytes, std::min(expected, limit_))));
  reservation.holding_->peak = min_bytes;
  return reservation;
}

absl::Status Admission::Grow(Holding& holding, uint64_t bytes) {
  holding.peak = std::max(holding.peak, bytes);
  if (bytes <= holding.bytes) return absl::OkStatus();
  if (bytes > limit_) {
    return WithRefusal(
        FieldStatus(absl::StatusCode::kFailedPrecondition,
                    {.problem = FieldError::Problem::kTooMuch,
                     .field = "max_inflight_bytes",
                     .value = StrCat("the ", what_, " needs ", bytes,
                                     " bytes on the server"),
                     .limit = StrCat(limit_)}),
        RefusalReason::kTooLarge);
  }
  const uint64_t more = bytes - holding.bytes;
  MutexLock lock(&mutex_);
  if (holding.ending) return EndedForOthers();
  MILLRACE_RETURN_IF_ERROR(MakeRoom(holding, more));
  shares_.Add(holding.caller.client, more);
  holding.bytes = bytes;
  return absl::OkStatus();
}

absl::Status Admission::MakeRoom(const Holding& holding, uint64_t more) {
  if (more <= room()) return absl::OkStatus();
  for (Holding* other : ToEnd(holding, more)) {
    other->ending = true;
    shares_.Remove(other->caller.client, other->bytes);
    ending_bytes_ += other->bytes;
    other->caller.end();
  }
  if (more <= room()) return absl::OkStatus();
  const uint64_t share = shares_.ShareOf(holding.caller.client);
  const uint64_t whole = holding.bytes + more;
  std::string large;
  if (whole > share) {
    large = StrCat(" and ", whole, " in all, above the client's fair share of ",
                   share,
                   ", so it must wait until others leave room\n"
                   "use a smaller batch size or fanouts, or a larger "
                   "max_inflight_bytes on the server");
  }
  const absl::Status full = absl::ResourceExhaustedError(StrCat(
      "the server is busy: ", shares_.total(), " of ", limit_,
      " bytes are in use, this ", what_, " needs ", more, " more", large));
  return WithErrorInfo(
      WithRefusal(
          full, whole > share ? RefusalReason::kShare : RefusalReason::kMemory),
      {.partition = std::nullopt, .retry_after = kRetryAfter});
}

// Returns the calls to end so that there is room for `more`; none if they could
// not free all of it, since ending them would then help nobody.
std::vector<Admission::Holding*> Admission::ToEnd(const Holding& asking,
                                                  uint64_t more) const {
  const uint64_t missing = more - room();
  // At most `limit_` bytes may be waiting to be returned.
  if (ending_bytes_ + missing > limit_) return {};
  const std::string& client = asking.caller.client;
  const uint64_t share = shares_.ShareOf(client);
  const bool within_share = shares_.HeldBy(client) + more <= share;
  absl::flat_hash_map<std::string, uint64_t> left;  // what each client keeps
  std::vector<Holding*> chosen;
  uint64_t found = 0;
  for (Holding* other : Candidates(asking, /*only_stalled=*/!within_share)) {
    if (found >= missing) break;
    const std::string& owner = other->caller.client;
    uint64_t& owner_left =
        left.try_emplace(owner, shares_.HeldBy(owner)).first->second;
    const bool greedy = owner_left > share;
    if (owner == client ? within_share : !greedy) continue;
    owner_left -= other->bytes;
    found += other->bytes;
    chosen.push_back(other);
  }
  if (found < missing) return {};
  return chosen;
}

// Returns calls that may be ended for another call, in the order to end them.
std::vector<Admission::Holding*> Admission::Candidates(
    const Holding& asking, bool only_stalled) const {
  const SteadyTime stalled = SteadyNow() - stalled_after_;
  std::vector<Holding*> candidates;
  for (Holding* other : holdings_) {
    if (other == &asking || other->ending || other->bytes == 0) continue;
    if (only_stalled && other->waiting_since > stalled) continue;
    candidates.push_back(other);
  }
  std::sort(candidates.begin(), candidates.end(), [](Holding* a, Holding* b) {
    return std::tie(a->waiting_since, b->arrival) <
           std::tie(b->waiting_since, a->arrival);
  });
  return candidates;
}

void Admission::GiveBack(Holding& holding, uint64_t bytes) {
  holding.bytes -= bytes;
  if (holding.ending) {
    ending_bytes_ -= bytes;
  } else {
    shares_.Remove(holding.caller.client, bytes);
  }
}

void Admission::Forget(Holding& holding) {
  MutexLock lock(&mutex_);
  GiveBack(holding, holding.bytes);
  holdings_.erase(&holding);
}

uint64_t Admission::room() const {
  return limit_ - std::min(limit_, shares_.total());
}

uint64_t Admission::in_use() const {
  MutexLock lock(&mutex_);
  return shares_.total() + ending_bytes_;
}

}  // namespace millrace
