// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_log.h"

#include <fcntl.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

void AppendAccuracy(const char* name, const std::optional<double>& value,
                    std::string& line) {
  if (value.has_value()) {
    absl::StrAppendFormat(&line, "  %s %.4f", name, *value);
  }
}

}  // namespace

absl::StatusOr<LineFile> LineFile::Open(const std::string& path, bool append) {
  LineFile lines;
  lines.path_ = path;
  lines.fd_ = UniqueFd(
      open(path.c_str(),
           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC),
           0666));
  if (lines.fd_.get() < 0) return FileError("open", path, errno);
  return lines;
}

absl::Status LineFile::Write(const std::string& line) {
  const std::string text = line + "\n";
  return WriteAll(fd_.get(), path_, text.data(), text.size());
}

std::string MetricsLine(const MetricsRecord& record) {
  Json json = {{"epoch", record.epoch},
               {"step", record.step},
               {"loss", OrNull(record.loss)},
               {"train", OrNull(record.accuracy.train)},
               {"valid", OrNull(record.accuracy.valid)},
               {"test", OrNull(record.accuracy.test)},
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
  AppendAccuracy("train", record.accuracy.train, line);
  AppendAccuracy("valid", record.accuracy.valid, line);
  AppendAccuracy("test", record.accuracy.test, line);
  absl::StrAppendFormat(
      &line,
      "  %.2f s (waiting %.2f, copying %.2f, computing %.2f, evaluating %.2f; "
      "CPU %.2f)",
      record.seconds + record.eval_seconds, record.wait_seconds,
      record.copy_seconds, record.compute_seconds, record.eval_seconds,
      record.cpu_seconds);
  return line;
}

std::string ConsumedLine(const ConsumedRecord& record) {
  Json json = {{"attempt", record.attempt}, {"checkpoint", record.checkpoint},
               {"epoch", record.epoch},     {"batch", record.batch},
               {"rank", record.rank},       {"seeds", record.seeds}};
  if (!record.dst.empty()) json["dst"] = record.dst;
  json["digest"] = record.digest;
  return json.dump();
}

}  // namespace millrace
