// SPDX-License-Identifier: Apache-2.0
#include "common/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/steady_time.h"

namespace millrace {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(200);
constexpr absl::Duration kLogEvery = absl::Seconds(10);
constexpr int kBarWidth = 20;

// "950", "12.3k", "4.56M".
std::string Short(double number) {
  constexpr char kUnits[] = {' ', 'k', 'M', 'G', 'T', 'P'};
  size_t unit = 0;
  // From here on, three digits would be rounded to 1000.
  while (number >= 999.5 && unit + 1 < sizeof kUnits) {
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

// Number of columns of the terminal on stderr; 0 if unknown.
size_t TerminalColumns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// "12.3 s, 4.5k/s"
std::string TimeText(const ProgressState& state) {
  const double seconds = std::max(absl::ToDoubleSeconds(state.elapsed), 1e-9);
  std::string text = absl::StrFormat("%.1f s", seconds);
  if (state.unit.empty()) return text;
  const double rate = static_cast<double>(state.done - state.before) / seconds;
  return absl::StrCat(text, ", ", Short(rate), "/s");
}

}  // namespace

std::string ProgressText(const ProgressState& state, bool bar) {
  std::string text = absl::StrCat(state.what, ": ");
  const bool known = state.total > 0;
  if (!state.unit.empty()) {
    absl::StrAppend(
        &text, Short(static_cast<double>(state.done)), known ? "/" : "",
        known ? Short(static_cast<double>(state.total)) : "", " ", state.unit);
  }
  if (known) {
    const double fraction = std::clamp(
        static_cast<double>(state.done) / static_cast<double>(state.total), 0.0,
        1.0);
    if (bar) absl::StrAppend(&text, " ", Bar(fraction));
    absl::StrAppendFormat(&text, " %.0f%%", 100 * fraction);
  }
  absl::StrAppend(&text, state.unit.empty() ? "" : ", ", TimeText(state));
  if (known && state.done > state.before && state.done < state.total) {
    const absl::Duration left = absl::Trunc(
        state.elapsed * (static_cast<double>(state.total - state.done) /
                         static_cast<double>(state.done - state.before)),
        absl::Seconds(1));
    absl::StrAppend(&text, ", ",
                    absl::FormatDuration(std::max(left, absl::Seconds(1))),
                    " left");
  }
  return absl::StrCat(text, state.note.empty() ? "" : ", ", state.note);
}

std::string SummaryText(const ProgressState& state) {
  std::string text = absl::StrCat(state.what, ": ");
  if (!state.unit.empty()) {
    absl::StrAppend(&text, Short(static_cast<double>(state.done)), " ",
                    state.unit, ", ");
  }
  return absl::StrCat(text, TimeText(state), state.note.empty() ? "" : ", ",
                      state.note);
}

Progress::Progress(std::string what, int64_t total, std::string unit)
    : state_{.what = std::move(what),
             .unit = std::move(unit),
             .total = total,
             .done = 0,
             .before = 0,
             .elapsed = {},
             .note = {}},
      start_(SteadyNow()),
      terminal_(isatty(STDERR_FILENO) != 0 &&
                CurrentLogFormat() == LogFormat::kText),
      next_show_(start_ + (terminal_ ? kRedraw : kLogEvery)) {}

Progress::~Progress() {
  if (drawn_) Draw("", "");
}

void Progress::Set(int64_t done) {
  state_.done = done;
  const SteadyTime now = SteadyNow();
  if (now < next_show_) return;
  next_show_ = now + (terminal_ ? kRedraw : kLogEvery);
  state_.elapsed = now - start_;
  if (!terminal_) {
    LogInfo(ProgressText(state_, /*bar=*/false));
    return;
  }
  std::string text = ProgressText(state_, /*bar=*/true);
  // A line that wraps cannot be erased again.
  const size_t columns = TerminalColumns();
  if (columns > 0 && text.size() >= columns) text.resize(columns - 1);
  Draw(text, "");
  drawn_ = true;
}

void Progress::Finish() {
  if (finished_) return;
  finished_ = true;
  state_.elapsed = SteadyNow() - start_;
  if (terminal_) {
    Draw(SummaryText(state_), "\n");
  } else {
    LogInfo(SummaryText(state_));
  }
}

void Progress::Draw(const std::string& text, const char* end) {
  std::fprintf(stderr, "%s%s%s", EraseLine(), text.c_str(), end);
  std::fflush(stderr);
  drawn_ = false;
}

const char* EraseLine() { return isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : ""; }

}  // namespace millrace
