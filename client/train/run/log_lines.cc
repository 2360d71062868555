// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/log_lines.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

// Number of bytes at the end of a file to read first.
constexpr uint64_t kTailBytes = uint64_t{1} << 16;

// The end of a file, or all of it.
struct FileTail {
  uint64_t begin = 0;  // its offset in the file
  std::string text;
};

// Returns the last bytes, at most `bytes`, of a file of `size` bytes.
absl::StatusOr<FileTail> ReadTail(int fd, const std::string& path,
                                  uint64_t size, uint64_t bytes) {
  FileTail tail;
  tail.begin = size - std::min(size, bytes);
  tail.text.resize(size - tail.begin);
  MILLRACE_ASSIGN_OR_RETURN(
      const size_t got,
      ReadAt(fd, path, tail.text.data(), tail.text.size(), tail.begin));
  tail.text.resize(got);
  return tail;
}

// Cuts off what follows the last line break. A process that was killed or found
// the disk full leaves part of a line.
absl::Status CutTornLine(int fd, const std::string& path) {
  const off_t end = lseek(fd, 0, SEEK_END);
  if (end < 0) return FileError("seek in", path, errno);
  const auto size = static_cast<uint64_t>(end);
  uint64_t keep = 0;
  for (uint64_t bytes = kTailBytes;; bytes *= 4) {
    MILLRACE_ASSIGN_OR_RETURN(const FileTail tail,
                              ReadTail(fd, path, size, bytes));
    const size_t line_break = tail.text.rfind('\n');
    if (line_break != std::string::npos) keep = tail.begin + line_break + 1;
    if (line_break != std::string::npos || bytes >= size) break;
  }
  if (keep < size && ftruncate(fd, static_cast<off_t>(keep)) != 0) {
    return FileError("truncate", path, errno);
  }
  return absl::OkStatus();
}

// Identifies a file among those of all hosts: inodes are numbered per device,
// and devices per running kernel.
uint64_t IdentityOf(const struct stat& info) {
  std::string kernel;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), kernel);
  const std::string name = StrCat(kernel, " ", info.st_dev, " ", info.st_ino);
  return XXH3_64bits(name.data(), name.size());
}

// Returns the attempt of the last whole line of `text` that has one. `text` may
// begin within a line.
std::optional<int64_t> AttemptIn(const std::string& text) {
  std::optional<int64_t> attempt;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view rest = line;
    int64_t number = 0;
    if (absl::ConsumePrefix(&rest, "{\"attempt\":") &&
        absl::EndsWith(rest, "}") &&
        absl::SimpleAtoi(rest.substr(0, rest.find(',')), &number)) {
      attempt = number;
    }
  }
  return attempt;
}

void AppendMetric(const char* name, const std::optional<double>& value,
                  std::string& line) {
  if (value.has_value()) {
    absl::StrAppendFormat(&line, "  %s %.4f", name, *value);
  }
}

}  // namespace

absl::StatusOr<LineFile> LineFile::Open(const std::string& path, bool append) {
  LineFile lines;
  lines.path_ = path;
  lines.append_ = append;
  lines.fd_ = UniqueFd(open(
      path.c_str(),
      (append ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (lines.fd_.get() < 0) return FileError("open", path, errno);
  struct stat info = {};
  if (fstat(lines.fd_.get(), &info) != 0) return FileError("stat", path, errno);
  lines.regular_ = S_ISREG(info.st_mode);
  lines.identity_ = IdentityOf(info);
  return lines;
}

absl::Status LineFile::Begin() {
  if (!regular_) return absl::OkStatus();
  // The system releases the lock when the process ends, however it ends. Does
  // without a lock if the (network) file system has none.
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        StrCat("another run writes its lines to ", path_,
               "\nwait until it has ended, or name another file; within one "
               "run, each host needs a file of its own"));
  }
  if (append_) {
    MILLRACE_RETURN_IF_ERROR(CutTornLine(fd_.get(), path_));
  } else if (ftruncate(fd_.get(), 0) != 0) {
    return FileError("truncate", path_, errno);
  }
  // Syncs the file's name too, wherever a link or a descriptor (/dev/fd/3)
  // leads, because Sync() only covers its content.
  std::error_code error;
  const auto file = std::filesystem::canonical(path_, error);
  return error ? absl::OkStatus() : SyncPath(file.parent_path());
}

absl::Status LineFile::Sync() const {
  if (regular_ && fdatasync(fd_.get()) != 0) {
    return FileError("sync", path_, errno);
  }
  return absl::OkStatus();
}

absl::Status LineFile::Write(const std::string& line) {
  const std::string text = line + "\n";
  return WriteAll(fd_.get(), path_, text.data(), text.size());
}

std::string MetricsLine(const MetricsRecord& record) {
  Json json = {{"epoch", record.epoch},
               {"step", record.step},
               {"loss", OrNull(record.loss)},
               {"train", OrNull(record.metrics.train)},
               {"valid", OrNull(record.metrics.valid)},
               {"test", OrNull(record.metrics.test)},
               {"seconds", record.seconds},
               {"wait_seconds", record.wait_seconds},
               {"copy_seconds", record.copy_seconds},
               {"compute_seconds", record.compute_seconds},
               {"eval_seconds", record.eval_seconds},
               {"cpu_seconds", record.cpu_seconds}};
  if (record.best_epoch.has_value()) json["best_epoch"] = *record.best_epoch;
  return json.dump();
}

std::string EpochLine(const MetricsRecord& record) {
  std::string line = absl::StrFormat("epoch %u", record.epoch);
  if (record.loss.has_value()) {
    absl::StrAppendFormat(&line, "  loss %.6f", *record.loss);
  }
  AppendMetric("train", record.metrics.train, line);
  AppendMetric("valid", record.metrics.valid, line);
  AppendMetric("test", record.metrics.test, line);
  absl::StrAppendFormat(&line, "  %.2f s (waiting %.2f, evaluating %.2f)",
                        record.seconds + record.eval_seconds,
                        record.wait_seconds, record.eval_seconds);
  return line;
}

std::string AttemptLine(const AttemptRecord& record) {
  return Json{{"attempt", record.attempt}, {"checkpoint", record.checkpoint}}
      .dump();
}

std::string ConsumedLine(const ConsumedRecord& record) {
  Json json = {{"attempt", record.attempt}, {"checkpoint", record.checkpoint},
               {"epoch", record.epoch},     {"batch", record.batch},
               {"rank", record.rank},       {"seeds", record.seeds}};
  if (!record.dst.empty()) json["dst"] = record.dst;
  json["digest"] = record.digest;
  return json.dump();
}

absl::StatusOr<int64_t> LastAttempt(const std::string& path) {
  uint64_t size = 0;
  absl::StatusOr<UniqueFd> fd = OpenForReading(path, &size);
  if (absl::IsNotFound(fd.status()) || absl::IsInvalidArgument(fd.status())) {
    return -1;  // missing, a pipe or a terminal
  }
  if (!fd.ok()) return fd.status();
  for (uint64_t bytes = kTailBytes;; bytes *= 4) {
    MILLRACE_ASSIGN_OR_RETURN(const FileTail tail,
                              ReadTail(fd->get(), path, size, bytes));
    if (const auto attempt = AttemptIn(tail.text)) return *attempt;
    if (bytes >= size) return -1;
  }
}

}  // namespace millrace
