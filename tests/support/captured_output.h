// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "common/base/check.h"
#include "common/file/file.h"

namespace millrace::testing {

// Keeps what this process writes to STDOUT_FILENO or STDERR_FILENO from
// construction to Stop() or destruction; it goes nowhere else meanwhile.
// Not thread-safe. There may be only one object per descriptor at a time.
class CapturedOutput {
 public:
  explicit CapturedOutput(int fd)
      : fd_(fd), before_(dup(fd)), file_(std::tmpfile()) {
    MILLRACE_CHECK(before_.get() >= 0 && file_ != nullptr);
    std::fflush(nullptr);
    MILLRACE_CHECK(dup2(fileno(file_), fd_) == fd_);
  }
  ~CapturedOutput() {
    Restore();
    std::fclose(file_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  // Ends the capture and returns what was written.
  std::string Stop() {
    Restore();
    std::string text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      text += static_cast<char>(c);
    }
    return text;
  }

 private:
  void Restore() {
    std::fflush(nullptr);
    if (before_.get() >= 0) dup2(before_.get(), fd_);
    before_ = UniqueFd();
  }

  const int fd_;
  UniqueFd before_;
  std::FILE* const file_;
};

}  // namespace millrace::testing
