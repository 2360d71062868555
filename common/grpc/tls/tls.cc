// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/tls.h"

#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/net/host_port.h"
#include "common/wire/error_info.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

namespace tls = ::grpc::experimental;

// How often gRPC checks for a new identity, which is in memory.
constexpr unsigned kIdentityLookSeconds = 1;

// Unanswered handshakes that show that a server refuses us. A single one may
// come from a server that was being stopped.
constexpr int kHandshakesThatTell = 2;

std::string_view View(::grpc::string_ref text) {
  return {text.data(), text.size()};
}

// Limits repeated warnings: refused clients try again every second, and there
// may be many.
class QuietWarnings {
 public:
  void Warn(const std::string& text) {
    {
      MutexLock lock(&mutex_);
      const SteadyTime now = SteadyNow();
      if (text == last_ && now < next_) return;
      if (now < soonest_) return;
      last_ = text;
      next_ = now + absl::Minutes(1);
      soonest_ = now + absl::Seconds(1);
    }
    spdlog::warn("{}", text);
  }

 private:
  Mutex mutex_;
  std::string last_ ABSL_GUARDED_BY(mutex_);
  SteadyTime next_ ABSL_GUARDED_BY(mutex_);
  SteadyTime soonest_ ABSL_GUARDED_BY(mutex_);
};

// The host of "HOST:PORT", or `target` itself if it is a host alone.
std::string HostOf(const std::string& target) {
  const auto address = ParseHostPort(target);
  return address.ok() ? address->host : target;
}

// Decides whether to accept what the other end showed in the handshake. gRPC
// destroys it when no connection needs it any more, so it shares the ownership
// of the files.
class PeerVerifier : public tls::ExternalCertificateVerifier {
 public:
  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(::grpc::Status)>,
              ::grpc::Status* result) final {
    *result = ToGrpcStatus(Check(*request));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) final {}

 protected:
  using Request = tls::TlsCustomVerificationCheckRequest;

  explicit PeerVerifier(std::shared_ptr<TlsFiles> files)
      : files_(std::move(files)) {}

  virtual absl::Status Check(const Request& request) = 0;

  absl::Status CheckCertificate(const Request& request, Certificates::Peer peer,
                                const std::string& host) const {
    return files_->current()->CheckPeer(peer, View(request.peer_cert()),
                                        View(request.peer_cert_full_chain()),
                                        host, files_->options().clock());
  }

  bool IsOwn(const Request& request) const {
    return files_->current()->IsOwn(View(request.peer_cert()));
  }

  TlsFiles& files() const { return *files_; }

 private:
  const std::shared_ptr<TlsFiles> files_;
};

// A client's check of servers.
class ServerVerifier final : public PeerVerifier {
 public:
  // If `server_name` is empty, the host of `address` is checked.
  ServerVerifier(std::shared_ptr<TlsFiles> files, std::string server_name,
                 std::string address)
      : PeerVerifier(std::move(files)),
        server_name_(std::move(server_name)),
        address_(std::move(address)) {}

 private:
  absl::Status Check(const Request& request) override {
    const absl::Status checked = CheckCertificate(
        request, Certificates::Peer::kServer,
        server_name_.empty() ? HostOf(address_) : server_name_);
    if (checked.ok()) files().unanswered().Note(address_);
    return checked;
  }

  const std::string server_name_;
  const std::string address_;
};

// A server's check of clients. A client refused here has not sent any HTTP/2
// yet, with which it could cost gRPC much memory.
class ClientVerifier final : public PeerVerifier {
 public:
  ClientVerifier(std::shared_ptr<TlsFiles> files,
                 std::vector<std::string> allow)
      : PeerVerifier(std::move(files)), allow_(std::move(allow)) {}

 private:
  absl::Status Check(const Request& request) override {
    const absl::Status checked = CheckNamed(request);
    if (!checked.ok()) {
      warnings_.Warn(StrCat("a client is refused: ", FirstLine(checked)));
    }
    return checked;
  }

  absl::Status CheckNamed(const Request& request) const {
    if (IsOwn(request)) return absl::OkStatus();
    MILLRACE_RETURN_IF_ERROR(
        CheckCertificate(request, Certificates::Peer::kClient, ""));
    // Does not use the names in the request: gRPC cuts them off at a zero byte.
    return allow_.empty() ? absl::OkStatus()
                          : CheckNames(allow_, View(request.peer_cert()));
  }

  const std::vector<std::string> allow_;
  QuietWarnings warnings_;
};

class AnyPeer final : public PeerVerifier {
 public:
  explicit AnyPeer(std::shared_ptr<TlsFiles> files)
      : PeerVerifier(std::move(files)) {}

 private:
  absl::Status Check(const Request&) override { return absl::OkStatus(); }
};

