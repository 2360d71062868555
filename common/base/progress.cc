// SPDX-License-Identifier: Apache-2.0
#include "common/base/progress.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/steady_time.h"

namespace millrace {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(200);
constexpr absl::Duration kLogEvery = absl::Seconds(10);
constexpr int kBarWidth = 30;

// "950", "12.3k", "4.56M".
std::string Short(double number) {
  constexpr char kUnits[] = {' ', 'k', 'M', 'G', 'T', 'P'};
  size_t unit = 0;
  while (number >= 1000 && unit + 1 < sizeof kUnits) {
    number /= 1000;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%.0f", number);
  return absl::StrFormat("%.3g%c", number, kUnits[unit]);
}

std::string Bar(double fraction) {
  const int filled = static_cast<int>(fraction * kBarWidth);
  return absl::StrCat("[", std::string(filled, '#'),
                      std::string(kBarWidth - filled, '.'), "]");
}

}  // namespace

Progress::Progress(std::string what, int64_t total, std::string unit)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      start_(SteadyNow()),
      terminal_(isatty(STDERR_FILENO) != 0),
      next_show_(start_ + (terminal_ ? kRedraw : kLogEvery)) {}

Progress::~Progress() {
  if (drawn_ && !finished_) std::fputc('\n', stderr);
}

void Progress::Set(int64_t done) {
  done_ = done;
  const SteadyTime now = SteadyNow();
  if (now < next_show_) return;
  next_show_ = now + (terminal_ ? kRedraw : kLogEvery);
  Show(/*final_line=*/false);
}

void Progress::Finish() {
  if (finished_) return;
  Show(/*final_line=*/true);
  finished_ = true;
}

void Progress::Show(bool final_line) {
  const double seconds =
      std::max(absl::ToDoubleSeconds(SteadyNow() - start_), 1e-9);
  const double rate = static_cast<double>(done_) / seconds;
  std::string line = absl::StrCat(what_, ": ", Short(done_));
  const bool known = total_ > 0 && !final_line;
  if (known) absl::StrAppend(&line, "/", Short(total_));
  absl::StrAppend(&line, " ", unit_);
  if (known) {
    const double fraction = std::clamp(
        static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    if (terminal_) absl::StrAppend(&line, " ", Bar(fraction));
    absl::StrAppendFormat(&line, " %.0f%%", 100 * fraction);
  }
  absl::StrAppendFormat(&line, ", %.1f s, %s/s", seconds, Short(rate));
  if (!note_.empty()) absl::StrAppend(&line, ", ", note_);
  if (terminal_) {
    std::fprintf(stderr, "\r\x1b[K%s%s", line.c_str(), final_line ? "\n" : "");
    std::fflush(stderr);
    drawn_ = !final_line;
  } else {
    spdlog::info("{}", line);
  }
}

}  // namespace millrace
