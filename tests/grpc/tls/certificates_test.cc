// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/base/status_lines.h"
#include "common/wire/error_info.h"
#include "tests/support/test_ca.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using testing::CertificatePem;
using testing::CertificateSpec;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::ReplaceFile;
using testing::TestCa;

constexpr absl::Duration kDay = absl::Hours(24);

class CertificatesTest : public testing::DirectoryTest {
 protected:
  // Options with these files.
  TlsOptions Files(const std::string& ca, const CertificatePem& own) {
    TlsOptions options;
    options.ca = Write("ca.pem", ca);
    options.cert = Write("cert.pem", own.certificate);
    options.key = Write("key.pem", own.key);
    return options;
  }
  std::string Write(const std::string& name, const std::string& content) {
    ReplaceFile(directory_ / name, content);
    return directory_ / name;
  }
  std::shared_ptr<const Certificates> Trusting(const std::string& ca,
                                               absl::Time now) {
    TlsOptions options;
    options.ca = Write("ca.pem", ca);
    options.clock = [now] { return now; };
    auto loaded = Certificates::Load(options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }

  // The error with which the options are refused.
  static std::string LoadError(const TlsOptions& options) {
    return std::string(Certificates::Load(options).status().message());
  }
  // Why a server that presents `chain` is refused; empty if it is not.
  std::string ServerError(const std::string& chain,
                          absl::Time now = absl::Now()) {
    const absl::Status status = Trusting(ca_.pem(), now)->ExplainServer(chain);
    EXPECT_TRUE(status.ok() || absl::IsUnauthenticated(status)) << status;
    return FirstLine(status);
  }

  const TestCa ca_{"our CA"};
};

TEST_F(CertificatesTest, LoadsAnIdentity) {
  CertificateSpec spec;
  spec.end = absl::FromUnixSeconds(absl::ToUnixSeconds(spec.end));
  const auto loaded = Certificates::Load(Files(ca_.pem(), ca_.Issue(spec)));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->not_after(), spec.end);
  EXPECT_THAT((*loaded)->identity(), HasSubstr("PRIVATE KEY"));
  EXPECT_THAT((*loaded)->DescribeOwn(), HasSubstr("CN=localhost"));
  EXPECT_TRUE((*loaded)->ExplainOwn().ok());
}

// A chain is invalid once any of its certificates has expired.
TEST_F(CertificatesTest, ExpiresWithTheFirstCertificateOfTheChain) {
  CertificateSpec spec;
  spec.end = absl::Now() + 20 * 365 * kDay;  // after the CA's
  CertificatePem own = ca_.Issue(spec);
  own.certificate += ca_.pem();
  const auto loaded = Certificates::Load(Files(ca_.pem(), own));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_LT((*loaded)->not_after(), absl::Now() + 11 * 365 * kDay);
  EXPECT_GT((*loaded)->not_after(), absl::Now() + 9 * 365 * kDay);
  spec.end = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now() + kDay));
  own = ca_.Issue(spec);
  own.certificate += ca_.pem();
  const auto brief = Certificates::Load(Files(ca_.pem(), own));
  ASSERT_TRUE(brief.ok()) << brief.status();
  EXPECT_EQ((*brief)->not_after(), spec.end);
}

TEST_F(CertificatesTest, NamesFilesThatCannotBeUsed) {
  const CertificatePem one = ca_.Issue({});
  const CertificatePem two = ca_.Issue({});
  EXPECT_THAT(LoadError(Files(ca_.pem(), {one.certificate, two.key})),
              HasSubstr("key.pem: does not match the certificate " +
                        (directory_ / "cert.pem").string()));
  EXPECT_THAT(
      LoadError(Files(ca_.pem(), {one.certificate.substr(0, 200), one.key})),
      HasSubstr("tls_cert " + (directory_ / "cert.pem").string() +
                ": does not contain a complete certificate"));
  EXPECT_THAT(LoadError(Files(ca_.pem(), {one.certificate, "no key"})),
              HasSubstr("key.pem: does not contain a complete key"));
  EXPECT_THAT(LoadError(Files("", one)),
              HasSubstr("ca.pem: does not contain a complete"));
  // A bundle whose second half is missing.
  EXPECT_THAT(LoadError(Files(ca_.pem() + ca_.pem().substr(0, 300), one)),
              HasSubstr("ca.pem: does not contain a complete"));

  TlsOptions missing = Files(ca_.pem(), one);
  missing.key = directory_ / "nothing.pem";
  EXPECT_THAT(LoadError(missing), HasSubstr("tls_key: cannot"));
  EXPECT_THAT(LoadError(missing), HasSubstr("nothing.pem"));
  missing.key = "";
  EXPECT_EQ(LoadError(missing), "tls_cert needs tls_key");
}

