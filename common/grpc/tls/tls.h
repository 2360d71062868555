// SPDX-License-Identifier: Apache-2.0
// TLS and mutual TLS for clients and servers. gRPC verifies chains and host
// names. What is checked here can only refuse more: names that are not allowed,
// certificates that are out of date by the clock of TlsOptions, and what gRPC's
// check of host names lets pass.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/tls/tls_files.h"
#include "common/grpc/tls/tls_options.h"

namespace millrace {

// Opens the files of a client; null if no option is set, which means plaintext.
// INVALID_ARGUMENT: there is no CA. Also the errors of TlsFiles::Open.
absl::StatusOr<std::shared_ptr<TlsFiles>> OpenClientTls(
    const TlsOptions& options);

// Makes channels to the servers of one list.
// Threads: any thread may use it.
class Connector {
 public:
  // `files` must have a CA; null means plaintext.
  Connector(std::shared_ptr<TlsFiles> files, std::string list);

  // Makes a channel with ClientChannelArguments(), without waiting for it.
  std::shared_ptr<::grpc::Channel> Connect(
      const std::string& address,
      int max_receive_bytes = kMaxMessageBytes) const;

  // If gRPC may have refused a server when a call failed like this, makes a
  // channel that refuses any server, and shows no certificate. Its calls fail
  // with what is wrong with the server's certificate, in the words that
  // ExplainConnection() expects: gRPC says only "certificate verify failed".
  // Otherwise null.
  std::shared_ptr<::grpc::Channel> ConnectToExplain(
      const absl::Status& failure, const std::string& address) const;

 private:
  const std::shared_ptr<TlsFiles> files_;  // shared with the channels
  const std::string list_;
  // Shared with the channels; null for plaintext.
  const std::shared_ptr<::grpc::experimental::CertificateProviderInterface>
      provider_;
};

// Credentials for channels from a server to itself. They trust its own
// certificate only, and show it.
std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    const std::shared_ptr<TlsFiles>& files);

// Credentials for a server. `files` must have a certificate, and a CA if
// clients must show theirs. Clients that the CA does not vouch for, or that
// have no allowed name, are refused in the handshake, before they can send any
// HTTP/2, with which they could cost gRPC much memory. A client that has the
// server's own certificate is the server itself, and is let in.
std::shared_ptr<::grpc::ServerCredentials> ServerCredentials(
    const std::shared_ptr<TlsFiles>& files, const TlsClientPolicy& policy);

// Must be given the result of each first call to a server. Explains why one
// failed, if TLS is the reason: UNAUTHENTICATED or PERMISSION_DENIED if waiting
// does not help, otherwise UNAVAILABLE with a guess. Returns other statuses
// unchanged. `tls` belongs to the channel; null means plaintext.
absl::Status ExplainConnection(const absl::Status& status,
                               const std::string& address, TlsFiles* tls);

}  // namespace millrace
