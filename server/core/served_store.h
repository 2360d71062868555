// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/graph/store.h"
#include "common/sample/seeds/split_seed_reader.h"
#include "common/sample/seeds/used_splits.h"

namespace millrace {

// The store that a server serves: always the same graph, but splits may be
// added to it. Acts as a pointer to the store with the splits known now; stores
// that it pointed to earlier stay valid for its lifetime.
// Threads: any.
class ServedStore {
 public:
  explicit ServedStore(std::shared_ptr<const Store> store);
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  const Store& operator*() const { return *now().store; }
  const Store* operator->() const { return now().store.get(); }
  const SplitSeedReader& seeds() const { return now().seeds; }

  // Rereads store.json if it was replaced since it was last read, and adopts
  // new splits; any other change only causes a warning. Returns whether there
  // are more splits now than in `seen`. Blocks on the file system, and for at
  // most a second while another thread does the same.
  bool LookForSplits(const Store& seen);

  // OK if the splits that a request was made with match those of this store,
  // which is read again if it lacks one. Unless `used` is empty, it must list
  // every split with the name `train_graph`. Blocks like LookForSplits().
  // FAILED_PRECONDITION: a split is missing or differs; tells the client to ask
  // another server.
  absl::Status CheckSplits(const std::vector<UsedSplit>& used,
                           std::string_view train_graph);

 private:
  struct State {
    explicit State(std::shared_ptr<const Store> given)
        : store(std::move(given)), seeds(*store) {}
    State(std::shared_ptr<const Store> given, const State& before)
        : store(std::move(given)), seeds(*store, before.seeds) {}

    const std::shared_ptr<const Store> store;  // shared with the opener
    const SplitSeedReader seeds;
  };

  // Identifies a version of store.json; replacing the file changes it.
  struct FileVersion {
    dev_t device = 0;
    ino_t inode = 0;
    int64_t bytes = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    friend bool operator==(const FileVersion&, const FileVersion&) = default;
  };

  const State& now() const { return *now_.load(std::memory_order_acquire); }
  absl::StatusOr<FileVersion> CurrentVersion() const;
  absl::Status Refresh();  // requires `refreshing_`

  std::atomic<const State*> now_;

  // Used only by the thread that has set `refreshing_`.
  std::vector<std::unique_ptr<const State>> states_;  // current one last
  FileVersion version_;
  std::string complaint_;  // the last warning

  Mutex mutex_;
  CondVar free_;
  bool refreshing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
