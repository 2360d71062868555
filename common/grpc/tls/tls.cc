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

std::string_view View(const ::grpc::string_ref& text) {
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

// Checks, for a client, that the server's certificate is for `name`.
absl::Status CheckServer(Request& request, const std::string& name) {
  MILLRACE_ASSIGN_OR_RETURN(const X509Ptr leaf,
                            ParsePeer(View(request.peer_cert())));
  ::grpc::Status verified;
  tls::HostNameCertificateVerifier().Verify(&request, nullptr, &verified);
  // gRPC 1.51.1 also accepts a common name as a host name and a DNS name (even
  // "*.0.0.7") as an address, and cuts names off at a zero byte.
  if (verified.ok() && IsFor(leaf.get(), name)) return absl::OkStatus();
  return absl::UnauthenticatedError(
      StrCat(Describe(leaf.get()), " is not for ", name,
             "\naddress the server by a name of its certificate, or say which "
             "of its names to expect"));
}

// Checks, for a server, a client's certificate.
absl::Status CheckClient(const Request& request, const TlsFiles& files,
                         const std::vector<std::string>& allow) {
  // Not the names in the request: gRPC cuts them off at a zero byte.
  MILLRACE_ASSIGN_OR_RETURN(const X509Ptr leaf,
                            ParsePeer(View(request.peer_cert())));
  // OpenSSL does not verify again when a client resumes a session.
  MILLRACE_RETURN_IF_ERROR(CheckTimes(leaf.get(), files.options().clock()));
  if (allow.empty() || files.current()->IsOwn(leaf.get())) {
    return absl::OkStatus();
  }
  return CheckNames(leaf.get(), allow);
}

// `roots`: path of the trusted certificates; empty if peers are not asked for a
// certificate.
ProviderPtr Watch(const TlsFiles& files, const std::string& roots) {
  const std::string own =
      files.options().cert.empty() ? "" : files.identity().path();
  return std::make_shared<tls::FileWatcherCertificateProvider>(own, own, roots,
                                                               kLookSeconds);
}

// The provider's roots are trusted.
tls::TlsChannelCredentialsOptions ChannelOptions(const ProviderPtr& provider,
                                                 Verifier::Check check) {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider);
  options.watch_root_certs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<Verifier>(std::move(check)));
  // All calls of a channel have one host, which the handshake has checked.
  options.set_check_call_host(false);
  return options;
}

// The host that the server at `address` must have a certificate for. IPv6
// addresses are in the one form that gRPC compares with those of certificates.
std::string HostOf(const std::string& address, const std::string& list,
                   const std::string& server_name) {
  constexpr std::string_view kDns = "dns:///";
  // We resolve the names of such lists, so gRPC sees only addresses.
  const auto parsed = ParseHostPort(
      list.starts_with(kDns) ? list.substr(kDns.size()) : address);
  std::string host = !server_name.empty() ? server_name
                     : parsed.ok()        ? parsed->host
                                          : address;
  in6_addr bytes;
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, host.c_str(), &bytes) != 1) return host;
  return inet_ntop(AF_INET6, &bytes, text, sizeof text);
}

// What failed about a connection.
struct ConnectionFailure {
  bool by_openssl = false;    // OpenSSL ended the handshake
  bool in_plaintext = false;  // the server does not use TLS
  bool ended_early = false;   // before an answer, perhaps by the server
  std::string refusal = {};   // why a Verifier refused the server, or empty
};

// Reads gRPC's message, since gRPC 1.51 reports these causes in no other way.
ConnectionFailure ReadFailure(const absl::Status& status) {
  const absl::string_view text = status.message();
  const auto contains = [text](absl::string_view part) {
    return absl::StrContains(text, part);
  };
  constexpr absl::string_view kRefusal = "UNAUTHENTICATED: ";
  ConnectionFailure failure;
  failure.by_openssl = contains("handshake failed: SSL_ERROR_SSL");
  failure.in_plaintext = contains("wrong version number");
  failure.ended_early =
      contains("failed to connect") &&
      (contains("Socket closed") || contains("Connection reset") ||
       contains("handshake failed"));
  if (const size_t at = text.find(kRefusal); at != text.npos) {
    failure.refusal = std::string(text.substr(at + kRefusal.size()));
  }
  return failure;
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

Connector::Connector(std::shared_ptr<TlsFiles> files, std::string list)
    : files_(std::move(files)),
      list_(std::move(list)),
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
  const TlsOptions& own = files_->options();
  const std::string host = HostOf(address, list_, own.server_name);
  arguments.SetSslTargetNameOverride(host);
  const auto check = [files = files_, host, address](Request& request) {
    absl::Status checked = CheckServer(request, host);
    if (checked.ok()) files->NoteHandshake(address);
    return checked;
  };
  auto options = ChannelOptions(provider_, check);
  if (!own.cert.empty()) options.watch_identity_key_cert_pairs();
  return ::grpc::CreateCustomChannel(address, tls::TlsCredentials(options),
                                     arguments);
}

