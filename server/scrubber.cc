// SPDX-License-Identifier: Apache-2.0
#include "server/scrubber.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/graph/verify.h"
#include "common/wire/error_info.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

// Keeps a small store from being read without a pause.
constexpr absl::Duration kLeastRound = absl::Seconds(10);

}  // namespace

Scrubber::Scrubber(const ServedStore& store, uint64_t bytes_per_second,
                   Damage& damage)
    : store_(store),
      bytes_per_second_(static_cast<double>(bytes_per_second)),
      damage_(damage),
      thread_([this] { Run(); }) {}

void Scrubber::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Scrubber::Run() {
  std::optional<int> failures_before;
  while (true) {
    const SteadyTime start = SteadyNow();
    const uint64_t before = bytes_;
    next_piece_ = start;
    failures_ = 0;
    if (!ReadAll()) return;
    if (failures_before != failures_) {
      spdlog::info("scrub: read {} bytes in {}; {}", bytes_ - before,
                   absl::FormatDuration(absl::Trunc(SteadyNow() - start,
                                                    absl::Milliseconds(100))),
                   failures_ == 0
                       ? "all files are sound"
                       : StrCat("files that are not sound: ", failures_));
    }
    failures_before = failures_;
    if (!WaitUntil(start + kLeastRound)) return;
  }
}

bool Scrubber::ReadAll() {
  const Store& store = *store_;
  for (const FileInfo& file : store.manifest().files) {
    if (IsMappedFile(store, file.path) && !ReadFile(store, file)) return false;
  }
  return true;
}

bool Scrubber::ReadFile(const Store& store, const FileInfo& file) {
  const absl::Status status =
      ScrubFile(store, file, [this](size_t bytes) { return Pace(bytes); });
  if (absl::IsCancelled(status)) return false;
  if (status.ok()) return true;
  ++failures_;
  if (absl::IsDataLoss(status)) {
    damage_.Note(file.path, status);
  } else {
    spdlog::warn("scrub: {}", FirstLine(status));
  }
  return true;
}

bool Scrubber::Pace(size_t bytes) {
  bytes_ += bytes;
  // Does not catch up after falling behind.
  next_piece_ = std::max(next_piece_, SteadyNow() - absl::Seconds(1)) +
                absl::Seconds(static_cast<double>(bytes) / bytes_per_second_);
  return WaitUntil(next_piece_);
}

bool Scrubber::WaitUntil(SteadyTime time) {
  MutexLock lock(&mutex_);
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  };
  return !stop_.WaitUntil(&mutex_, time, stopping);
}

}  // namespace millrace
