// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/tls_certificate_provider.h>
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
#include "absl/strings/str_join.h"
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

// gRPC's looks for a new identity, which is in memory.
constexpr unsigned kIdentityLookSeconds = 1;

std::string_view View(::grpc::string_ref text) {
  return {text.data(), text.size()};
}

// A refused client tries again every second, and there may be many.
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

// Checks what the other end showed in the handshake, by the CAs of the moment.
class PeerVerifier final : public tls::ExternalCertificateVerifier {
 public:
  PeerVerifier(std::shared_ptr<TlsFiles> files, Certificates::Peer peer,
               std::string server_name)
      : files_(std::move(files)),
        peer_(peer),
        server_name_(std::move(server_name)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(::grpc::Status)>,
              ::grpc::Status* result) override {
    const absl::Status checked = Check(*request);
    *result = ToGrpcStatus(checked);
    if (!checked.ok() && peer_ == Certificates::Peer::kClient) {
      warnings_.Warn(StrCat("a client is refused: ", FirstLine(checked)));
    }
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  absl::Status Check(const tls::TlsCustomVerificationCheckRequest& request) {
    const auto certificates = files_->current();
    const std::string_view leaf = View(request.peer_cert());
    if (peer_ == Certificates::Peer::kClient && certificates->IsOwn(leaf)) {
      return absl::OkStatus();
    }
    return certificates->CheckPeer(peer_, leaf,
                                   View(request.peer_cert_full_chain()),
                                   HostOf(request), files_->options().clock());
  }

  std::string HostOf(
      const tls::TlsCustomVerificationCheckRequest& request) const {
    if (peer_ == Certificates::Peer::kClient) return "";
    if (!server_name_.empty()) return server_name_;
    const std::string target(View(request.target_name()));
    const auto address = ParseHostPort(target);
    return address.ok() ? address->host : target;
  }

  // Shared with whoever reads them too; gRPC ends the verifier when no
  // connection needs it any more.
  const std::shared_ptr<TlsFiles> files_;
  const Certificates::Peer peer_;
  const std::string server_name_;
  QuietWarnings warnings_;
};

// Believes everyone, and keeps the files while gRPC looks at them.
class AnyPeer final : public tls::ExternalCertificateVerifier {
 public:
  explicit AnyPeer(std::shared_ptr<TlsFiles> files)
      : files_(std::move(files)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest*,
              std::function<void(::grpc::Status)>,
              ::grpc::Status* result) override {
    *result = ::grpc::Status::OK;
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<TlsFiles> files_;  // shared as PeerVerifier's
};

// Refuses the calls of clients without an allowed name: of all methods, health
// and reflection too.
class NameCheck final : public ::grpc::AuthMetadataProcessor {
 public:
  NameCheck(std::shared_ptr<TlsFiles> files, std::vector<std::string> allow)
      : files_(std::move(files)), allow_(std::move(allow)) {}

  bool IsBlocking() const override { return false; }

  ::grpc::Status Process(const InputMetadata&, ::grpc::AuthContext* peer,
                         OutputMetadata*, OutputMetadata*) override {
    for (const ::grpc::string_ref& leaf :
         peer->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
      if (files_->current()->IsOwn(View(leaf))) return ::grpc::Status::OK;
    }
    std::vector<std::string> names;
    for (const char* kind : {"peer_dns", "peer_uri", "x509_common_name"}) {
      for (const ::grpc::string_ref& name : peer->FindPropertyValues(kind)) {
        names.emplace_back(View(name));
      }
    }
    if (AnyNameAllowed(allow_, names)) return ::grpc::Status::OK;
    const absl::Status denied = absl::PermissionDeniedError(
        StrCat("a client named ", absl::StrJoin(names, ", "),
               " is not in --tls-allow\nadd one of its names there"));
    warnings_.Warn(StrCat("refused: ", FirstLine(denied)));
    return ToGrpcStatus(denied);
  }

 private:
  const std::shared_ptr<TlsFiles> files_;  // shared as PeerVerifier's
  const std::vector<std::string> allow_;
  QuietWarnings warnings_;
};

std::shared_ptr<tls::CertificateProviderInterface> IdentityOf(
    const TlsFiles& files) {
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      files.identity_path(), files.identity_path(), kIdentityLookSeconds);
}

// The name that the servers of a list must have; empty: each its own address.
std::string NameOf(const std::string& list, const TlsOptions& options) {
  constexpr std::string_view kDns = "dns:///";
  if (!options.server_name.empty()) return options.server_name;
  if (!list.starts_with(kDns)) return "";
  // It is resolved by us, so that gRPC knows addresses only.
  const auto address = ParseHostPort(list.substr(kDns.size()));
  return address.ok() ? address->host : "";
}

}  // namespace

std::shared_ptr<::grpc::ChannelCredentials> ChannelCredentials(
    const std::shared_ptr<TlsFiles>& files, const std::string& list) {
  tls::TlsChannelCredentialsOptions options;
  if (!files->identity_path().empty()) {
    options.set_certificate_provider(IdentityOf(*files));
    options.watch_identity_key_cert_pairs();
  }
  options.set_verify_server_certs(false);  // PeerVerifier does
  options.set_check_call_host(false);      // so is the name
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PeerVerifier>(
          files, Certificates::Peer::kServer, NameOf(list, files->options())));
  return tls::TlsCredentials(options);
}

absl::StatusOr<std::shared_ptr<::grpc::ChannelCredentials>> ChannelCredentials(
    const TlsOptions& options, const std::string& list) {
  if (!options.enabled()) return nullptr;
  if (options.ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls-ca is missing: over TLS servers are believed by the CA that "
        "signs their certificates");
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsFiles> files,
                            TlsFiles::Open(options));
  return ChannelCredentials(files, list);
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
  // PeerVerifier verifies.
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PeerVerifier>(
          files, Certificates::Peer::kClient, ""));
  auto credentials = tls::TlsServerCredentials(options);
  if (!policy.allow.empty()) {
    // gRPC shares it with the calls.
    credentials->SetAuthMetadataProcessor(
        std::make_shared<NameCheck>(std::move(files), policy.allow));
  }
  return credentials;
}

absl::Status ExplainConnection(const absl::Status& status,
                               const std::string& address, bool tls) {
  const std::string text(status.message());
  if (absl::IsPermissionDenied(status)) {
    return absl::PermissionDeniedError(StrCat("server ", address, ": ", text));
  }
  if (!absl::IsUnavailable(status)) return status;
  constexpr std::string_view kRefused = "UNAUTHENTICATED: ";
  const size_t refused = text.find(kRefused);
  if (tls && refused != std::string::npos) {
    return absl::UnauthenticatedError(StrCat(
        "server ", address, ": its ", text.substr(refused + kRefused.size())));
  }
  if (tls && absl::StrContains(text, "wrong version number")) {
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
  if (!tls) {
    return absl::UnavailableError(
        StrCat("server ", address,
               " ended the connection before it answered; does it want TLS, "
               "--tls-ca?\nsee what that server's log says"));
  }
  return absl::UnavailableError(
      StrCat("server ", address,
             " ended the handshake; does it want a certificate, --tls-cert and "
             "--tls-key?\ngive one that its --tls-ca signs; its log says why "
             "it refuses others"));
}

}  // namespace millrace
