// SPDX-License-Identifier: Apache-2.0
// X.509 certificates: reading them, and deciding whom to trust.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls_options.h"

namespace millrace {

// What the files of TlsOptions held at one moment, checked.
// Immutable; any thread.
class Certificates {
 public:
  // What the other end of a connection is.
  enum class Peer { kServer, kClient };

  // Reads and checks the files.
  // NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (over 1 MiB): a file.
  // FAILED_PRECONDITION: no PEM, a key that does not fit, a certificate or
  // all CAs beyond their time. INVALID_ARGUMENT: cert without key or the
  // reverse. Messages start with the option.
  static absl::StatusOr<std::shared_ptr<const Certificates>> Load(
      const TlsOptions& options);
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // The key and then the certificates, as PEM; empty: none.
  const std::string& identity() const;
  // When the first certificate of the identity ends; the infinite future
  // without one.
  absl::Time not_after() const;
  // Own certificate, for messages.
  std::string Describe() const;
  // Why others with the same CA would refuse the own certificate; OK also
  // without one of the two.
  absl::Status CheckOwn(Peer as, absl::Time now) const;

  // Whether a peer that showed `leaf`, with what `chain` holds between it and
  // a CA (both PEM), is one that the CAs vouch for now. `host`: a DNS name or
  // an IP address that the certificate must be for; empty: any.
  // UNAUTHENTICATED: why not, and on a second line what to do.
  absl::Status CheckPeer(Peer peer, std::string_view leaf,
                         std::string_view chain, const std::string& host,
                         absl::Time now) const;

  // Whether `leaf` (PEM) is the own certificate.
  bool IsOwn(std::string_view leaf) const;

  // Whether the files held the same.
  bool SameFiles(const Certificates& other) const;

 private:
  struct State;
  explicit Certificates(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

// Whether `leaf` (PEM), which a client showed, has a name that is in `allow`.
// UNAUTHENTICATED: it has none; on a second line what to do.
absl::Status CheckNames(const std::vector<std::string>& allow,
                        std::string_view leaf);

}  // namespace millrace
