// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;
// Debian's default, and so that of gRPC: at least 112 bits of security and no
// SHA-1.
constexpr int kSecurityLevel = 2;
constexpr char kRenew[] = "renew it, and check this host's clock";

using KeyPtr = OpensslPtr<EVP_PKEY, EVP_PKEY_free>;
using StorePtr = OpensslPtr<X509_STORE, X509_STORE_free>;
using ContextPtr = OpensslPtr<X509_STORE_CTX, X509_STORE_CTX_free>;
void FreeStack(STACK_OF(X509) * stack) { sk_X509_free(stack); }
// Does not own the certificates.
using StackPtr = OpensslPtr<STACK_OF(X509), FreeStack>;

absl::StatusOr<std::string> ReadPem(const char* field,
                                    const std::string& path) {
  auto text = ReadFile(path, kMaxFileBytes);
  if (text.ok()) return text;
  return WithAdvice(
      FieldStatus(text.status().code(),
                  {.field = field, .limit = FirstLine(text.status())}),
      "name a PEM file that this user may read");
}

absl::Status WrongFile(const char* field, const std::string& path,
                       const std::string& what, std::string_view advice) {
  return WithAdvice(FieldStatus(absl::StatusCode::kFailedPrecondition,
                                {.field = field, .value = path, .limit = what}),
                    advice);
}

absl::Status NoPem(const char* field, const std::string& path,
                   const char* what) {
  return WrongFile(field, path,
                   StrCat("does not contain a complete ", what, " in PEM"),
                   "write one, with its BEGIN and END lines");
}

// Keeps OpenSSL from prompting for a passphrase.
int NoPassphrase(char*, int, int, void*) { return -1; }

}  // namespace

absl::StatusOr<std::shared_ptr<const Certificates>> Certificates::Load(
    const TlsOptions& options) {
  std::shared_ptr<Certificates> made(new Certificates(options));
  MILLRACE_RETURN_IF_ERROR(made->LoadIdentity());
  MILLRACE_RETURN_IF_ERROR(made->LoadCas());
  return made;
}

absl::Status Certificates::LoadIdentity() {
  const std::string& cert = options_.cert;
  if (cert.empty() != options_.key.empty()) {
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = cert.empty() ? "tls_key" : "tls_cert",
                         .other_field = cert.empty() ? "tls_cert" : "tls_key"});
  }
  if (cert.empty()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const std::string cert_text,
                            ReadPem("tls_cert", cert));
  MILLRACE_ASSIGN_OR_RETURN(const std::string key_text,
                            ReadPem("tls_key", options_.key));
  own_ = ParseCertificates(cert_text);
  if (own_.empty()) return NoPem("tls_cert", cert, "certificate");
  const KeyPtr key(PEM_read_bio_PrivateKey(Reader(key_text).get(), nullptr,
                                           NoPassphrase, nullptr));
  const bool fits = key != nullptr &&
                    X509_check_private_key(own_.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (key == nullptr) {
    return NoPem("tls_key", options_.key, "key without a passphrase");
  }
  if (!fits) {
    return WrongFile("tls_key", options_.key,
                     StrCat("does not match the certificate ", cert),
                     "give the key that the certificate was made for");
  }
  const std::string times = TimeProblem(own_.front().get(), options_.clock());
  if (!times.empty()) return WrongFile("tls_cert", cert, times, kRenew);
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr,
                           nullptr);
  for (const X509Ptr& one : own_) PEM_write_bio_X509(out.get(), one.get());
  identity_ = Content(out.get());
  return absl::OkStatus();
}

absl::Status Certificates::LoadCas() {
  if (options_.ca.empty()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadPem("tls_ca", options_.ca));
  trusted_ = ParseCertificates(text);
  if (trusted_.empty()) return NoPem("tls_ca", options_.ca, "certificate");
  const absl::Time now = options_.clock();
  const bool usable = std::any_of(
      trusted_.begin(), trusted_.end(),
      [now](const auto& ca) { return TimeProblem(ca.get(), now).empty(); });
  if (!usable) {
    return WrongFile("tls_ca", options_.ca,
                     TimeProblem(trusted_.back().get(), now), kRenew);
  }
  // Not `text`: gRPC would find more in it, such as TRUSTED CERTIFICATEs.
  const BioPtr cas(BIO_new(BIO_s_mem()));
  for (const X509Ptr& ca : trusted_) PEM_write_bio_X509(cas.get(), ca.get());
  cas_ = Content(cas.get());
  if (own_.empty()) return absl::OkStatus();
  // A TRUSTED CERTIFICATE says what it is trusted for, which overrides its
  // purpose.
  const X509Ptr own(X509_dup(own_.front().get()));
  X509_add1_trust_object(own.get(), OBJ_nid2obj(NID_client_auth));
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_AUX(out.get(), own.get());
  client_roots_ = StrCat(Content(out.get()), cas_);
  return absl::OkStatus();
}

absl::Time Certificates::not_after() const {
  absl::Time first = absl::InfiniteFuture();
  for (const X509Ptr& one : own_) {
    first = std::min(first, ExpiryOf(one.get()));
  }
  return first;
}

std::string Certificates::DescribeOwn() const {
  if (own_.empty()) return "no certificate";
  return Describe(own_.front().get());
}

bool Certificates::IsOwn(const X509* certificate) const {
  return !own_.empty() && X509_cmp(certificate, own_.front().get()) == 0;
}

absl::Status Certificates::ExplainServer(std::string_view chain) const {
  const absl::Time now = options_.clock();
  const std::vector<X509Ptr> shown = ParseCertificates(chain);
  if (shown.empty()) return ParsePeer(chain).status();
  const StackPtr untrusted(sk_X509_new_null());
  for (const X509Ptr& one : shown) sk_X509_push(untrusted.get(), one.get());
  const StorePtr store(X509_STORE_new());
  for (const X509Ptr& ca : trusted_) {
    X509_STORE_add_cert(store.get(), ca.get());
  }
  const ContextPtr context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), shown.front().get(),
                      untrusted.get());
  // The rules of gRPC and of OpenSSL's TLS.
  X509_STORE_CTX_set_default(context.get(), "ssl_server");
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, absl::ToTimeT(now));
  X509_VERIFY_PARAM_set_auth_level(rules, kSecurityLevel);
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_PARTIAL_CHAIN);
  const bool trusted = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (trusted) return absl::OkStatus();
  return WhyRefused(context.get(), StrCat("the CA in ", options_.ca), now);
}

absl::Status Certificates::ExplainOwn() const {
  if (own_.empty() || trusted_.empty()) return absl::OkStatus();
  return ExplainServer(identity_);
}

bool Certificates::IsSameAs(const Certificates& other) const {
  return identity_ == other.identity_ && cas_ == other.cas_;
}

}  // namespace millrace
