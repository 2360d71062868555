// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/address_list.h"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/net/socket_address.h"

namespace millrace {
namespace {

constexpr size_t kMaxListBytes = 16 << 20;
constexpr std::string_view kDnsPrefix = "dns:///";

void AddOnce(std::string address, std::vector<std::string>& addresses) {
  if (std::find(addresses.begin(), addresses.end(), address) ==
      addresses.end()) {
    addresses.push_back(std::move(address));
  }
}

absl::Status AddAll(std::string_view list, std::vector<std::string>& out) {
  for (absl::string_view piece : absl::StrSplit(AbslView(list), ',')) {
    const std::string address(absl::StripAsciiWhitespace(piece));
    if (address.empty()) continue;
    MILLRACE_RETURN_IF_ERROR(ParseHostPort(address).status());
    AddOnce(address, out);
  }
  return absl::OkStatus();
}

// Reads a whole file, which may be a pipe.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::array<char, 4096> buffer;
  while (file && text.size() <= kMaxListBytes) {
    file.read(buffer.data(), buffer.size());
    text.append(buffer.data(), static_cast<size_t>(file.gcount()));
  }
  if (text.size() > kMaxListBytes) {
    return absl::InvalidArgumentError(StrCat("the list of servers ", path,
                                             " is longer than ", kMaxListBytes,
                                             " bytes"));
  }
  // A folder can be opened, but not read.
  if (!file.eof()) {
    return absl::UnavailableError(
        StrCat("the list of servers ", path, " cannot be read"));
  }
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadList(const std::string& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  std::vector<std::string> addresses;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view entries = line.substr(0, line.find('#'));
    const absl::Status status =
        AddAll(std::string_view(entries.data(), entries.size()), addresses);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          StrCat(path, " line ", number, ": ", std::string(status.message())));
    }
  }
  // A file is empty before it is filled, and while it is being rewritten.
  if (addresses.empty()) {
    return absl::NotFoundError(
        StrCat("the list of servers ", path, " names no server"));
  }
  return addresses;
}

absl::StatusOr<std::vector<std::string>> ResolveName(const HostPort& name) {
  const auto found = Resolve(name.host, name.port, AI_ADDRCONFIG);
  if (!found.ok()) {
    return absl::UnavailableError(
        StrCat(kDnsPrefix, name.WithPort(name.port), ": ",
               std::string(found.status().message())));
  }
  std::vector<std::string> addresses;
  for (const SocketAddress& address : *found) {
    addresses.push_back(
        HostPort{address.Host(), name.port}.WithPort(name.port));
  }
  // Resolvers rotate their answers; sorting keeps the order of members stable.
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

}  // namespace

absl::StatusOr<AddressList> AddressList::Parse(std::string_view list) {
  AddressList result;
  result.text_ = list;
  if (list.starts_with('@')) {
    result.kind_ = Kind::kFile;
    result.path_ = list.substr(1);
    if (result.path_.empty()) {
      return absl::InvalidArgumentError("\"@\" names no file; use @FILE");
    }
    return result;
  }
  if (list.starts_with(kDnsPrefix)) {
    result.kind_ = Kind::kDns;
    MILLRACE_ASSIGN_OR_RETURN(result.name_,
                              ParseHostPort(list.substr(kDnsPrefix.size())));
    return result;
  }
  MILLRACE_RETURN_IF_ERROR(AddAll(list, result.addresses_));
  if (result.addresses_.empty()) {
    return absl::InvalidArgumentError(
        "the list of servers is empty; use host:port,host:port, @FILE or "
        "dns:///name:port");
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> AddressList::Read() const {
  switch (kind_) {
    case Kind::kFile:
      return ReadList(path_);
    case Kind::kDns:
      return ResolveName(name_);
    case Kind::kStatic:
      break;
  }
  return addresses_;
}

}  // namespace millrace
