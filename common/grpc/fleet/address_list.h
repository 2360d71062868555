// SPDX-License-Identifier: Apache-2.0
// The LIST argument of command lines, which says where the servers of a fleet
// are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/host_port.h"

namespace millrace {

// A list in one of three forms: "host:port,host:port", "@FILE" (addresses
// separated by commas or line ends, '#' starts a comment), or
// "dns:///name:port" (every address of the name). Immutable; any thread may use
// it.
class AddressList {
 public:
  enum class Kind { kStatic, kFile, kDns };

  // INVALID_ARGUMENT: not a valid LIST; the message names the bad entry.
  static absl::StatusOr<AddressList> Parse(std::string_view list);

  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }

  // The current addresses, without duplicates. Reads the file or asks the
  // resolver, so it may block.
  // UNAVAILABLE: unreadable file, unknown name. NOT_FOUND: a file without an
  // address. INVALID_ARGUMENT: the file has an entry that is not an address;
  // the message names the line.
  absl::StatusOr<std::vector<std::string>> Read() const;

 private:
  AddressList() = default;

  Kind kind_ = Kind::kStatic;
  std::string text_;
  std::vector<std::string> addresses_;  // for kStatic
  std::string path_;                    // for kFile
  HostPort name_;                       // for kDns
};

}  // namespace millrace
