// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/x509.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using NamesPtr = OpensslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;

// How much of a name chosen by a peer appears in messages.
constexpr size_t kMaxNameBytes = 100;
constexpr size_t kMaxNames = 4;

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
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

std::string Utf8(const ASN1_STRING* string) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, string);
  if (size < 0) return "";
  std::string copy(reinterpret_cast<const char*>(text),
                   static_cast<size_t>(size));
  OPENSSL_free(text);
  return copy;
}

std::string PrintAddress(const ASN1_STRING* bytes) {
  const int size = ASN1_STRING_length(bytes);
  char text[INET6_ADDRSTRLEN] = "";
  if (size == 4 || size == 16) {
    inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes),
              text, sizeof text);
  }
  return text;
}

std::vector<CertificateName> NamesOf(const X509* certificate) {
  using Kind = CertificateName::Kind;
  std::vector<CertificateName> names;
  const NamesPtr all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all.get(), i), &type));
    if (type == GEN_DNS) names.push_back({Kind::kDns, Utf8(value)});
    if (type == GEN_URI) names.push_back({Kind::kUri, Utf8(value)});
    if (type == GEN_IPADD) {
      names.push_back({Kind::kAddress, PrintAddress(value)});
    }
  }
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    const X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, at);
    names.push_back({Kind::kCommon, Utf8(X509_NAME_ENTRY_get_data(entry))});
  }
  return names;
}

// Prints all but the common name.
std::string PrintNames(const X509* certificate) {
  std::vector<std::string> names;
  for (const CertificateName& name : NamesOf(certificate)) {
    if (name.kind != CertificateName::Kind::kCommon) {
      names.push_back(names.size() < kMaxNames ? Cut(name.text) : "...");
    }
    if (names.size() > kMaxNames) break;
  }
  return names.empty() ? "no names" : absl::StrJoin(names, ", ");
}

}  // namespace

BioPtr Reader(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string Content(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

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

absl::StatusOr<X509Ptr> ParsePeer(std::string_view text) {
  std::vector<X509Ptr> all = ParseCertificates(text);
  if (!all.empty()) return std::move(all.front());
  return absl::UnauthenticatedError("certificate cannot be read");
}

absl::Time ExpiryOf(const X509* certificate) {
  return TimeOf(X509_get0_notAfter(certificate));
}

std::string PrintTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string Describe(const X509* certificate) {
  return StrCat("certificate \"", Subject(certificate), "\" (",
                PrintNames(certificate), ")");
}

std::string TimeProblem(const X509* certificate, absl::Time now) {
  const absl::Time start = TimeOf(X509_get0_notBefore(certificate));
  const absl::Time end = ExpiryOf(certificate);
  if (now < start) return StrCat("is not valid before ", PrintTime(start));
  return now > end ? StrCat("expired at ", PrintTime(end)) : "";
}

bool IsFor(X509* certificate, const std::string& host) {
  // Negative if `host` is not an address.
  int found = X509_check_ip_asc(certificate, host.c_str(), 0);
  if (found < 0) {
    found = X509_check_host(certificate, host.data(), host.size(),
                            X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr);
  }
  ERR_clear_error();
  return found == 1;
}

absl::Status CheckTimes(const X509* certificate, absl::Time now) {
  const std::string problem = TimeProblem(certificate, now);
  if (problem.empty()) return absl::OkStatus();
  return absl::UnauthenticatedError(
      StrCat(Describe(certificate), " ", problem,
             "\nrenew it, and compare the clocks of both hosts"));
}

absl::Status CheckNames(const X509* certificate,
                        const std::vector<std::string>& allow) {
  if (IsAllowed(allow, NamesOf(certificate))) return absl::OkStatus();
  return absl::UnauthenticatedError(StrCat(
      Describe(certificate), " has no allowed name\nallow one of its names"));
}

absl::Status WhyRefused(X509_STORE_CTX* context, std::string_view ca,
                        absl::Time now) {
  const X509* leaf = X509_STORE_CTX_get0_cert(context);
  const X509* at = X509_STORE_CTX_get_current_cert(context);
  if (at == nullptr) at = leaf;
  MILLRACE_RETURN_IF_ERROR(CheckTimes(at, now));
  const int error = X509_STORE_CTX_get_error(context);
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::UnauthenticatedError(
          StrCat(Describe(leaf), " is not signed by ", ca,
                 "\ngive the CA that signed it, and append the intermediate "
                 "certificates to the certificate"));
    default:
      return absl::UnauthenticatedError(StrCat(
          Describe(at), " is refused: ", X509_verify_cert_error_string(error),
          "\nmake another certificate; docs/security.md says how"));
  }
}

}  // namespace millrace
