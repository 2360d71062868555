// SPDX-License-Identifier: Apache-2.0
#include "server/core/damage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/wire/error_info.h"
#include "server/load/refusal.h"

namespace millrace {
namespace {

constexpr char kRestore[] =
    "restore the store from a copy and restart the server";

}  // namespace

Damage::Damage(std::filesystem::path folder, std::vector<int> partitions)
    : folder_(std::move(folder)), partitions_(std::move(partitions)) {}

absl::Status Damage::ClientError(std::string_view file,
                                 const absl::Status& error) const {
  const std::string path = (folder_ / file).string();
  return WithErrorInfo(
      absl::Status(error.code(), absl::StrReplaceAll(error.message(),
                                                     {{path, AbslView(file)}})),
      {.partition = PartitionOfFile(file), .moved = true});
}

void Damage::Note(std::string_view file, const absl::Status& error) {
  const std::optional<int> owner = PartitionOfFile(file);
  const std::string what = FirstLine(ClientError(file, error));
  std::vector<int> news;
  Listener listener;
  {
    MutexLock lock(&mutex_);
    for (const int part : partitions_) {
      if (owner.value_or(part) != part) continue;
      if (damaged_.emplace(part, what).second) news.push_back(part);
    }
    any_ = !damaged_.empty();
    listener = listener_;
  }
  for (const int part : news) {
    LogError(
        LogComponent::kScrub, StrCat("partition no longer served\n", kRestore),
        {{"partition", part}, {"file", file}, {"error", FirstLine(error)}});
    if (listener) listener(part);
  }
}

void Damage::Listen(const Listener& listener) {
  std::map<int, std::string> damaged;
  {
    MutexLock lock(&mutex_);
    damaged = damaged_;
    listener_ = listener;
  }
  for (const auto& [part, what] : damaged) listener(part);
}

absl::Status Damage::Check(int partition) const {
  if (!any_) return absl::OkStatus();
  MutexLock lock(&mutex_);
  const auto found = damaged_.find(partition);
  if (found == damaged_.end()) return absl::OkStatus();
  const absl::Status damaged =
      absl::DataLossError(StrCat(found->second, "\n", kRestore));
  return WithErrorInfo(WithRefusal(damaged, RefusalReason::kDamaged),
                       {.partition = partition, .moved = true});
}

bool Damage::AreAllDamaged() const {
  MutexLock lock(&mutex_);
  return damaged_.size() == partitions_.size();
}

std::map<int, std::string> Damage::damaged() const {
  MutexLock lock(&mutex_);
  return damaged_;
}

}  // namespace millrace
