// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/allowed_names.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/match.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::string_view kAnyLabel = "*.";

bool IsDnsNameAllowed(std::string_view entry, std::string_view name) {
  if (name.find('*') != name.npos) return false;
  if (entry.starts_with(kAnyLabel)) {
    const size_t dot = name.find('.');
    if (dot == 0 || dot == name.npos) return false;
    entry.remove_prefix(1);
    name.remove_prefix(dot);
  }
  return absl::EqualsIgnoreCase(AbslView(entry), AbslView(name));
}

bool HasName(const CertificateNames& names, const std::string& entry) {
  if (std::any_of(names.dns.begin(), names.dns.end(), [&](const auto& name) {
        return IsDnsNameAllowed(entry, name);
      })) {
    return true;
  }
  return !entry.starts_with(kAnyLabel) &&
         (entry == names.common_name ||
          std::find(names.uris.begin(), names.uris.end(), entry) !=
              names.uris.end());
}

}  // namespace

absl::Status CheckAllow(const std::vector<std::string>& allow) {
  for (const std::string& entry : allow) {
    std::string_view name = entry;
    if (name.starts_with(kAnyLabel)) name.remove_prefix(kAnyLabel.size());
    if (name.empty() || name.find('*') != name.npos) {
      return WithAdvice(
          InvalidField({.field = "tls_allow",
                        .value = StrCat("\"", entry, "\""),
                        .limit = "not a name"}),
          "write names, or *.NAME for one label before NAME; if none are "
          "given, all are let in");
    }
  }
  return absl::OkStatus();
}

bool IsAllowed(const std::vector<std::string>& allow,
               const CertificateNames& names) {
  return std::any_of(allow.begin(), allow.end(), [&](const std::string& entry) {
    return HasName(names, entry);
  });
}

}  // namespace millrace
