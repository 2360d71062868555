// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/certificates.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/grpc/tls/allowed_names.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;
// How much of a name chosen by a peer appears in messages.
constexpr size_t kMaxNameBytes = 100;
constexpr size_t kMaxNames = 4;
// At least 112 bits of security and no SHA-1, as Debian's OpenSSL requires for
// TLS.
constexpr int kSecurityLevel = 2;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using ContextPtr =
    std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
// Does not own the certificates.
using StackPtr = std::unique_ptr<STACK_OF(X509), FreeStack>;

BioPtr Reader(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Content(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// The certificates among the PEM blocks of `text`; empty if a block is damaged.
std::vector<X509Ptr> ParseCertificates(std::string_view text) {
  std::vector<X509Ptr> all;
  const BioPtr bio = Reader(text);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(next);
  }
  const unsigned long end = ERR_peek_last_error();
  ERR_clear_error();
  if (ERR_GET_REASON(end) != PEM_R_NO_START_LINE) all.clear();
  return all;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string Print(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string Cut(std::string text) {
  if (text.size() > kMaxNameBytes) text = text.substr(0, kMaxNameBytes) + "...";
  // The text comes from a peer and goes into logs.
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string Subject(const X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253);
  return Cut(Content(bio.get()));
}

std::string TextOf(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

// The subject's first common name as UTF-8; empty if it has none.
std::string CommonName(const X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(
      &text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  std::string name(reinterpret_cast<const char*>(text),
                   static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

CertificateNames NamesOf(const X509* certificate) {
  CertificateNames names;
  names.common_name = CommonName(certificate);
  const NamesPtr all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    int type = 0;
    const void* value =
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all.get(), i), &type);
    const auto* text = static_cast<const ASN1_STRING*>(value);
    if (type == GEN_DNS) {
      names.dns.push_back(TextOf(text));
    } else if (type == GEN_URI) {
      names.uris.push_back(TextOf(text));
    } else if (type == GEN_IPADD) {
      char address[INET6_ADDRSTRLEN] = "";
      const int family = ASN1_STRING_length(text) == 4 ? AF_INET : AF_INET6;
      const bool whole = family == AF_INET || ASN1_STRING_length(text) == 16;
      if (whole && inet_ntop(family, ASN1_STRING_get0_data(text), address,
                             sizeof address) != nullptr) {
        names.addresses.emplace_back(address);
      }
    }
  }
  return names;
}

std::string PrintNames(const X509* certificate) {
  const CertificateNames all = NamesOf(certificate);
  std::vector<std::string> names = all.dns;
  names.insert(names.end(), all.uris.begin(), all.uris.end());
  names.insert(names.end(), all.addresses.begin(), all.addresses.end());
  if (names.empty()) return "no names";
  const bool more = names.size() > kMaxNames;
  if (more) names.resize(kMaxNames);
  for (std::string& name : names) name = Cut(std::move(name));
  return absl::StrJoin(names, ", ") + (more ? ", ..." : "");
}

std::string DescribeOne(const X509* certificate) {
  return StrCat("certificate \"", Subject(certificate), "\" (",
                PrintNames(certificate), ")");
}

bool IsIpAddress(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

// Checks that a certificate is valid at `now`. The message continues one that
// names the certificate.
absl::Status CheckTimes(const X509* certificate, absl::Time now) {
  const absl::Time start = TimeOf(X509_get0_notBefore(certificate));
  const absl::Time end = TimeOf(X509_get0_notAfter(certificate));
  if (now < start) {
    return absl::FailedPreconditionError(
        StrCat("is not valid before ", Print(start)));
  }
  if (now > end) {
    return absl::FailedPreconditionError(StrCat("expired at ", Print(end)));
  }
  return absl::OkStatus();
}

// Says why X509_verify_cert() failed, and what to do.
absl::Status Refusal(X509_STORE_CTX* context, const X509* leaf,
                     const std::string& host, const std::string& ca,
                     absl::Time now) {
  const int error = X509_STORE_CTX_get_error(context);
  const X509* at = X509_STORE_CTX_get_current_cert(context);
  const std::string what = DescribeOne(at == nullptr ? leaf : at);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::UnauthenticatedError(StrCat(
          what, " ",
          std::string(CheckTimes(at == nullptr ? leaf : at, now).message()),
          "\nrenew it, and compare the clocks of both hosts"));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return absl::UnauthenticatedError(
          StrCat(what, " is not for ", Cut(host),
                 "\naddress the server by a name of its certificate, or give "
                 "one as --tls-server-name"));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::UnauthenticatedError(
          StrCat(what, " is not signed by --tls-ca ", ca,
                 "\ngive the CA that signs it, and with the certificate those "
                 "between the two"));
    default:
      return absl::UnauthenticatedError(
          StrCat(what, " is refused: ", X509_verify_cert_error_string(error),
                 "\nmake another certificate; docs/security.md says how"));
  }
}

}  // namespace

struct Certificates::State {
  TlsOptions options;
  std::string ca_text, cert_text, key_text;  // the files
  std::string identity;
  std::vector<X509Ptr> chain;  // our own certificate first
  StorePtr store;              // the CAs

  absl::Status ReadFiles();
  absl::Status ParseIdentity(absl::Time now);
  absl::Status ParseCas(absl::Time now);
};

namespace {

absl::Status ReadPem(const char* option, const std::string& path,
                     std::string& text) {
  if (path.empty()) return absl::OkStatus();
  auto content = ReadFile(path, kMaxFileBytes);
  if (!content.ok()) {
    return AsUsageError(absl::Status(
        content.status().code(),
        StrCat(option, ": ", std::string(content.status().message()),
               "\nname a PEM file that this user may read")));
  }
  text = *std::move(content);
  return absl::OkStatus();
}

absl::Status NoPem(const char* option, const std::string& path,
                   const char* what) {
  return absl::FailedPreconditionError(
      StrCat(option, " ", path, " does not contain a complete ", what,
             " in PEM\nwrite one, with its BEGIN and END lines"));
}

absl::Status NoCertificate() {
  return absl::UnauthenticatedError("it showed no certificate");
}

// Keeps OpenSSL from prompting for a passphrase.
int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace

absl::Status Certificates::State::ReadFiles() {
  if (options.cert.empty() != options.key.empty()) {
    return UsageError(
        StrCat(options.cert.empty() ? "--tls-cert" : "--tls-key",
               " is missing: a certificate and its key go together"));
  }
  MILLRACE_RETURN_IF_ERROR(ReadPem("--tls-ca", options.ca, ca_text));
  MILLRACE_RETURN_IF_ERROR(ReadPem("--tls-cert", options.cert, cert_text));
  return ReadPem("--tls-key", options.key, key_text);
}

absl::Status Certificates::State::ParseIdentity(absl::Time now) {
  if (options.cert.empty()) return absl::OkStatus();
  chain = ParseCertificates(cert_text);
  if (chain.empty()) return NoPem("--tls-cert", options.cert, "certificate");
  const KeyPtr key(PEM_read_bio_PrivateKey(Reader(key_text).get(), nullptr,
                                           NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return NoPem("--tls-key", options.key, "key without a passphrase");
  }
  const int fits = X509_check_private_key(chain.front().get(), key.get());
  ERR_clear_error();
  if (fits != 1) {
    return absl::FailedPreconditionError(StrCat(
        "--tls-key ", options.key, " does not match --tls-cert ", options.cert,
        "\ngive the key that the certificate was made "
        "for"));
  }
  const absl::Status times = CheckTimes(chain.front().get(), now);
  if (!times.ok()) {
    return absl::FailedPreconditionError(
        StrCat("--tls-cert ", options.cert, " ", std::string(times.message()),
               "\nrenew it, and check this host's clock"));
  }
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr,
                           nullptr);
  for (const X509Ptr& one : chain) PEM_write_bio_X509(out.get(), one.get());
  identity = Content(out.get());
  return absl::OkStatus();
}

absl::Status Certificates::State::ParseCas(absl::Time now) {
  if (options.ca.empty()) return absl::OkStatus();
  const std::vector<X509Ptr> cas = ParseCertificates(ca_text);
  if (cas.empty()) return NoPem("--tls-ca", options.ca, "certificate");
  const bool usable = std::any_of(cas.begin(), cas.end(), [&](const auto& ca) {
    return CheckTimes(ca.get(), now).ok();
  });
  if (!usable) {
    return absl::FailedPreconditionError(
        StrCat("--tls-ca ", options.ca, " ",
               std::string(CheckTimes(cas.back().get(), now).message()),
               "\nrenew it, and check this host's clock"));
  }
  store.reset(X509_STORE_new());
  for (const X509Ptr& ca : cas) X509_STORE_add_cert(store.get(), ca.get());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Certificates>> Certificates::Load(
    const TlsOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const absl::Time now = options.clock();
  MILLRACE_RETURN_IF_ERROR(state->ReadFiles());
  MILLRACE_RETURN_IF_ERROR(state->ParseIdentity(now));
  MILLRACE_RETURN_IF_ERROR(state->ParseCas(now));
  return std::shared_ptr<const Certificates>(
      new Certificates(std::move(state)));
}

Certificates::Certificates(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
Certificates::~Certificates() = default;

const std::string& Certificates::identity() const { return state_->identity; }

absl::Time Certificates::not_after() const {
  absl::Time first = absl::InfiniteFuture();
  for (const X509Ptr& one : state_->chain) {
    first = std::min(first, TimeOf(X509_get0_notAfter(one.get())));
  }
  return first;
}

std::string Certificates::Describe() const {
  if (state_->chain.empty()) return "no certificate";
  return StrCat(DescribeOne(state_->chain.front().get()), " until ",
                Print(not_after()));
}

absl::Status Certificates::CheckOwn(Peer as, absl::Time now) const {
  if (state_->chain.empty() || state_->store == nullptr) {
    return absl::OkStatus();
  }
  return CheckPeer(as, state_->cert_text, state_->cert_text, "", now);
}

absl::Status Certificates::CheckPeer(Peer peer, std::string_view leaf,
                                     std::string_view chain,
                                     const std::string& host,
                                     absl::Time now) const {
  const std::vector<X509Ptr> leaves = ParseCertificates(leaf);
  if (leaves.empty()) return NoCertificate();
  if (state_->store == nullptr) {
    return absl::UnauthenticatedError("there is no --tls-ca");
  }
  const std::vector<X509Ptr> others = ParseCertificates(chain);
  const StackPtr untrusted(sk_X509_new_null());
  for (const X509Ptr& one : others) sk_X509_push(untrusted.get(), one.get());
  const ContextPtr context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), state_->store.get(),
                          leaves.front().get(), untrusted.get()) != 1) {
    return absl::UnauthenticatedError("certificates cannot be checked");
  }
  // Sets purpose and trust as OpenSSL's own TLS does.
  X509_STORE_CTX_set_default(
      context.get(), peer == Peer::kServer ? "ssl_server" : "ssl_client");
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  // Allows a CA that is itself signed by another CA.
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const int known =
      host.empty() ? 1
      : IsIpAddress(host)
          ? X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str())
          : X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size());
  const bool trusted = known == 1 && X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (trusted) return absl::OkStatus();
  return Refusal(context.get(), leaves.front().get(), host, state_->options.ca,
                 now);
}

bool Certificates::IsOwn(std::string_view leaf) const {
  const std::vector<X509Ptr> leaves = ParseCertificates(leaf);
  return !leaves.empty() && !state_->chain.empty() &&
         X509_cmp(leaves.front().get(), state_->chain.front().get()) == 0;
}

bool Certificates::SameFiles(const Certificates& other) const {
  return state_->ca_text == other.state_->ca_text &&
         state_->cert_text == other.state_->cert_text &&
         state_->key_text == other.state_->key_text;
}

absl::Status CheckNames(const std::vector<std::string>& allow,
                        std::string_view leaf) {
  const std::vector<X509Ptr> leaves = ParseCertificates(leaf);
  if (leaves.empty()) return NoCertificate();
  const X509* certificate = leaves.front().get();
  if (IsAllowed(allow, NamesOf(certificate))) return absl::OkStatus();
  return absl::UnauthenticatedError(
      StrCat(DescribeOne(certificate),
             " has no name of --tls-allow\nadd one of its names there"));
}

}  // namespace millrace
