// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace millrace {

// What a program shows others over TLS and what it accepts of them: PEM files
// of the --tls-* options, which are read again when they change. All empty:
// plaintext.
struct TlsOptions {
  std::string ca;    // who signs the others' certificates; one or more
  std::string cert;  // own certificate, then those between it and its CA
  std::string key;   // of cert, without a passphrase
  // Name that the certificates of servers must have. Empty: the host of their
  // address, or of a list dns:///name:port the name.
  std::string server_name;

  // How often the files are looked at.
  absl::Duration reload_interval = absl::Seconds(5);
  // What certificates' times are compared with.
  std::function<absl::Time()> clock = [] { return absl::Now(); };

  bool enabled() const {
    return !ca.empty() || !cert.empty() || !key.empty() || !server_name.empty();
  }
};

// Whom a server answers over TLS.
struct TlsClientPolicy {
  // Clients must show a certificate that TlsOptions::ca signs (mutual TLS).
  bool require_certificate = false;
  // Names that a client's certificate must have one of; see IsAllowed(). Empty:
  // any.
  std::vector<std::string> allow;
};

}  // namespace millrace
