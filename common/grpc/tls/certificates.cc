// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include "common/base/field_error.h"
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
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
// Does not own the certificates.
using StackPtr = std::unique_ptr<STACK_OF(X509), FreeStack>;

absl::Status ReadPem(const char* field, const std::string& path,
                     std::string& text) {
  if (path.empty()) return absl::OkStatus();
  auto content = ReadFile(path, kMaxFileBytes);
  if (!content.ok()) {
    return WithAdvice(
        FieldStatus(content.status().code(),
                    {.field = field, .limit = FirstLine(content.status())}),
        "name a PEM file that this user may read");
  }
  text = *std::move(content);
  return absl::OkStatus();
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
  const absl::Time now = options.clock();
  MILLRACE_RETURN_IF_ERROR(made->ReadFiles());
  MILLRACE_RETURN_IF_ERROR(made->ParseIdentity(now));
  MILLRACE_RETURN_IF_ERROR(made->ParseCas(now));
  return made;
}

absl::Status Certificates::ReadFiles() {
  if (options_.cert.empty() != options_.key.empty()) {
    const bool has_key = options_.cert.empty();
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = has_key ? "tls_key" : "tls_cert",
                         .other_field = has_key ? "tls_cert" : "tls_key"});
  }
  MILLRACE_RETURN_IF_ERROR(ReadPem("tls_ca", options_.ca, ca_text_));
  MILLRACE_RETURN_IF_ERROR(ReadPem("tls_cert", options_.cert, cert_text_));
  return ReadPem("tls_key", options_.key, key_text_);
}

absl::Status Certificates::ParseIdentity(absl::Time now) {
  if (options_.cert.empty()) return absl::OkStatus();
  chain_ = ParseCertificates(cert_text_);
  if (chain_.empty()) return NoPem("tls_cert", options_.cert, "certificate");
  const KeyPtr key(PEM_read_bio_PrivateKey(Reader(key_text_).get(), nullptr,
                                           NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return NoPem("tls_key", options_.key, "key without a passphrase");
  }
  const int fits = X509_check_private_key(chain_.front().get(), key.get());
  ERR_clear_error();
  if (fits != 1) {
    return WrongFile("tls_key", options_.key,
                     StrCat("does not match the certificate ", options_.cert),
                     "give the key that the certificate was made for");
  }
  const std::string times = TimeProblem(chain_.front().get(), now);
  if (!times.empty())
    return WrongFile("tls_cert", options_.cert, times, kRenew);
  WriteIdentity(key.get());
  return absl::OkStatus();
}

absl::Status Certificates::ParseCas(absl::Time now) {
  if (options_.ca.empty()) return absl::OkStatus();
  cas_ = ParseCertificates(ca_text_);
  if (cas_.empty()) return NoPem("tls_ca", options_.ca, "certificate");
  const bool usable = std::any_of(
      cas_.begin(), cas_.end(),
      [&](const auto& ca) { return TimeProblem(ca.get(), now).empty(); });
  if (!usable) {
    return WrongFile("tls_ca", options_.ca, TimeProblem(cas_.back().get(), now),
                     kRenew);
  }
  if (!chain_.empty()) WriteClientRoots();
  return absl::OkStatus();
}

void Certificates::WriteIdentity(EVP_PKEY* key) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr,
                           nullptr);
  for (const X509Ptr& one : chain_) PEM_write_bio_X509(out.get(), one.get());
  identity_ = Content(out.get());
}

// A TRUSTED CERTIFICATE in PEM says what it is trusted for, which counts more
// than its purpose.
void Certificates::WriteClientRoots() {
  const X509Ptr own(X509_dup(chain_.front().get()));
  X509_add1_trust_object(own.get(), OBJ_nid2obj(NID_client_auth));
  const BioPtr out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_AUX(out.get(), own.get());
  client_roots_ = StrCat(Content(out.get()), ca_text_);
}

absl::Time Certificates::not_after() const {
  absl::Time first = absl::InfiniteFuture();
  for (const X509Ptr& one : chain_) {
    first = std::min(first, EndOf(one.get()));
  }
  return first;
}

std::string Certificates::DescribeOwn() const {
  if (chain_.empty()) return "no certificate";
  return StrCat(Describe(chain_.front().get()), " until ",
                PrintTime(not_after()));
}

bool Certificates::IsOwn(const X509* certificate) const {
  return !chain_.empty() && X509_cmp(certificate, chain_.front().get()) == 0;
}

absl::Status Certificates::ExplainServer(std::string_view chain) const {
  const absl::Time now = options_.clock();
  const std::vector<X509Ptr> shown = ParseCertificates(chain);
  if (shown.empty()) return ParsePeer(chain).status();
  const StackPtr untrusted(sk_X509_new_null());
  for (const X509Ptr& one : shown) sk_X509_push(untrusted.get(), one.get());
  const StorePtr store(X509_STORE_new());
  for (const X509Ptr& ca : cas_) {
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
  if (chain_.empty() || cas_.empty()) return absl::OkStatus();
  return ExplainServer(cert_text_);
}

bool Certificates::SameFiles(const Certificates& other) const {
  return ca_text_ == other.ca_text_ && cert_text_ == other.cert_text_ &&
         key_text_ == other.key_text_;
}

}  // namespace millrace
