// SPDX-License-Identifier: Apache-2.0
// The names of TlsClientPolicy::allow, compared with those of certificates.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace millrace {

// What a certificate calls its owner.
struct CertificateNames {
  std::vector<std::string> dns = {};
  std::vector<std::string> uris = {};
  std::vector<std::string> addresses = {};  // for messages only
  std::string common_name = "";             // empty: none
};

// Whether each of `allow` is a name that a certificate can have, or *.NAME.
// INVALID_ARGUMENT names the one that is not; starts with the option.
absl::Status CheckAllow(const std::vector<std::string>& allow);

// Whether one of the names is in `allow`: a DNS name without regard to case, or
// by *.NAME, which stands for one label; a URI or the common name to the
// letter. A wildcard in a certificate stands for itself and is never allowed.
bool IsAllowed(const std::vector<std::string>& allow,
               const CertificateNames& names);

}  // namespace millrace
