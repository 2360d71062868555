// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/tls.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/grpc/tls/certificates.h"
#include "common/grpc/tls/refused_clients.h"
#include "common/net/host_port.h"

namespace millrace {
namespace {

namespace tls = ::grpc::experimental;

using Request = tls::TlsCustomVerificationCheckRequest;
using ProviderPtr = std::shared_ptr<tls::CertificateProviderInterface>;

// How often gRPC looks at the files, which are in memory.
constexpr unsigned kLookSeconds = 1;

// Unanswered handshakes that show that a server refuses us. A single one may
// come from a server that was being stopped.
constexpr int kHandshakesThatTell = 2;

std::string_view View(::grpc::string_ref text) {
  return {text.data(), text.size()};
}

// Asks a function about each peer, after gRPC has verified its chain. gRPC
// destroys it, and what the function holds, when no connection needs it.
class Verifier final : public tls::ExternalCertificateVerifier {
 public:
  using Check = std::function<absl::Status(Request& request)>;

  explicit Verifier(Check check) : check_(std::move(check)) {}
  bool Verify(Request* request, std::function<void(::grpc::Status)>,
              ::grpc::Status* result) override {
    *result = ToGrpcStatus(check_(*request));
    return true;
  }
  void Cancel(Request*) override {}

 private:
  const Check check_;
};

// A client's check of servers, which must be called `name`.
absl::Status CheckServer(Request& request, const std::string& name) {
  MILLRACE_ASSIGN_OR_RETURN(const X509Ptr leaf,
                            ParsePeer(View(request.peer_cert())));
  ::grpc::Status verified;
  tls::HostNameCertificateVerifier().Verify(&request, nullptr, &verified);
  // gRPC 1.51.1 also takes a common name for a host name, a DNS name for an
  // address, even "*.0.0.7", and what is before a zero byte for the name.
  if (verified.ok() && IsFor(leaf.get(), name)) return absl::OkStatus();
  return absl::UnauthenticatedError(
      StrCat(Describe(leaf.get()), " is not for ", name,
             "\naddress the server by a name of its certificate, or say which "
             "of its names to expect"));
}

// A server's check of clients.
absl::Status CheckClient(const Request& request, const TlsFiles& files,
                         const std::vector<std::string>& allow) {
  // Not the names in the request: gRPC cuts them off at a zero byte.
  MILLRACE_ASSIGN_OR_RETURN(const X509Ptr leaf,
                            ParsePeer(View(request.peer_cert())));
  // OpenSSL verifies nothing again where a client resumes a session.
  MILLRACE_RETURN_IF_ERROR(CheckTimes(leaf.get(), files.options().clock()));
  if (allow.empty() || files.current()->IsOwn(leaf.get())) {
    return absl::OkStatus();
  }
  return CheckNames(leaf.get(), allow);
}

// `roots`: the path of what is trusted; empty if no certificate of a peer is
// asked for.
ProviderPtr Watch(const TlsFiles& files, const std::string& roots) {
  const std::string own =
      files.options().cert.empty() ? "" : files.identity().path();
  return std::make_shared<tls::FileWatcherCertificateProvider>(own, own, roots,
                                                               kLookSeconds);
}

tls::TlsChannelCredentialsOptions ChannelOptions(const TlsFiles& files,
                                                 const ProviderPtr& provider,
                                                 Verifier::Check check) {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider);
  options.watch_root_certs();
  if (!files.options().cert.empty()) options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<Verifier>(std::move(check)));
  // All calls of a channel have one host, which the handshake has checked.
  options.set_check_call_host(false);
  return options;
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

// The host of "HOST:PORT". IPv6 addresses in the one form that gRPC compares
// with those of certificates.
std::string HostOf(const std::string& address) {
  const auto parsed = ParseHostPort(address);
  const std::string host = parsed.ok() ? parsed->host : address;
  in6_addr bytes;
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, host.c_str(), &bytes) != 1) return host;
  return inet_ntop(AF_INET6, &bytes, text, sizeof text);
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsFiles>> OpenClientTls(
    const TlsOptions& options) {
  if (!options.enabled()) return nullptr;
  if (options.ca.empty()) {
    return InvalidField(
        {.problem = FieldError::Problem::kMissing,
         .field = "tls_ca",
         .limit = "over TLS, servers are trusted if this CA signed their "
                  "certificates"});
  }
  return TlsFiles::Open(options);
}

