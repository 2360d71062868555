// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace millrace {

// What a program shows its peers over TLS and what it accepts from them: PEM
// files, which are read again when they change. All empty means plaintext. In a
// FieldError, these are tls_ca, tls_cert, tls_key and tls_server_name.
struct TlsOptions {
  std::string ca;    // one or more CAs that sign the peers' certificates
  std::string cert;  // our certificate, then its intermediate certificates
  std::string key;   // the key of `cert`, without a passphrase
  // The name that servers' certificates must have. If empty, the name in a list
  // dns:///name:port, or else the host of each server's address.
  std::string server_name;

  // How often the files are checked for changes.
  absl::Duration reload_interval = absl::Seconds(5);
  // The time of day to compare the validity of certificates with.
  std::function<absl::Time()> clock = [] { return absl::Now(); };

  bool enabled() const {
    return !ca.empty() || !cert.empty() || !key.empty() || !server_name.empty();
  }
};

// Which clients a server accepts over TLS. In a FieldError, these are
// tls_client_auth and tls_allow.
struct TlsClientPolicy {
  // Clients must show a certificate signed by TlsOptions::ca (mutual TLS).
  bool require_certificate = false;
  // A client's certificate must have one of these names; see IsAllowed(). If
  // empty, any name will do.
  std::vector<std::string> allow;
};

}  // namespace millrace
