// SPDX-License-Identifier: Apache-2.0
// Matching of the names in TlsClientPolicy::allow with those in certificates.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace millrace {

// A name that a certificate gives its owner.
struct CertificateName {
  enum class Kind { kDns, kUri, kAddress, kCommon };
  Kind kind;
  std::string text;
};

// Checks that each of `allow` is *.NAME or a name that a certificate can have.
// INVALID_ARGUMENT names the first that is not, with a FieldError of tls_allow.
absl::Status CheckAllow(const std::vector<std::string>& allow);

// Whether one of the names is in `allow`. DNS names match regardless of case,
// and *.NAME matches one label before NAME; URIs and the common name must match
// exactly. Addresses are never allowed, nor are names with a wildcard.
bool IsAllowed(const std::vector<std::string>& allow,
               const std::vector<CertificateName>& names);

}  // namespace millrace
