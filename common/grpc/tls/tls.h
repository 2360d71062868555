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
  Connector(std::shared_ptr<TlsFiles> files, const std::string& list);

  // Makes a channel with ClientChannelArguments(), without waiting for it.
  std::shared_ptr<::grpc::Channel> Connect(
      const std::string& address,
      int max_receive_bytes = kMaxMessageBytes) const;

  // Makes a channel on which all calls fail, because it refuses any server. If
  // what the server shows is the reason why gRPC refused it on another channel,
  // they fail with the words for it, see ExplainConnection(). gRPC itself says
  // only "certificate verify failed", or less.
  std::shared_ptr<::grpc::Channel> Look(const std::string& address) const;

  // Whether a call failed for a reason that Look() may find.
  bool NeedsLook(const absl::Status& status) const;

 private:
  const std::shared_ptr<TlsFiles> files_;
  const std::string server_name_;  // empty for the host of each address
  // Shared with the channels; null for plaintext.
  const std::shared_ptr<::grpc::experimental::CertificateProviderInterface>
      provider_;
};

// Credentials for channels from a server to itself. They trust its own
// certificate only, and show it.
std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    std::shared_ptr<TlsFiles> files);

// Credentials for a server. `files` must have a certificate, and a CA if
// clients must show theirs. Clients that the CA does not vouch for, or that
// have no allowed name, are refused in the handshake, before they can send any
// HTTP/2, with which they could cost gRPC much memory. A client that has the
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