std::shared_ptr<tls::CertificateProviderInterface> IdentityOf(
    const TlsFiles& files) {
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      files.identity_path(), files.identity_path(), kIdentityLookSeconds);
}

// The name that all servers of a list must have; empty if it is the host of
// each server's own address.
std::string NameOf(const std::string& list, const TlsOptions& options) {
  constexpr std::string_view kDns = "dns:///";
  if (!options.server_name.empty()) return options.server_name;
  if (!list.starts_with(kDns)) return "";
  // We resolve the name, so gRPC sees only addresses.
  const auto address = ParseHostPort(list.substr(kDns.size()));
  return address.ok() ? address->host : "";
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsFiles>> OpenClientTls(
    const TlsOptions& options) {
  if (!options.enabled()) return nullptr;
  if (options.ca.empty()) {
    return UsageError(
        "--tls-ca is missing: over TLS, servers are trusted if this CA signed "
        "their certificates");
  }
  return TlsFiles::Open(options);
}

ClientCredentials::ClientCredentials(std::shared_ptr<TlsFiles> files,
                                     const std::string& list)
    : files_(std::move(files)) {
  if (files_ == nullptr) return;
  server_name_ = NameOf(list, files_->options());
  if (!files_->identity_path().empty()) identity_ = IdentityOf(*files_);
}

std::shared_ptr<::grpc::ChannelCredentials> ClientCredentials::For(
    const std::string& address) const {
  if (files_ == nullptr) return ::grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  if (identity_ != nullptr) {
    options.set_certificate_provider(identity_);
    options.watch_identity_key_cert_pairs();
  }
  options.set_verify_server_certs(false);  // ServerVerifier does
  options.set_check_call_host(false);      // so does this
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<ServerVerifier>(
          files_, server_name_, address));
  return tls::TlsCredentials(options);
}

std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    std::shared_ptr<TlsFiles> files) {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(IdentityOf(*files));
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<AnyPeer>(std::move(files)));
  return tls::TlsCredentials(options);
}

std::shared_ptr<::grpc::ServerCredentials> ServerCredentials(
    std::shared_ptr<TlsFiles> files, const TlsClientPolicy& policy) {
  tls::TlsServerCredentialsOptions options(IdentityOf(*files));
  options.watch_identity_key_cert_pairs();
  if (!policy.require_certificate) {
    options.set_certificate_verifier(
        tls::ExternalCertificateVerifier::Create<AnyPeer>(std::move(files)));
    return tls::TlsServerCredentials(options);
  }
  // gRPC does not verify; ClientVerifier does.
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<ClientVerifier>(std::move(files),
                                                               policy.allow));
  return tls::TlsServerCredentials(options);
}

absl::Status ExplainConnection(const absl::Status& status,
                               const std::string& address, TlsFiles* tls) {
  const std::string text(status.message());
  if (absl::IsPermissionDenied(status)) {
    return absl::PermissionDeniedError(StrCat("server ", address, ": ", text));
  }
  if (!absl::IsUnavailable(status)) return status;
  constexpr std::string_view kRefused = "UNAUTHENTICATED: ";
  const size_t refused = text.find(kRefused);
  if (tls != nullptr && refused != std::string::npos) {
    return absl::UnauthenticatedError(StrCat(
        "server ", address, ": its ", text.substr(refused + kRefused.size())));
  }
  if (tls != nullptr && absl::StrContains(text, "wrong version number")) {
    return absl::UnauthenticatedError(
        StrCat("server ", address,
               " answers in plaintext\nstart it with --tls-cert and --tls-key, "
               "or leave out the --tls options here"));
  }
  const bool closed = absl::StrContains(text, "failed to connect") &&
                      (absl::StrContains(text, "Socket closed") ||
                       absl::StrContains(text, "Connection reset") ||
                       absl::StrContains(text, "handshake failed"));
  if (!closed) return status;
  if (tls == nullptr) {
    return absl::UnavailableError(
        StrCat("server ", address,
               " ended the connection before it answered; does it want TLS, "
               "--tls-ca?\nsee what that server's log says"));
  }
  const std::string explained = StrCat(
      "server ", address,
      " ended the handshake; does it want a certificate, --tls-cert and "
      "--tls-key, or refuse this one?\ngive one that its --tls-ca signs, "
      "with a name of its --tls-allow; its log says why it refuses "
      "others");
  const bool refused_again =
      tls->unanswered().CountOf(address) >= kHandshakesThatTell;
  return refused_again ? absl::UnauthenticatedError(explained)
                       : absl::UnavailableError(explained);
}

void NoteConnection(const std::string& address, TlsFiles* tls) {
  if (tls != nullptr) tls->unanswered().Forget(address);
}

}  // namespace millrace
