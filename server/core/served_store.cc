// SPDX-License-Identifier: Apache-2.0
#include "server/core/served_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

constexpr absl::Duration kRefreshTimeout = absl::Seconds(1);

std::string Named(const UsedSplit& split) {
  return StrCat("split \"", split.name, "\" of ", split.type);
}

absl::Status WithMoved(const absl::Status& status) {
  return WithErrorInfo(status, {.partition = std::nullopt, .moved = true});
}

// Returns the fingerprint of a split; null if there is no such split.
const std::string* FingerprintOf(const Manifest& manifest,
                                 const UsedSplit& used) {
  for (const SplitInfo& split : manifest.splits) {
    if (split.name == used.name &&
        manifest.schema.node_types[split.type].name == used.type) {
      return &split.identity.fingerprint;
    }
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    if (split.name == used.name &&
        manifest.schema.RelationName(split.relation) == used.type) {
      return &split.identity.fingerprint;
    }
  }
  return nullptr;
}

absl::Status CheckSame(const std::string& ours, const UsedSplit& used) {
  if (used.fingerprint == ours) return absl::OkStatus();
  return WithMoved(absl::FailedPreconditionError(
      StrCat("this server has another ", Named(used), ": fingerprint ", ours,
             ", not ", used.fingerprint,
             "\nserve one store everywhere, or add the split under another "
             "name, with the same content in every copy of the store")));
}

// If only this server knew the split of a node type, it would leave out
// neighbours of that type.
absl::Status CheckTrainGraphTypes(const Manifest& manifest,
                                  const std::vector<UsedSplit>& used,
                                  std::string_view train_graph) {
  for (const UsedSplit& ours : SplitsOfTrainGraph(train_graph, manifest)) {
    const bool listed =
        std::any_of(used.begin(), used.end(), [&](const UsedSplit& split) {
          return split.type == ours.type && split.name == ours.name;
        });
    if (listed) continue;
    return WithMoved(absl::FailedPreconditionError(
        StrCat("this server has a ", Named(ours),
               ", which the client does not know\nit was added to the store "
               "after the client started; restart the client")));
  }
  return absl::OkStatus();
}

}  // namespace

ServedStore::ServedStore(std::shared_ptr<const Store> store) {
  states_.push_back(std::make_unique<const State>(std::move(store)));
  now_ = states_.back().get();
}

absl::Status ServedStore::CheckSplits(const std::vector<UsedSplit>& used,
                                      std::string_view train_graph) {
  if (used.empty()) return absl::OkStatus();
  for (const UsedSplit& split : used) {
    const Store& seen = **this;
    const std::string* ours = FingerprintOf(seen.manifest(), split);
    if (ours == nullptr && LookForSplits(seen)) {
      ours = FingerprintOf((*this)->manifest(), split);
    }
    if (ours == nullptr) {
      return WithMoved(absl::FailedPreconditionError(
          StrCat("the store of this server has no ", Named(split),
                 "\nadd the split to that store too")));
    }
    MILLRACE_RETURN_IF_ERROR(CheckSame(*ours, split));
  }
  return CheckTrainGraphTypes((*this)->manifest(), used, train_graph);
}

absl::StatusOr<ServedStore::FileVersion> ServedStore::CurrentVersion() const {
  const std::filesystem::path file = now().store->path() / "store.json";
  // The file is opened, because network file systems revalidate only then.
  uint64_t bytes = 0;
  MILLRACE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(file, &bytes));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError("stat", file, errno);
  return FileVersion{info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

bool ServedStore::LookForSplits(const Store& seen) {
  {
    MutexLock lock(&mutex_);
    const auto is_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !refreshing_;
    };
    if (!free_.WaitFor(&mutex_, kRefreshTimeout, is_free)) {
      return now().store.get() != &seen;
    }
    refreshing_ = true;
  }
  const absl::Status refreshed = Refresh();
  const std::string complaint(refreshed.message());
  if (std::exchange(complaint_, complaint) != complaint && !refreshed.ok()) {
    LogWarning(
        LogComponent::kStore,
        StrCat("new splits cannot be read: serving what was there at the start",
               AdviceOf(refreshed)),
        {{"error", FirstLine(refreshed)}});
  }
  MutexLock lock(&mutex_);
  refreshing_ = false;
  free_.NotifyOne();
  return now().store.get() != &seen;
}

absl::Status ServedStore::Refresh() {
  MILLRACE_ASSIGN_OR_RETURN(const FileVersion version, CurrentVersion());
  if (version == version_) return absl::OkStatus();
  const State& before = now();
  absl::StatusOr<std::unique_ptr<Store>> store = before.store->WithNewSplits();
  // Retry with the same file only if it could not be read.
  const absl::Status& status = store.status();
  if (status.ok() || absl::IsDataLoss(status) ||
      absl::IsFailedPrecondition(status)) {
    version_ = version;
  }
  MILLRACE_RETURN_IF_ERROR(status);
  if (*store == nullptr) return absl::OkStatus();
  const Manifest& manifest = (*store)->manifest();
  const size_t splits = manifest.splits.size() + manifest.edge_splits.size();
  states_.push_back(std::make_unique<const State>(*std::move(store), before));
  now_.store(states_.back().get(), std::memory_order_release);
  LogInfo(LogComponent::kStore, "splits added", {{"splits", splits}});
  return absl::OkStatus();
}

}  // namespace millrace
