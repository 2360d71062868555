// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls/tls_options.h"
#include "common/grpc/tls/x509.h"

namespace millrace {

// The checked content of the files of TlsOptions at one moment.
// Immutable; any thread may use it.
class Certificates {
 public:
  // NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (over 1 MiB): a file
  // cannot be read. FAILED_PRECONDITION: not PEM, a key that does not match, a
  // certificate or all CAs outside their validity period. INVALID_ARGUMENT: a
  // certificate without a key or the reverse. All have a FieldError of tls_ca,
  // tls_cert or tls_key.
  static absl::StatusOr<std::shared_ptr<const Certificates>> Load(
      const TlsOptions& options);

  // For gRPC, as PEM: the key and then the certificates; the CAs; and the CAs
  // with our own certificate, which clients may show, no matter who signed it
  // and for which purpose. Empty if there are none.
  const std::string& identity() const { return identity_; }
  const std::string& cas() const { return cas_; }
  const std::string& client_roots() const { return client_roots_; }

  // When the first certificate of the identity expires; InfiniteFuture() if
  // there is none.
  absl::Time not_after() const;
  // Describes our own certificate, for messages.
  std::string DescribeOwn() const;
  bool IsOwn(const X509* certificate) const;

  // Says why gRPC refuses a server with our CAs. `chain` (PEM) begins with its
  // certificate. OK if gRPC does not refuse it.
  // UNAUTHENTICATED: the reason, and on a second line what to do.
  absl::Status ExplainServer(std::string_view chain) const;
  // Says why clients with the same CAs refuse our own certificate. OK if there
  // is no CA or no certificate.
  absl::Status ExplainOwn() const;

  // Whether the files have the same content.
  bool IsSameAs(const Certificates& other) const;

 private:
  explicit Certificates(const TlsOptions& options) : options_(options) {}
  absl::Status LoadIdentity();
  absl::Status LoadCas();

  const TlsOptions options_;
  std::string identity_, cas_, client_roots_;
  std::vector<X509Ptr> own_;  // our own certificate first
  std::vector<X509Ptr> trusted_;
};

}  // namespace millrace
