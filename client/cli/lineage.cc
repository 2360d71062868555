// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lineage.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFaults = 20;
constexpr int64_t kMaxNumber = std::numeric_limits<int64_t>::max();
// Largest epoch or batch.
constexpr int64_t kMaxPlace = std::numeric_limits<uint32_t>::max();

std::string Text(const BatchPlace& place) {
  return StrCat(place.epoch, ":", place.batch);
}

bool IsValid(const BatchPlace& place) {
  return std::min(place.epoch, place.batch) >= 0 &&
         std::max(place.epoch, place.batch) <= kMaxPlace;
}

// Parses "EPOCH:BATCH".
bool ParsePlace(const std::string& text, BatchPlace& place) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], &place.epoch) &&
         absl::SimpleAtoi(parts[1], &place.batch) && IsValid(place);
}

std::optional<int64_t> Integer(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  if (json.is_number_unsigned() && json.get<uint64_t>() > kMaxNumber) {
    return std::nullopt;
  }
  return json.get<int64_t>();
}

// Returns the integer with that name; nullopt if it is missing or negative.
std::optional<int64_t> Count(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::nullopt;
  const std::optional<int64_t> number = Integer(*found);
  return number.value_or(-1) < 0 ? std::nullopt : number;
}

bool ParseSeeds(const Json& json, std::vector<int64_t>& seeds) {
  const auto found = json.find("seeds");
  if (found == json.end() || !found->is_array()) return false;
  seeds.clear();
  for (const Json& id : *found) {
    const std::optional<int64_t> seed = Integer(id);
    if (!seed.has_value()) return false;
    seeds.push_back(*seed);
  }
  return true;
}

// Each file is read twice, which is impossible with a pipe.
absl::Status CheckRegularFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status =
      std::filesystem::status(path, error);
  if (!std::filesystem::exists(status) ||
      std::filesystem::is_regular_file(status)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat(path, " is not a regular file, and a log is read twice\n",
             "write its lines to a file and name that"));
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

// Finds torn lines of a file that cannot be explained by the end of an attempt.
// A process that is killed or finds the disk full leaves one torn line. Each of
// the other ranks that write to the file may still add one whole line, but no
// more, because their step never ends.
class TornLines {
 public:
  // Notes that the next line is torn.
  void Torn() {
    ++number_;
    if (since_ == 0) first_ = number_;
    Count();
  }
  // Notes that the next line is whole. `rank`: nullopt if the line only starts
  // an attempt.
  void Whole(int64_t attempt, std::optional<int64_t> rank) {
    ++number_;
    if (rank.has_value()) ranks_.insert(*rank);
    if (attempt != std::exchange(attempt_, attempt)) since_ = 0;
    if (since_ > 0) Count();
  }
  // Line number of a torn line that is not at the end of an attempt; 0 if there
  // is none.
  int64_t Unexplained() const {
    return most_ > std::max<int64_t>(1, ranks_.size()) ? first_of_most_ : 0;
  }

 private:
  void Count() {
    if (++since_ <= most_) return;
    most_ = since_;
    first_of_most_ = first_;
  }

  std::set<int64_t> ranks_;
  int64_t number_ = 0;   // of the latest line
  int64_t attempt_ = 0;  // of the latest line
  int64_t since_ = 0;    // lines of the attempt since its first torn one
  int64_t first_ = 0;    // number of that torn line
  int64_t most_ = 0, first_of_most_ = 0;
};

}  // namespace

struct Lineage::Batch {
  BatchPlace place;
  int64_t rank = 0;
  std::vector<int64_t> seeds;
  bool edges = false;
};
struct Lineage::Line {
  int64_t attempt = 0;
  BatchPlace start;
  std::optional<Batch> batch;  // nullopt if the line starts an attempt
};

bool Lineage::Parse(const std::string& text, Line& line) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const std::optional<int64_t> attempt = Count(json, "attempt");
  const auto start = json.find("checkpoint");
  if (!attempt.has_value() || start == json.end() || !start->is_string() ||
      !ParsePlace(start->get<std::string>(), line.start)) {
    return false;
  }
  line.attempt = *attempt;
  line.batch.reset();
  if (json.size() == 2) return true;
  const std::optional<int64_t> epoch = Count(json, "epoch");
  const std::optional<int64_t> number = Count(json, "batch");
  const std::optional<int64_t> rank =
      json.contains("rank") ? Count(json, "rank") : 0;
  if (!epoch.has_value() || !number.has_value() || !rank.has_value()) {
    return false;
  }
  Batch& batch = line.batch.emplace();
  batch.place = {*epoch, *number};
  batch.rank = *rank;
  batch.edges = json.contains("dst");
  return IsValid(batch.place) && ParseSeeds(json, batch.seeds);
}

absl::Status Lineage::AddAttempt(const Line& line) {
  const auto [found, added] = attempts_.try_emplace(line.attempt);
  Attempt& attempt = found->second;
  if (added) attempt.start = line.start;
  const std::optional<Batch>& batch = line.batch;
  if (attempt.start != line.start ||
      (batch.has_value() && batch->place < line.start)) {
    const std::string of =
        batch.has_value() ? StrCat(" of batch ", Text(batch->place)) : "";
    return absl::FailedPreconditionError(
        StrCat("attempt ", line.attempt, " starts from ", Text(attempt.start),
               ", but has a line", of, " that starts from ", Text(line.start),
               "\ngive the logs of one run; a run without --resume empties "
               "its log first"));
  }
  attempt.lines += batch.has_value() ? 1 : 0;
  return absl::OkStatus();
}

