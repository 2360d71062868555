// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <algorithm>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// Jobs remembered; a trainer has one or two.
constexpr size_t kMaxJobs = 4096;
constexpr double kWeight = 0.2;  // of the newest measurement
constexpr absl::Duration kRetryAfter = absl::Milliseconds(50);

}  // namespace

Admission::Reservation::Reservation(Reservation&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)),
      job_(other.job_),
      bytes_(std::exchange(other.bytes_, 0)),
      peak_(other.peak_) {}

Admission::Reservation& Admission::Reservation::operator=(
    Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    admission_ = std::exchange(other.admission_, nullptr);
    job_ = other.job_;
    bytes_ = std::exchange(other.bytes_, 0);
    peak_ = other.peak_;
  }
  return *this;
}

Admission::Reservation::~Reservation() { Release(); }

void Admission::Reservation::Release() {
  if (admission_ == nullptr) return;
  MutexLock lock(&admission_->mutex_);
  admission_->in_use_ -= bytes_;
  bytes_ = 0;
}

absl::Status Admission::Reservation::GrowTo(uint64_t bytes) {
  peak_ = std::max(peak_, bytes);
  if (bytes <= bytes_) return absl::OkStatus();
  MILLRACE_RETURN_IF_ERROR(admission_->Take(bytes - bytes_, bytes));
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status Admission::Reservation::Settle(uint64_t bytes) {
  {
    MutexLock lock(&admission_->mutex_);
    if (admission_->averages_.size() >= kMaxJobs) admission_->averages_.clear();
    const auto peak = static_cast<double>(std::max(peak_, bytes));
    const auto [it, added] = admission_->averages_.try_emplace(job_, peak);
    if (!added) it->second += kWeight * (peak - it->second);
    if (bytes < bytes_) {
      admission_->in_use_ -= bytes_ - bytes;
      bytes_ = bytes;
    }
  }
  return GrowTo(bytes);
}

absl::Status Admission::Take(uint64_t more, uint64_t whole) {
  if (whole > limit_) {
    return absl::FailedPreconditionError(
        StrCat("the ", what_, " needs ", whole,
               " bytes on the server, the limit is ", limit_,
               "\nuse a smaller batch size or fanouts, or a larger "
               "--max-inflight-bytes"));
  }
  MutexLock lock(&mutex_);
  if (more > limit_ - std::min(limit_, in_use_)) {
    return WithErrorInfo(
        absl::ResourceExhaustedError(StrCat(
            "the server is busy: ", in_use_, " of ", limit_,
            " bytes are in use, this ", what_, " needs ", more, " more")),
        {.partition = std::nullopt, .retry_after = kRetryAfter});
  }
  in_use_ += more;
  return absl::OkStatus();
}

absl::StatusOr<Admission::Reservation> Admission::Reserve(
    uint64_t job, uint64_t least_bytes) {
  uint64_t expected = 0;
  {
    MutexLock lock(&mutex_);
    const auto it = averages_.find(job);
    if (it != averages_.end()) expected = static_cast<uint64_t>(it->second);
  }
  Reservation reservation(this, job);
  // What used to be needed is no reason to refuse a call for ever.
  const uint64_t start = std::max(least_bytes, std::min(expected, limit_));
  MILLRACE_RETURN_IF_ERROR(Take(start, start));
  reservation.bytes_ = start;
  reservation.peak_ = least_bytes;
  return reservation;
}

uint64_t Admission::in_use() const {
  MutexLock lock(&mutex_);
  return in_use_;
}

}  // namespace millrace
