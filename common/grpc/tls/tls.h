// SPDX-License-Identifier: Apache-2.0
// TLS and mutual TLS for clients and servers. Certificates are checked here, by
// Certificates::CheckPeer, instead of by gRPC, which would not say why it
// refuses one, and cannot use another clock.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/tls/tls_files.h"
#include "common/grpc/tls/tls_options.h"

namespace millrace {

// Opens the files of a client; null if no option is set, which means plaintext.
// INVALID_ARGUMENT: --tls-ca is missing. Also the errors of TlsFiles::Open.
absl::StatusOr<std::shared_ptr<TlsFiles>> OpenClientTls(
    const TlsOptions& options);

// Makes the credentials of channels to the servers of one list.
// Threads: any thread may use it.
class ClientCredentials {
 public:
  // `files` must have a CA; null means plaintext.
  ClientCredentials(std::shared_ptr<TlsFiles> files, const std::string& list);

  // Returns credentials for channels to `address` only, since handshakes are
  // counted per address.
  std::shared_ptr<::grpc::ChannelCredentials> For(
      const std::string& address) const;

 private:
  std::shared_ptr<TlsFiles> files_;
  std::string server_name_;  // empty for the host of each server's address
  // Shared with the channels; null if we have no certificate.
  std::shared_ptr<::grpc::experimental::CertificateProviderInterface> identity_;
};

// Credentials for channels from a server to itself. They trust any peer and
// show the server's own certificate.
std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    std::shared_ptr<TlsFiles> files);

// Credentials for a server. `files` must have a certificate, and a CA if
// clients must show theirs. Clients that the CA does not vouch for, or that
// have no allowed name, are refused in the handshake. A client that has the
// server's own certificate is the server itself, and is let in.
std::shared_ptr<::grpc::ServerCredentials> ServerCredentials(
    std::shared_ptr<TlsFiles> files, const TlsClientPolicy& policy);

// Explains why a first call to a server failed, if TLS is the reason:
// UNAUTHENTICATED or PERMISSION_DENIED if waiting does not help, otherwise
// UNAVAILABLE with a guess. Returns other statuses unchanged. `tls` is that of
// the channel; null means plaintext.
absl::Status ExplainConnection(const absl::Status& status,
                               const std::string& address, TlsFiles* tls);
// Records that the server has answered a first call.
void NoteConnection(const std::string& address, TlsFiles* tls);

}  // namespace millrace
