// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lineage.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kMaxFaults = 20;

std::string Text(const BatchName& name) {
  return StrCat(name.epoch, ":", name.batch);
}

// "EPOCH:BATCH".
bool ParseName(const std::string& text, BatchName& name) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], &name.epoch) &&
         absl::SimpleAtoi(parts[1], &name.batch);
}

absl::Status ForEachLine(
    const std::string& path,
    const std::function<absl::Status(const std::string&)>& use) {
  std::ifstream file(path);
  if (!file) return FileError("open", path, errno);
  for (std::string line; std::getline(file, line);) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_RETURN_IF_ERROR(use(line));
  }
  if (file.bad()) return FileError("read", path, errno);
  return absl::OkStatus();
}

}  // namespace

bool Lineage::Parse(const std::string& text, Line& line) {
  const auto json = nlohmann::json::parse(text, nullptr, /*exceptions=*/false);
  if (!json.is_object()) return false;
  try {
    line.attempt = json.at("attempt").get<int64_t>();
    line.name = {json.at("epoch").get<int64_t>(),
                 json.at("batch").get<int64_t>()};
    line.seeds = json.at("seeds").get<std::vector<int64_t>>();
    line.edges = json.contains("dst");
    return ParseName(json.at("checkpoint").get<std::string>(), line.start);
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

absl::Status Lineage::AddAttempt(const Line& line) {
  const auto [found, added] = attempts_.try_emplace(line.attempt);
  if (added) found->second.start = line.start;
  if (found->second.start != line.start || line.name < line.start) {
    return absl::FailedPreconditionError(
        StrCat("attempt ", line.attempt, " starts from ",
               Text(found->second.start), ", but has a line of batch ",
               Text(line.name), " that starts from ", Text(line.start),
               "\ngive the logs of one run; a run without --resume empties "
               "its log first"));
  }
  ++found->second.lines;
  return absl::OkStatus();
}

bool Lineage::IsVoid(const Line& line) const {
  const auto later = attempts_.upper_bound(line.attempt);
  return std::any_of(later, attempts_.end(), [&](const auto& attempt) {
    return attempt.second.start <= line.name;
  });
}

void Lineage::Add(const Line& line) {
  Epoch& epoch = epochs_[line.name.epoch];
  Content& content = content_[line.name.epoch];
  ++epoch.batches;
  epoch.seeds += static_cast<int64_t>(line.seeds.size());
  const auto [found, added] =
      content.attempt_of.try_emplace(line.name.batch, line.attempt);
  if (!added) {
    twice_.push_back(StrCat("batch ", Text(line.name), " is there twice, of ",
                            "attempts ", found->second, " and ", line.attempt));
  }
  if (line.edges) return;
  content.node_seeds.insert(content.node_seeds.end(), line.seeds.begin(),
                            line.seeds.end());
}

absl::StatusOr<Lineage> Lineage::Read(
    const std::vector<std::string>& paths,
    const std::function<void(const std::string&)>& valid) {
  Lineage lineage;
  Line line;
  // Later attempts make lines void, also those of another host's file.
  for (const std::string& path : paths) {
    MILLRACE_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& text) {
      if (Parse(text, line)) return lineage.AddAttempt(line);
      lineage.torn_ += text.empty() ? 0 : 1;
      return absl::OkStatus();
    }));
  }
  for (const std::string& path : paths) {
    MILLRACE_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& text) {
      if (!Parse(text, line)) return absl::OkStatus();
      if (lineage.IsVoid(line)) {
        ++lineage.attempts_[line.attempt].void_lines;
        return absl::OkStatus();
      }
      lineage.Add(line);
      if (valid) valid(text);
      return absl::OkStatus();
    }));
  }
  for (auto& [epoch, content] : lineage.content_) {
    std::sort(content.node_seeds.begin(), content.node_seeds.end());
  }
  return lineage;
}

std::vector<std::string> Lineage::Faults(int64_t seeds) const {
  std::vector<std::string> faults = twice_;
  int64_t most = 0;
  for (const auto& [number, epoch] : epochs_) {
    most = std::max(most, epoch.batches);
  }
  for (const auto& [number, content] : content_) {
    const Epoch& epoch = epochs_.at(number);
    int64_t next = 0;
    for (const auto& [batch, attempt] : content.attempt_of) {
      if (batch != next) {
        faults.push_back(StrCat("epoch ", number, " lacks the batches ", next,
                                " to ", batch - 1));
      }
      next = batch + 1;
    }
    const bool last = number == content_.rbegin()->first;
    if (!last && epoch.batches < most) {
      faults.push_back(StrCat("epoch ", number, " has ", epoch.batches,
                              " batches, another has ", most));
    }
    if (seeds > 0 && epoch.seeds != seeds) {
      faults.push_back(StrCat("epoch ", number, " has ", epoch.seeds,
                              " seeds, not ", seeds));
    }
    const auto& sorted = content.node_seeds;
    const auto same = std::adjacent_find(sorted.begin(), sorted.end());
    if (same != sorted.end()) {
      faults.push_back(StrCat("epoch ", number, " has the seed ", *same,
                              " twice, and perhaps others"));
    }
  }
  if (faults.size() > kMaxFaults) faults.resize(kMaxFaults);
  return faults;
}

}  // namespace millrace