// OpenSSL's own PEM type also says what a certificate is trusted for.
TEST_F(CertificatesTest, CasAreOnlyPlainCertificates) {
  std::string other = TestCa("their CA").pem();
  for (size_t at = 0; (at = other.find(" CERT", at)) != other.npos; at += 9) {
    other.insert(at, " TRUSTED");
  }
  const auto loaded =
      Certificates::Load(Files(ca_.pem() + other, ca_.Issue({})));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->cas(), ca_.pem());
  EXPECT_THAT((*loaded)->client_roots(), EndsWith("-\n" + ca_.pem()));
  EXPECT_THAT(LoadError(Files(other, ca_.Issue({}))),
              HasSubstr("ca.pem: does not contain a complete"));
}

TEST_F(CertificatesTest, OwnValidityFollowsTheGivenClock) {
  TlsOptions options = Files(ca_.pem(), ca_.Issue({}));
  options.clock = [] { return absl::Now() + 31 * kDay; };
  EXPECT_THAT(LoadError(options), HasSubstr("cert.pem: expired at 20"));
  options.clock = [] { return absl::Now() - 2 * kDay; };
  EXPECT_THAT(LoadError(options),
              HasSubstr("cert.pem: is not valid before 20"));
  options.clock = [] { return absl::Now() + 30 * kDay - absl::Hours(1); };
  EXPECT_EQ(LoadError(options), "");
  // Only the CA is given.
  options.cert = options.key = "";
  options.clock = [] { return absl::Now() + 3651 * kDay; };
  EXPECT_THAT(LoadError(options), HasSubstr("ca.pem: expired at 20"));
}

TEST_F(CertificatesTest, ExplainsOnlyWhatIsRefused) {
  EXPECT_EQ(ServerError(ca_.Issue({}).certificate), "");
  EXPECT_EQ(ServerError(""), "certificate cannot be read");
}

TEST_F(CertificatesTest, ReportsADifferentCa) {
  const std::string other = TestCa("their CA").Issue({}).certificate;
  EXPECT_EQ(ServerError(other),
            "certificate \"CN=localhost\" (localhost, 127.0.0.1) is not signed "
            "by the CA in " +
                (directory_ / "ca.pem").string());
  // A CA with the same name as ours.
  EXPECT_THAT(ServerError(TestCa("our CA").Issue({}).certificate),
              HasSubstr("not signed by"));
  // A self-signed certificate.
  EXPECT_THAT(ServerError(TestCa("localhost").pem()),
              HasSubstr("not signed by"));
}

TEST_F(CertificatesTest, SaysWhichCertificateIsNotACa) {
  const TestCa client("client", &ca_, /*authority=*/false);
  EXPECT_THAT(ServerError(client.Issue({}).certificate + client.pem()),
              HasSubstr("\"CN=client\" (no names) is refused: invalid CA"));
}

TEST_F(CertificatesTest, FollowsAChainToTheCa) {
  const TestCa middle("middle", &ca_);
  const std::string leaf = middle.Issue({}).certificate;
  EXPECT_EQ(ServerError(leaf + middle.pem()), "");
  EXPECT_THAT(ServerError(leaf), HasSubstr("not signed"));
}