std::shared_ptr<::grpc::Channel> Connector::ConnectToExplain(
    const absl::Status& failure, const std::string& address) const {
  if (files_ == nullptr || !absl::IsUnavailable(failure) ||
      !ReadFailure(failure).by_openssl) {
    return nullptr;
  }
  const auto refuse = [files = files_](Request& request) {
    const absl::Status wrong =
        files->current()->ExplainServer(View(request.peer_cert_full_chain()));
    return wrong.ok() ? absl::AbortedError("nothing is wrong any more") : wrong;
  };
  auto options = ChannelOptions(provider_, refuse);
  // Lets the handshake go on until `refuse` is called.
  options.set_verify_server_certs(false);
  return ::grpc::CreateCustomChannel(address, tls::TlsCredentials(options),
                                     ClientChannelArguments());
}

std::shared_ptr<::grpc::ChannelCredentials> OwnServerCredentials(
    const std::shared_ptr<TlsFiles>& files) {
  const ProviderPtr provider = Watch(*files, files->identity().path());
  // The roots include the intermediate CAs. Names do not matter, since nobody
  // else has the certificate.
  auto options = ChannelOptions(provider, [files](Request& request) {
    const auto leaf = ParsePeer(View(request.peer_cert()));
    return leaf.ok() && files->current()->IsOwn(leaf->get())
               ? absl::OkStatus()
               : absl::UnauthenticatedError("another server answers");
  });
  options.watch_identity_key_cert_pairs();
  return tls::TlsCredentials(options);
}

std::shared_ptr<::grpc::ServerCredentials> ServerCredentials(
    const std::shared_ptr<TlsFiles>& files, const TlsClientPolicy& policy) {
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
  // Also keeps the files for as long as gRPC reads them.
  const auto check = [files, mutual, allow = policy.allow](Request& request) {
    if (!mutual) return absl::OkStatus();
    absl::Status checked = CheckClient(request, *files, allow);
    if (!checked.ok()) WarnOfRefusedClient(checked);
    return checked;
  };
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<Verifier>(check));
  return tls::TlsServerCredentials(options);
}

absl::Status ExplainConnection(const absl::Status& status,
                               const std::string& address, TlsFiles* tls) {
  const std::string server = StrCat("server ", address);
  if (status.ok() && tls != nullptr) tls->NoteAnswer(address);
  if (absl::IsPermissionDenied(status)) {
    return absl::PermissionDeniedError(
        StrCat(server, ": ", std::string(status.message())));
  }
  if (!absl::IsUnavailable(status)) return status;
  const ConnectionFailure failure = ReadFailure(status);
  if (tls != nullptr && !failure.refusal.empty()) {
    return absl::UnauthenticatedError(
        StrCat(server, ": its ", failure.refusal));
  }
  if (tls != nullptr && failure.in_plaintext) {
    return absl::UnauthenticatedError(
        StrCat(server,
               " answers in plaintext\nstart it with a certificate and its "
               "key, or connect in plaintext"));
  }
  if (!failure.ended_early) return status;
  if (tls == nullptr) {
    return absl::UnavailableError(
        StrCat(server,
               " ended the connection before it answered; does it want "
               "TLS?\nconnect with the CA of its certificate, or see what its "
               "log says"));
  }
  const bool refused_again =
      tls->UnansweredHandshakes(address) >= kHandshakesThatTell;
  return {
      refused_again ? absl::StatusCode::kUnauthenticated
                    : absl::StatusCode::kUnavailable,
      StrCat(server,
             " ended the handshake; does it want a certificate, or refuse "
             "this one?\nshow a certificate that the server's CA has signed, "
             "with a name that the server allows; its log says why it "
             "refuses one")};
}

}  // namespace millrace
