// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/allowed_names.h"

#include <string_view>

#include "absl/strings/match.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::string_view kAnyLabel = "*.";

bool Matches(std::string_view entry, const CertificateName& certified) {
  using Kind = CertificateName::Kind;
  std::string_view name = certified.text;
  if (certified.kind == Kind::kAddress || name.find('*') != name.npos) {
    return false;
  }
  if (certified.kind != Kind::kDns) return entry == name;
  if (entry.starts_with(kAnyLabel)) {
    const size_t dot = name.find('.');
    if (dot == 0 || dot == name.npos) return false;
    entry.remove_prefix(1);
    name.remove_prefix(dot);
  }
  return absl::EqualsIgnoreCase(AbslView(entry), AbslView(name));
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
               const std::vector<CertificateName>& names) {
  for (const CertificateName& name : names) {
    for (const std::string& entry : allow) {
      if (Matches(entry, name)) return true;
    }
  }
  return false;
}

}  // namespace millrace
