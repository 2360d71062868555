// SPDX-License-Identifier: Apache-2.0
// TLS and mutual TLS of gRPC's two ends. Certificates are checked here, by
// Certificates::CheckPeer, and not by gRPC: it would not tell the reason, and
// knows no other clock.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/tls_files.h"
#include "common/grpc/tls_options.h"

namespace millrace {

// The files of a client. Null: no options, so plaintext.
// INVALID_ARGUMENT: no --tls-ca; errors of TlsFiles::Open.
absl::StatusOr<std::shared_ptr<TlsFiles>> OpenClientTls(
    const TlsOptions& options);

// Makes the credentials of channels to the servers of one list.
// Threads: any.
class ClientCredentials {
 public:
  // The files have a CA; null: plaintext.
  ClientCredentials(std::shared_ptr<TlsFiles> files, const std::string& list);

  // Credentials for channels to `address` only, since handshakes are counted by
  // address.
  std::shared_ptr<::grpc::ChannelCredentials> For(
      const std::string& address) const;

 private:
  std::shared_ptr<TlsFiles> files_;
  std::string server_name_;  // empty: each server's own host
  // Shared with the channels; null: no certificate.
  std::shared_ptr<::grpc::experimental::CertificateProviderInterface> identity_;
};

// For channels from a server to itself: they trust any peer that answers, and
// show the server's own certificate.
std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    std::shared_ptr<TlsFiles> files);

// For a server; the files have a certificate, and a CA where clients must show
// theirs. Clients that the CA does not vouch for, or that have no allowed name,
// are refused at the handshake. A client with the server's own certificate is
// the server itself, and let in.
std::shared_ptr<::grpc::ServerCredentials> ServerCredentials(
    std::shared_ptr<TlsFiles> files, const TlsClientPolicy& policy);

// Why a first call to the server failed, if it is about TLS: UNAUTHENTICATED
// or PERMISSION_DENIED where waiting does not help, else UNAVAILABLE with a
// guess. Other statuses as they are. `tls`: the channel's; null: plaintext.
absl::Status ExplainConnection(const absl::Status& status,
                               const std::string& address, TlsFiles* tls);
// The server has answered a first call.
void NoteConnection(const std::string& address, TlsFiles* tls);

}  // namespace millrace
