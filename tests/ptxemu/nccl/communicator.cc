// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/nccl/communicator.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_time.h"
#include "tests/ptxemu/hooks.h"
#include "tests/ptxemu/nccl/collective.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ncclemu {
namespace {

// After this time something says what it waits for.
constexpr absl::Duration kPatience = absl::Seconds(10);

void Pause(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

}  // namespace

Communicator::Communicator(const Place& place)
    : place_(place), random_(ptxemu::GetSettings().seed * 7919 + place.rank) {}

bool Communicator::HasFailed() const {
  const ncclResult_t state = state_;
  return state != ncclSuccess && state != ncclInProgress;
}

ncclResult_t Communicator::Fail(ncclResult_t result, const std::string& why) {
  const std::string text = absl::StrCat("rank ", place_.rank, ": ", why);
  Say(text);
  const MutexLock lock(&mutex_);
  error_ = text;
  if (!HasFailed()) state_ = result;
  return result;
}

std::string Communicator::error() const {
  const MutexLock lock(&mutex_);
  return error_;
}

void Communicator::EndProgress() {
  ncclResult_t expected = ncclInProgress;
  state_.compare_exchange_strong(expected, ncclSuccess);
}

// Says so if two ranks have the same device.
std::string Communicator::DuplicateDevice() const {
  for (int i = 0; i < place_.ranks; ++i) {
    for (int j = i + 1; j < place_.ranks; ++j) {
      const int device = meeting_place_->seat(i).device;
      if (device != meeting_place_->seat(j).device) continue;
      return absl::StrCat("Duplicate GPU detected : rank ", i, " and rank ", j,
                          " both on CUDA device ", device);
    }
  }
  return "";
}

void Communicator::AwaitRanks() {
  const SteadyTime start = SteadyNow();
  bool has_complained = false;
  while (!is_aborted_) {
    std::string missing;
    for (int rank = 0; rank < place_.ranks; ++rank) {
      if (meeting_place_->seat(rank).is_ready == 0) {
        absl::StrAppend(&missing, " ", rank);
      }
    }
    if (missing.empty()) return;
    if (!has_complained && SteadyNow() - start > kPatience) {
      has_complained = true;
      Say(absl::StrCat("rank ", place_.rank, " still waits for rank", missing));
    }
    Pause(300);
  }
}

void Communicator::Join() {
  const SteadyTime start = SteadyNow();
  const absl::Duration delay =
      GetNcclSettings().init_delay +
      GetNcclSettings().max_delay * (std::random_device()() % 1000) / 1000;
  while (SteadyNow() - start < delay && !is_aborted_) Pause(300);
  if (is_aborted_) return;
  auto meeting_place = MeetingPlace::Open(place_.id, place_.ranks);
  if (meeting_place == nullptr) {
    Fail(ncclInternalError,
         absl::StrCat("cannot meet at ", place_.id,
                      ": another machine made the id, or it is used up"));
    return;
  }
  meeting_place_ = std::move(meeting_place);
  const std::string wrong = meeting_place_->TakeSeat(
      place_.rank, ptxemu::hooks::NumberOf(place_.device));
  if (!wrong.empty()) {
    Fail(ncclInvalidArgument, wrong);
    return;
  }
  AwaitRanks();
  if (is_aborted_) return;
  const std::string duplicate = DuplicateDevice();
  if (!duplicate.empty()) {
    Fail(ncclInvalidUsage, duplicate);
    return;
  }
  has_joined_ = true;
  EndProgress();
}

void Communicator::StartJoining() {
  std::thread([self = shared_from_this()] { self->Join(); }).detach();
}

bool Communicator::LaunchesLate() {
  return !place_.is_blocking &&
         ptxemu::GetSettings().schedule != ptxemu::Schedule::kEager &&
         random_() % 2 == 0;
}

ncclResult_t Communicator::Launch(std::shared_ptr<Collective> collective) {
  if (is_aborted_) return ncclSuccess;
  const cudaStream_t stream = collective->stream();
  const cudaError_t error = ptxemu::hooks::Enqueue(
      place_.device, stream,
      [collective = std::move(collective)] { return collective->Step(); });
  if (error == cudaSuccess) return ncclSuccess;
  return Fail(ncclUnhandledCudaError,
              "an operation is in a stream that is not one of the "
              "communicator's device");
}

ncclResult_t Communicator::Submit(const Call& call) {
  auto collective = std::make_shared<Collective>(
      shared_from_this(), call, submitted_++, Collective::Draw(&random_));
  if (!LaunchesLate()) return Launch(std::move(collective));
  state_ = ncclInProgress;
  const int pause = static_cast<int>(random_() % 3000);
  std::thread([self = shared_from_this(), pause,
               collective = std::move(collective)]() mutable {
    Pause(pause);
    self->Launch(std::move(collective));
    self->EndProgress();
  }).detach();
  return ncclInProgress;
}

bool Communicator::Drain(absl::Duration timeout) {
  const SteadyTime deadline = SteadyNow() + timeout;
  while (ended_ < submitted_) {
    if (SteadyNow() > deadline) return false;
    ptxemu::hooks::RunQueuedWork();
    Pause(100);
  }
  return true;
}

ncclResult_t Communicator::Finalize() {
  is_finalized_ = true;
  if (place_.is_blocking) {
    Drain(absl::InfiniteDuration());
    return ncclSuccess;
  }
  state_ = ncclInProgress;
  std::thread([self = shared_from_this()] {
    self->Drain(absl::InfiniteDuration());
    self->EndProgress();
  }).detach();
  return ncclInProgress;
}

void Communicator::Leave() {
  if (has_joined_) meeting_place_->seat(place_.rank).has_left = 1;
}

}  // namespace millrace::ncclemu
