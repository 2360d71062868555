// SPDX-License-Identifier: Apache-2.0
#include "server/scrubber.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
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
      LogInfo(LogComponent::kScrub,
              StrCat("scrub: read ", bytes_ - before, " bytes in ",
                     absl::FormatDuration(absl::Trunc(SteadyNow() - start,
                                                      absl::Milliseconds(100))),
                     "; ",
                     failures_ == 0
                         ? "all files are intact"
                         : StrCat("damaged or unreadable files: ", failures_)));
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
    LogWarning(LogComponent::kScrub, StrCat("scrub: ", FirstLine(error)));
  } else if (!loaded) {
    damage_.Note(file.path, error);
  } else if (reported_.insert(file.path).second) {
    LogError(LogComponent::kScrub,
             StrCat("scrub: ", FirstLine(error),
                    "; the server continues with the copy in memory, but a "
                    "restart would read the file: restore it from a copy"));
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
