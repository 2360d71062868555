// SPDX-License-Identifier: Apache-2.0
// Certificates for tests, made at run time. A test that uses this must link
// OpenSSL::Crypto.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace millrace::testing {

// The contents of a certificate.
struct CertificateSpec {
  std::string name = "localhost";                    // common name
  std::string names = "DNS:localhost,IP:127.0.0.1";  // empty if there are none
  std::string usage;                                 // such as "clientAuth"
  absl::Time start = absl::Now() - absl::Hours(24);
  absl::Time end = absl::Now() + absl::Hours(24 * 30);
};

// A certificate and its key in PEM format.
struct CertificatePem {
  std::string certificate;
  std::string key;
};

// A certificate authority, self-signed or signed by `parent`; if `authority` is
// false, one that signs although its certificate does not allow it.
class TestCa {
 public:
  explicit TestCa(const std::string& name, const TestCa* parent = nullptr,
                  bool authority = true)
      : key_(EVP_EC_gen("P-256")) {
    CertificateSpec spec;
    spec.name = name;
    spec.names = "";
    spec.end = absl::Now() + absl::Hours(24 * 3650);
    certificate_ =
        Sign(spec, key_.get(), parent == nullptr ? this : parent, authority);
  }

  std::string pem() const { return PemOf(certificate_.get()); }

  CertificatePem Issue(const CertificateSpec& spec) const {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate made = Sign(spec, key.get(), this, false);
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr,
                             nullptr);
    return {PemOf(made.get()), TakeText(bio)};
  }

 private:
  struct Free {
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  };
  using Certificate = std::unique_ptr<X509, Free>;
  using Key = std::unique_ptr<EVP_PKEY, Free>;

  static std::string TakeText(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(bio);
    return text;
  }
  static std::string PemOf(X509* certificate) {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    return TakeText(bio);
  }

  static void Extend(X509* certificate, X509* issuer, int kind,
                     const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    ASSERT_NE(extension, nullptr) << value;
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  static Certificate Sign(const CertificateSpec& spec, EVP_PKEY* key,
                          const TestCa* by, bool authority) {
    static int serial = 0;
    Certificate made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(made.get()), absl::ToTimeT(spec.start));
    ASN1_TIME_set(X509_getm_notAfter(made.get()), absl::ToTimeT(spec.end));
    X509_NAME_add_entry_by_txt(
        X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
        reinterpret_cast<const unsigned char*>(spec.name.c_str()), -1, -1, 0);
    X509* issuer =
        by->certificate_ == nullptr ? made.get() : by->certificate_.get();
    X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
    X509_set_pubkey(made.get(), key);
    Extend(made.get(), issuer, NID_basic_constraints,
           authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (!spec.names.empty()) {
      Extend(made.get(), issuer, NID_subject_alt_name, spec.names);
    }
    if (!spec.usage.empty()) {
      Extend(made.get(), issuer, NID_ext_key_usage, spec.usage);
    }
    X509_sign(made.get(), by->key_.get(), EVP_sha256());
    return made;
  }

  const Key key_;
  Certificate certificate_;
};

// Replaces a file's content atomically.
inline void ReplaceFile(const std::filesystem::path& path,
                        const std::string& content) {
  const std::string next = path.string() + ".next";
  std::ofstream(next) << content;
  std::filesystem::rename(next, path);
}

}  // namespace millrace::testing
