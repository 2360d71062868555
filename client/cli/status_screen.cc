// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/cli/program.h"

namespace millrace {
namespace {

// Control sequences of terminals (ECMA-48, and xterm's private modes).
constexpr char kOtherScreen[] = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr char kOwnScreen[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr char kHome[] = "\x1b[H";
constexpr char kEraseRestOfLine[] = "\x1b[K";
constexpr char kEraseRestOfScreen[] = "\x1b[J";

// The lines of the terminal; a number that is never too small if that is not
// known.
size_t TerminalLines() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0
             ? size.ws_row
             : 10000;
}

// The first lines of `text`, with a note if not all of them fit.
std::string OnScreen(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  const size_t room = TerminalLines();
  if (lines.size() > room) {
    const size_t left = lines.size() - (room - 1);
    lines.resize(room - 1);
    lines.push_back(absl::StrCat("... and ", left, " more lines"));
  }
  std::string screen = kHome;
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppend(&screen, i > 0 ? "\n" : "", lines[i], kEraseRestOfLine);
  }
  return absl::StrCat(screen, kEraseRestOfScreen);
}

}  // namespace

StatusScreen::StatusScreen()
    : terminal_(isatty(STDOUT_FILENO) != 0), log_level_(CurrentLogLevel()) {
  if (!terminal_) return;
  if (isatty(STDERR_FILENO) != 0) SetLogLevel(LogLevel::kOff);
  std::fputs(kOtherScreen, stdout);
}

StatusScreen::~StatusScreen() {
  if (!terminal_) return;
  std::fputs(kOwnScreen, stdout);
  std::fflush(stdout);
  SetLogLevel(log_level_);
}

absl::Status StatusScreen::Show(const std::string& text) {
  std::fputs((terminal_ ? OnScreen(text) : text).c_str(), stdout);
  return FlushResults();
}

}  // namespace millrace
