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

// The partitions that a server no longer answers for, because one of their
// files is damaged. A partition stays damaged until the server ends. Threads:
// any.
class Damage {
 public:
  using Listener = std::function<void(int partition)>;

  // `folder`: the store's path. `partitions`: those that the server serves.
  Damage(std::filesystem::path folder, std::vector<int> partitions);

  // Takes note of the first error about a file of the store, and logs it: its
  // partition is damaged, or, where the file belongs to none, all are.
  // `file`: its path inside the store.
  void Note(std::string_view file, const absl::Status& error);

  // The error to send to others: it tells them to ask another server, and names
  // the file by its path inside the store.
  absl::Status Told(std::string_view file, const absl::Status& error) const;

  // `listener` is called for each partition that is damaged by now, and for
  // each that will be. At most one. It must outlive this, and not call Note().
  void Listen(Listener listener);

  // DATA_LOSS, for another server to be asked: the partition is damaged.
  absl::Status Check(int partition) const;
  bool IsDamaged(int partition) const { return !Check(partition).ok(); }
  bool AreAllDamaged() const;
  // The first error of each damaged partition, as it is sent to others.
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