Connector::Connector(std::shared_ptr<TlsFiles> files, const std::string& list)
    : files_(std::move(files)),
      server_name_(files_ == nullptr ? "" : NameOf(list, files_->options())),
      provider_(files_ == nullptr ? nullptr
                                  : Watch(*files_, files_->cas().path())) {}

std::shared_ptr<::grpc::Channel> Connector::Connect(
    const std::string& address, int max_receive_bytes) const {
  ::grpc::ChannelArguments arguments =
      ClientChannelArguments(max_receive_bytes);
  if (files_ == nullptr) {
    return ::grpc::CreateCustomChannel(
        address, ::grpc::InsecureChannelCredentials(), arguments);
  }
  const std::string name =
      server_name_.empty() ? HostOf(address) : server_name_;
  arguments.SetSslTargetNameOverride(name);
  const auto check = [files = files_, name, address](Request& request) {
    const absl::Status checked = CheckServer(request, name);
    if (checked.ok()) files->NoteHandshake(address);
    return checked;
  };
  return ::grpc::CreateCustomChannel(
      address, tls::TlsCredentials(ChannelOptions(*files_, provider_, check)),
      arguments);
}

std::shared_ptr<::grpc::Channel> Connector::Look(
    const std::string& address) const {
  const auto refuse = [files = files_](Request& request) {
    const absl::Status wrong =
        files->current()->ExplainServer(View(request.peer_cert_full_chain()));
    return wrong.ok() ? absl::AbortedError("nothing is wrong any more") : wrong;
  };
  auto options = ChannelOptions(*files_, provider_, refuse);
  // Lets the handshake go on until `refuse` is called.
  options.set_verify_server_certs(false);
  return ::grpc::CreateCustomChannel(address, tls::TlsCredentials(options),
                                     ClientChannelArguments());
}

bool Connector::NeedsLook(const absl::Status& status) const {
  return files_ != nullptr && absl::IsUnavailable(status) &&
         absl::StrContains(status.message(), "handshake failed: SSL_ERROR_SSL");
}

std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    std::shared_ptr<TlsFiles> files) {
  // Names do not matter, since nobody else has the certificate.
  return tls::TlsCredentials(
      ChannelOptions(*files, Watch(*files, /*roots=*/files->identity().path()),
                     [files](Request&) { return absl::OkStatus(); }));
}

std::shared_ptr<::grpc::ServerCredentials> ServerCredentials(
    std::shared_ptr<TlsFiles> files, const TlsClientPolicy& policy) {
  const bool mutual = policy.require_certificate;
  tls::TlsServerCredentialsOptions options(
      Watch(*files, mutual ? files->client_roots().path() : ""));
  options.watch_identity_key_cert_pairs();
  if (mutual) {
    WatchRefusals();
    options.watch_root_certs();
    options.set_cert_request_type(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  const auto check = [files, mutual, allow = policy.allow](Request& request) {
    if (!mutual) return absl::OkStatus();
    const absl::Status checked = CheckClient(request, *files, allow);
    if (!checked.ok()) WarnOfRefusedClient(checked);
    return checked;
  };
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<Verifier>(check));
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
    return absl::UnauthenticatedError(StrCat(
        "server ", address,
        " answers in plaintext\nstart it with a certificate and its key, "
        "or connect in plaintext"));
  }
  const bool closed = absl::StrContains(text, "failed to connect") &&
                      (absl::StrContains(text, "Socket closed") ||
                       absl::StrContains(text, "Connection reset") ||
                       absl::StrContains(text, "handshake failed"));
  if (!closed) return status;
  if (tls == nullptr) {
    return absl::UnavailableError(
        StrCat("server ", address,
               " ended the connection before it answered; does it want "
               "TLS?\nconnect with the CA of its certificate, or see what its "
               "log says"));
  }
  const std::string explained = StrCat(
      "server ", address,
      " ended the handshake; does it want a certificate, or refuse this "
      "one?\ngive one that its CA signs, with a name that it allows; its log "
      "says why it refuses others");
  const bool refused_again =
      tls->UnansweredHandshakes(address) >= kHandshakesThatTell;
  return refused_again ? absl::UnauthenticatedError(explained)
                       : absl::UnavailableError(explained);
}

void NoteConnection(const std::string& address, TlsFiles* tls) {
  if (tls != nullptr) tls->NoteAnswer(address);
}

}  // namespace millrace
