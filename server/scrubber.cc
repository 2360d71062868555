// SPDX-License-Identifier: Apache-2.0
#include "server/scrubber.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/graph/verify.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// Ensures a pause between two rounds over a small store.
constexpr absl::Duration kMinRound = absl::Seconds(10);

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
    ++rounds_;
    if (failures_before != failures_) {
      LogInfo(LogComponent::kScrub, "all files read",
              {{"bytes", bytes_ - before},
               {"seconds", LogSeconds(SteadyNow() - start)},
               {"damaged_files", failures_}});
    }
    failures_before = failures_;
    if (!WaitUntil(start + kMinRound)) return;
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
  const auto pace = [this](size_t bytes) { return Pace(bytes); };
  const bool loaded = store.FindLoaded(file.path) != nullptr;
  const absl::Status in_memory =
      loaded ? ScrubLoadedFile(store, file, pace) : absl::OkStatus();
  if (absl::IsCancelled(in_memory)) return false;
  if (!in_memory.ok()) damage_.Note(file.path, in_memory);
  const absl::Status on_disk = ScrubFile(store, file, pace);
  if (absl::IsCancelled(on_disk)) return false;
  if (!in_memory.ok() || !on_disk.ok()) {
    ++failures_;
    ++damaged_files_;
  }
  if (in_memory.ok() && !on_disk.ok()) NoteOnDisk(file, on_disk, loaded);
  return true;
}

void Scrubber::NoteOnDisk(const FileInfo& file, const absl::Status& error,
                          bool loaded) {
  if (!absl::IsDataLoss(error)) {
    LogWarning(LogComponent::kScrub, "a file cannot be read",
               {{"file", file.path}, {"error", FirstLine(error)}});
  } else if (!loaded) {
    damage_.Note(file.path, error);
  } else if (reported_.insert(file.path).second) {
    LogError(LogComponent::kScrub,
             "a file is damaged, but its copy in memory is served\nrestore it "
             "from a copy before a restart reads it",
             {{"file", file.path}, {"error", FirstLine(error)}});
  }
}

bool Scrubber::Pace(size_t bytes) {
  bytes_ += bytes;
  // Does not try to catch up after falling behind.
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
