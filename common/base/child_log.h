// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/unique_fd.h"

namespace millrace {

struct ChildLogOptions {
  // Comes before each line in text, such as "[server] ".
  std::string prefix;
  // Members that each event has first in JSON, such as "\"rank\":1,".
  std::string members = {};
  // Of lines that are no events in JSON, such as those of libraries.
  LogComponent component = LogComponent::kCli;
};

// Copies what a child process logs to our own stderr, in whole lines: in JSON
// each becomes one event. Ends an incomplete last line.
// Not thread-safe.
class ChildLog {
 public:
  // INTERNAL: the system has no pipe for it.
  static absl::StatusOr<ChildLog> Open(ChildLogOptions options);

  // The child's stderr (see ChildProcessOptions); close it here once the child
  // has been started, or the log never ends.
  int write_end() const { return write_end_.get(); }
  void CloseWriteEnd() { write_end_ = UniqueFd(); }

  // Readable when there is something to copy. Negative once everything has been
  // copied.
  int fd() const { return read_end_.get(); }
  // Copies what has come so far; does not wait for more.
  void Forward();

  // The last 8 lines, as the child wrote them.
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  ChildLog(ChildLogOptions options, UniqueFd read_end, UniqueFd write_end)
      : options_(std::move(options)),
        read_end_(std::move(read_end)),
        write_end_(std::move(write_end)) {}
  void PrintLine(std::string line);

  ChildLogOptions options_;
  UniqueFd read_end_, write_end_;
  std::string partial_;  // start of an incomplete line
  std::deque<std::string> last_lines_;
};

}  // namespace millrace