bool Lineage::IsVoid(const Line& line) const {
  const auto later = attempts_.upper_bound(line.attempt);
  return std::any_of(later, attempts_.end(), [&](const auto& attempt) {
    return attempt.second.start <= line.batch->place;
  });
}

void Lineage::Add(int64_t attempt, const Batch& batch) {
  Epoch& epoch = epochs_[batch.place.epoch];
  Content& content = content_[batch.place.epoch];
  ++epoch.batches;
  epoch.seeds += static_cast<int64_t>(batch.seeds.size());
  const auto [found, added] =
      content.attempt_of.try_emplace(batch.place.batch, attempt);
  if (!added) {
    duplicates_.push_back(StrCat("batch ", Text(batch.place),
                                 " occurs twice, in attempts ", found->second,
                                 " and ", attempt));
  }
  if (batch.edges) return;
  content.node_seeds.insert(content.node_seeds.end(), batch.seeds.begin(),
                            batch.seeds.end());
}

absl::Status Lineage::ReadAttempts(const std::string& path) {
  MILLRACE_RETURN_IF_ERROR(CheckRegularFile(path));
  Line line;
  TornLines torn;
  MILLRACE_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& text) {
    if (Parse(text, line)) {
      torn.Whole(line.attempt, line.batch.has_value()
                                   ? std::optional(line.batch->rank)
                                   : std::nullopt);
      return AddAttempt(line);
    }
    torn_ += text.empty() ? 0 : 1;
    if (!text.empty()) torn.Torn();
    return absl::OkStatus();
  }));
  if (torn.Unexplained() > 0) {
    damaged_.push_back(StrCat(path, " is damaged: line ", torn.Unexplained(),
                              " is torn, but no attempt ended there"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Lineage> Lineage::Read(
    const std::vector<std::string>& paths,
    const std::function<void(const std::string&)>& valid) {
  Lineage lineage;
  Line line;
  // All files come first, since a later attempt also makes lines void that are
  // in the file of another host.
  for (const std::string& path : paths) {
    MILLRACE_RETURN_IF_ERROR(lineage.ReadAttempts(path));
  }
  for (const std::string& path : paths) {
    MILLRACE_RETURN_IF_ERROR(ForEachLine(path, [&](const std::string& text) {
      if (!Parse(text, line) || !line.batch.has_value()) {
        return absl::OkStatus();
      }
      if (lineage.IsVoid(line)) {
        ++lineage.attempts_[line.attempt].void_lines;
        return absl::OkStatus();
      }
      lineage.Add(line.attempt, *line.batch);
      if (valid) valid(text);
      return absl::OkStatus();
    }));
  }
  for (auto& [epoch, content] : lineage.content_) {
    std::sort(content.node_seeds.begin(), content.node_seeds.end());
  }
  return lineage;
}

std::vector<std::string> Lineage::EpochFaults(int64_t number, int64_t most,
                                              int64_t seeds) const {
  std::vector<std::string> faults;
  const Content& content = content_.at(number);
  const Epoch& epoch = epochs_.at(number);
  int64_t next = 0;
  for (const auto& [batch, attempt] : content.attempt_of) {
    if (batch != next) {
      faults.push_back(
          StrCat("epoch ", number, " lacks batches ", next, " to ", batch - 1));
    }
    next = batch + 1;
  }
  const bool last = number == content_.rbegin()->first;
  if (!last && epoch.batches < most) {
    faults.push_back(StrCat("epoch ", number, " has ", epoch.batches,
                            " batches, but another has ", most));
  }
  if (seeds > 0 && epoch.seeds != seeds) {
    faults.push_back(
        StrCat("epoch ", number, " has ", epoch.seeds, " seeds, not ", seeds));
  }
  const auto& sorted = content.node_seeds;
  const auto same = std::adjacent_find(sorted.begin(), sorted.end());
  if (same != sorted.end()) {
    faults.push_back(StrCat("epoch ", number, " has seed ", *same,
                            " twice, and perhaps others"));
  }
  return faults;
}

std::vector<std::string> Lineage::Faults(int64_t seeds) const {
  std::vector<std::string> faults = damaged_;
  faults.insert(faults.end(), duplicates_.begin(), duplicates_.end());
  if (epochs_.empty()) faults.push_back("there is no line of a batch");
  int64_t most = 0;
  for (const auto& [number, epoch] : epochs_) {
    most = std::max(most, epoch.batches);
  }
  int64_t next = 0;
  for (const auto& [number, epoch] : epochs_) {
    if (number != next) {
      faults.push_back(
          StrCat("epochs ", next, " to ", number - 1, " are missing"));
    }
    next = number + 1;
    const std::vector<std::string> more = EpochFaults(number, most, seeds);
    faults.insert(faults.end(), more.begin(), more.end());
  }
  if (faults.size() > kMaxFaults) faults.resize(kMaxFaults);
  return faults;
}

}  // namespace millrace
