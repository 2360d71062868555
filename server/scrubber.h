// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/graph/manifest.h"
#include "server/core/damage.h"
#include "server/core/served_store.h"

namespace millrace {

// Compares the files that a server serves with their checksums, in rounds, on a
// thread of its own. Reads at a limited rate and bypasses the page cache (see
// UncachedReader). For files that were loaded into memory, checks both the copy
// and the file. A mismatch in what is served counts as damage; one in a file
// that is no longer read is only logged. Logs the first round, and later rounds
// whose number of damaged files differs from the round before.
class Scrubber {
 public:
  // Both references must outlive it. `bytes_per_second` > 0.
  Scrubber(const ServedStore& store, uint64_t bytes_per_second, Damage& damage);
  ~Scrubber() { Stop(); }
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  // Waits for the current piece to be read, then stops reading. Idempotent.
  void Stop();

  // So far, the bytes read, the rounds that have ended, and the files that were
  // found damaged or unreadable, each time. Any thread.
  uint64_t bytes() const { return bytes_; }
  uint64_t rounds() const { return rounds_; }
  uint64_t damaged_files() const { return damaged_files_; }

 private:
  void Run();
  // The following return false if Stop() was called meanwhile.
  bool ReadAll();
  bool ReadFile(const Store& store, const FileInfo& file);  // reports damage
  // Reports a file that cannot be read or does not match. `loaded` means that
  // the file is no longer needed, since the copy in memory is intact.
  void NoteOnDisk(const FileInfo& file, const absl::Status& error, bool loaded);
  // After `bytes` have been read, waits until more may be read.
  bool Pace(size_t bytes);
  bool WaitUntil(SteadyTime time);

  const ServedStore& store_;
  const double bytes_per_second_;
  Damage& damage_;

  // Used only by thread_.
  SteadyTime next_piece_;
  int failures_ = 0;  // damaged or unreadable files in this round
  // Damaged files whose loaded copies are intact.
  std::set<std::string> reported_;

  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> rounds_ = 0;
  std::atomic<uint64_t> damaged_files_ = 0;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
