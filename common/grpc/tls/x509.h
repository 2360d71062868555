// SPDX-License-Identifier: Apache-2.0
// X.509 certificates of OpenSSL: reading them, and saying what is in them and
// what is wrong with them.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/grpc/tls/allowed_names.h"

namespace millrace {

template <auto Free>
struct OpensslDeleter {
  void operator()(auto* object) const { Free(object); }
};
template <typename T, auto Free>
using OpensslPtr = std::unique_ptr<T, OpensslDeleter<Free>>;
using BioPtr = OpensslPtr<BIO, BIO_free>;
using X509Ptr = OpensslPtr<X509, X509_free>;

// A BIO that reads `text`, which must outlive it.
BioPtr Reader(std::string_view text);
// What was written to a memory BIO.
std::string Content(BIO* bio);

// The certificates among the PEM blocks of `text`; empty if a block is damaged.
std::vector<X509Ptr> ParseCertificates(std::string_view text);
// The first of them, which a peer has shown. UNAUTHENTICATED: there is none.
absl::StatusOr<X509Ptr> ParsePeer(std::string_view text);

absl::Time ExpiryOf(const X509* certificate);

std::string PrintTime(absl::Time time);
// `certificate "SUBJECT" (NAME, NAME)`, for messages. All of it is printable,
// whatever a peer has put there.
std::string Describe(const X509* certificate);
// "expired at TIME" or "is not valid before TIME"; empty if it is valid at
// `now`.
std::string TimeProblem(const X509* certificate, absl::Time now);

// Whether it is for `host`, a DNS name or an IP address.
bool IsFor(X509* certificate, const std::string& host);

// UNAUTHENTICATED: it is not valid at `now`, or has no name in `allow`. Says
// so, and on a second line what to do.
absl::Status CheckTimes(const X509* certificate, absl::Time now);
absl::Status CheckNames(const X509* certificate,
                        const std::vector<std::string>& allow);

// Says why X509_verify_cert() failed, and on a second line what to do. `ca`
// names the CAs that were trusted.
absl::Status WhyRefused(X509_STORE_CTX* context, std::string_view ca,
                        absl::Time now);

}  // namespace millrace
