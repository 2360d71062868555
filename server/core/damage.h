// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace millrace {

// The partitions that a server no longer answers for because one of their files
// is damaged. A partition stays damaged until the server exits.
// Threads: any.
class Damage {
 public:
  using Listener = std::function<void(int partition)>;

  // `folder` is the store's path, and `partitions` are those that this server
  // serves.
  Damage(std::filesystem::path folder, std::vector<int> partitions);

  // Records and logs the first error about a file of the store, and marks the
  // file's partition as damaged, or all partitions if the file belongs to none.
  // `file` is relative to the store.
  void Note(std::string_view file, const absl::Status& error);

  // Returns the error to send to clients: it tells them to ask another server,
  // and gives the file's path only relative to the store.
  absl::Status ClientError(std::string_view file,
                           const absl::Status& error) const;

  // Calls `listener` for each partition that is already damaged, and for each
  // that becomes so. There is at most one listener; it must outlive this object
  // and must not call Note().
  void Listen(const Listener& listener);

  // DATA_LOSS: the partition is damaged (tells the client to ask another
  // server).
  absl::Status Check(int partition) const;
  bool IsDamaged(int partition) const { return !Check(partition).ok(); }
  bool AreAllDamaged() const;
  // The first error of each damaged partition, in the form sent to clients.
  std::map<int, std::string> damaged() const;

 private:
  const std::filesystem::path folder_;
  const std::vector<int> partitions_;
  std::atomic<bool> any_ = false;
  mutable Mutex mutex_;
  std::map<int, std::string> damaged_ ABSL_GUARDED_BY(mutex_);
  Listener listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
