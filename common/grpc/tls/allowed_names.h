// SPDX-License-Identifier: Apache-2.0
// Matching of the names in TlsClientPolicy::allow with those in certificates.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace millrace {

// The names that a certificate gives its owner.
struct CertificateNames {
  std::vector<std::string> dns = {};
  std::vector<std::string> uris = {};
  std::vector<std::string> addresses = {};  // for messages only
  std::string common_name = "";             // empty if it has none
};

// Checks that each of `allow` is *.NAME or a name that a certificate can have.
// INVALID_ARGUMENT names the first that is not, with a FieldError of tls_allow.
absl::Status CheckAllow(const std::vector<std::string>& allow);

// Whether one of the names is in `allow`. DNS names match regardless of case,
// and *.NAME matches one label before NAME; URIs and the common name must match
// exactly. A wildcard in a certificate is taken literally and never allowed.
bool IsAllowed(const std::vector<std::string>& allow,
               const CertificateNames& names);

}  // namespace millrace