TEST_F(CertificatesTest, PeersValidityFollowsTheGivenClock) {
  const std::string pem = ca_.Issue({}).certificate;
  const X509Ptr leaf = ParsePeer(pem).value();
  const absl::Time now = absl::Now();
  EXPECT_EQ(ServerError(pem, now + 29 * kDay), "");
  EXPECT_TRUE(CheckTimes(leaf.get(), now + 29 * kDay).ok());
  EXPECT_THAT(ServerError(pem, now + 31 * kDay), HasSubstr("expired at 20"));
  EXPECT_EQ(ServerError(pem, now + 31 * kDay),
            FirstLine(CheckTimes(leaf.get(), now + 31 * kDay)));
  CertificateSpec spec;
  spec.start = now + kDay;
  EXPECT_THAT(ServerError(ca_.Issue(spec).certificate),
              HasSubstr("is not valid before 20"));
}

TEST_F(CertificatesTest, ReportsTheWrongPurpose) {
  CertificateSpec spec;
  spec.usage = "clientAuth";
  EXPECT_THAT(ServerError(ca_.Issue(spec).certificate), HasSubstr("purpose"));
}

TEST_F(CertificatesTest, HostsAreNamesOrAddressesOfTheCertificate) {
  const auto is_for = [this](const std::string& names,
                             const std::string& host) {
    CertificateSpec spec;
    spec.names = names;
    return IsFor(ParsePeer(ca_.Issue(spec).certificate)->get(), host);
  };
  const std::string names = "DNS:localhost,DNS:*.fleet.example,IP:127.0.0.1";
  for (const char* host : {"localhost", "s1.fleet.example", "127.0.0.1"}) {
    EXPECT_TRUE(is_for(names, host)) << host;
  }
  for (const char* host :
       {"elsewhere.example", "127.0.0.2", "a.s1.fleet.example"}) {
    EXPECT_FALSE(is_for(names, host)) << host;
  }
  EXPECT_TRUE(is_for("IP:::1", "0:0:0:0:0:0:0:1"));
  // Neither a common name nor a name like an address counts, nor does what is
  // before a zero byte: the last one is "localhost", that byte, and "no".
  EXPECT_FALSE(is_for("", "localhost"));
  EXPECT_FALSE(is_for("IP:10.0.0.7", "localhost"));
  EXPECT_FALSE(is_for("DNS:127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(is_for("DNS:*.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(is_for("DER:300e820c6c6f63616c686f7374006e6f", "localhost"));
}

TEST_F(CertificatesTest, NamesOfPeersCannotBreakLogs) {
  CertificateSpec spec;
  spec.name = "a\nb";
  spec.names = "DNS:" + std::string(300, 'x');
  const std::string error =
      ServerError(TestCa("their CA").Issue(spec).certificate);
  EXPECT_THAT(error, HasSubstr("not signed"));
  EXPECT_LT(error.size(), 500u);
}

TEST_F(CertificatesTest, ComparesEachKindOfName) {
  CertificateSpec spec;
  spec.name = "A Trainer";
  spec.names = "DNS:t1.Fleet.example,URI:spiffe://fleet/T1,IP:10.0.0.7";
  const X509Ptr leaf = ParsePeer(ca_.Issue(spec).certificate).value();
  for (const char* name : {"A Trainer", "T1.fleet.EXAMPLE", "*.fleet.example",
                           "spiffe://fleet/T1"}) {
    EXPECT_TRUE(CheckNames(leaf.get(), {"other", name}).ok()) << name;
  }
  for (const char* name : {"a trainer", "spiffe://fleet/t1", "10.0.0.7"}) {
    const absl::Status refused = CheckNames(leaf.get(), {name});
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << name;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("certificate \"CN=A Trainer\" (t1.Fleet.example, "
                          "spiffe://fleet/T1, 10.0.0.7) has no allowed name\n"
                          "allow one"));
  }
}

TEST_F(CertificatesTest, NamesDoNotEndAtAZeroByte) {
  CertificateSpec spec;
  // A list with one DNS name: "ok.example", a zero byte, and "no".
  spec.names = "DER:300f820d6f6b2e6578616d706c65006e6f";
  const X509Ptr leaf = ParsePeer(ca_.Issue(spec).certificate).value();
  EXPECT_THAT(std::string(CheckNames(leaf.get(), {"ok.example"}).message()),
              HasSubstr("(ok.example?no) has no allowed name"));
}

}  // namespace
}  // namespace millrace
