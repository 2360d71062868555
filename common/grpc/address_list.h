// SPDX-License-Identifier: Apache-2.0
// LIST of the command line: where the servers of a fleet are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/host_port.h"

namespace millrace {

// One of "host:port,host:port", "@FILE" (addresses separated by commas or line
// ends, '#' starts a comment) and "dns:///name:port" (every address that the
// name has). Immutable; any thread.
class AddressList {
 public:
  enum class Kind { kStatic, kFile, kDns };

  // INVALID_ARGUMENT: not a LIST (names the entry).
  static absl::StatusOr<AddressList> Parse(std::string_view list);

  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }

  // The addresses as they are now, without duplicates; reads the file or asks
  // the resolver, so it may block.
  // UNAVAILABLE: unreadable file, unknown name. NOT_FOUND: a file without an
  // address. INVALID_ARGUMENT: the file has an entry that is not an address
  // (names the line).
  absl::StatusOr<std::vector<std::string>> Read() const;

 private:
  AddressList() = default;

  Kind kind_ = Kind::kStatic;
  std::string text_;
  std::vector<std::string> addresses_;  // kStatic
  std::string path_;                    // kFile
  HostPort name_;                       // kDns
};

}  // namespace millrace
