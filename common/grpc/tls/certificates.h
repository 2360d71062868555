// SPDX-License-Identifier: Apache-2.0
// X.509 certificates: reading them, and deciding which peers to trust.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls/tls_options.h"

namespace millrace {

// The checked content of the files of TlsOptions at one moment.
// Immutable; any thread may use it.
class Certificates {
 public:
  // The role of the other end of a connection.
  enum class Peer { kServer, kClient };

  // NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (over 1 MiB): a file
  // cannot be read. FAILED_PRECONDITION: not PEM, a key that does not match, a
  // certificate or all CAs outside their validity period. INVALID_ARGUMENT: a
  // certificate without a key or the reverse. Messages start with the option.
  static absl::StatusOr<std::shared_ptr<const Certificates>> Load(
      const TlsOptions& options);
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // The key and then the certificates, as PEM; empty if there are none.
  const std::string& identity() const;
  // When the first certificate of the identity expires; InfiniteFuture() if
  // there is none.
  absl::Time not_after() const;
  // Describes our own certificate, for messages.
  std::string Describe() const;
  // Says why peers with the same CA would refuse our own certificate. OK if
  // there is no CA or no certificate.
  absl::Status CheckOwn(Peer as, absl::Time now) const;

  // Checks that our CAs vouch, at `now`, for a peer that showed `leaf`. `chain`
  // holds the certificates between it and a CA (both are PEM). `host` is the
  // DNS name or IP address that the certificate must be for; empty means any.
  // UNAUTHENTICATED: they do not; says why, and on a second line what to do.
  absl::Status CheckPeer(Peer peer, std::string_view leaf,
                         std::string_view chain, const std::string& host,
                         absl::Time now) const;

  // Whether `leaf` (PEM) is our own certificate.
  bool IsOwn(std::string_view leaf) const;

  // Whether the files had the same content.
  bool SameFiles(const Certificates& other) const;

 private:
  struct State;
  explicit Certificates(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

// Checks that `leaf` (PEM), which a client showed, has a name that is in
// `allow`. UNAUTHENTICATED: it has none; a second line says what to do.
absl::Status CheckNames(const std::vector<std::string>& allow,
                        std::string_view leaf);

}  // namespace millrace
