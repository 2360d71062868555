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

absl::Time EndOf(const X509* certificate) {
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
  const absl::Time end = EndOf(certificate);
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
  const int error = X509_STORE_CTX_get_error(context);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      MILLRACE_RETURN_IF_ERROR(CheckTimes(at, now));
      break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::UnauthenticatedError(
          StrCat(Describe(leaf), " is not signed by ", ca,
                 "\ngive the CA that signs it, and with the certificate those "
                 "between the two"));
    default:
      break;
  }
  return absl::UnauthenticatedError(StrCat(
      Describe(at), " is refused: ", X509_verify_cert_error_string(error),
      "\nmake another certificate; docs/security.md says how"));
}

}  // namespace millrace
