// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/wire/error_info.h"
#include "tests/support/test_ca.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using testing::CertificatePem;
using testing::CertificateSpec;
using ::testing::HasSubstr;
using testing::ReplaceFile;
using testing::TestCa;
using Peer = Certificates::Peer;

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
  std::shared_ptr<const Certificates> Trusting(const std::string& ca) {
    TlsOptions options;
    options.ca = Write("ca.pem", ca);
    auto loaded = Certificates::Load(options);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }

  // The error with which the options are refused.
  static std::string LoadError(const TlsOptions& options) {
    return std::string(Certificates::Load(options).status().message());
  }
  // The error with which a server's certificate is refused; empty if accepted.
  std::string PeerError(const std::string& leaf, const std::string& host,
                        absl::Time now = absl::Now(),
                        Peer peer = Peer::kServer) {
    const absl::Status status =
        Trusting(ca_.pem())->CheckPeer(peer, leaf, leaf, host, now);
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
  EXPECT_THAT((*loaded)->Describe(), HasSubstr("CN=localhost"));
  EXPECT_TRUE((*loaded)->CheckOwn(Peer::kServer, absl::Now()).ok());
}

TEST_F(CertificatesTest, NamesFilesThatCannotBeUsed) {
  const CertificatePem one = ca_.Issue({});
  const CertificatePem two = ca_.Issue({});
  EXPECT_THAT(LoadError(Files(ca_.pem(), {one.certificate, two.key})),
              HasSubstr("does not match --tls-cert " +
                        (directory_ / "cert.pem").string()));
  EXPECT_THAT(
      LoadError(Files(ca_.pem(), {one.certificate.substr(0, 200), one.key})),
      HasSubstr("--tls-cert " + (directory_ / "cert.pem").string() +
                " does not contain a complete certificate"));
  EXPECT_THAT(LoadError(Files(ca_.pem(), {one.certificate, "no key"})),
              HasSubstr("key.pem does not contain a complete key"));
  EXPECT_THAT(LoadError(Files("", one)),
              HasSubstr("ca.pem does not contain a complete"));
  // A bundle whose second half is missing.
  EXPECT_THAT(LoadError(Files(ca_.pem() + ca_.pem().substr(0, 300), one)),
              HasSubstr("ca.pem does not contain a complete"));

  TlsOptions missing = Files(ca_.pem(), one);
  missing.key = directory_ / "nothing.pem";
  EXPECT_THAT(LoadError(missing), HasSubstr("--tls-key: cannot"));
  EXPECT_THAT(LoadError(missing), HasSubstr("nothing.pem"));
  missing.key = "";
  EXPECT_THAT(LoadError(missing), HasSubstr("--tls-key is missing"));
}

TEST_F(CertificatesTest, OwnTimesAreThoseOfTheClock) {
  TlsOptions options = Files(ca_.pem(), ca_.Issue({}));
  options.clock = [] { return absl::Now() + 31 * kDay; };
  EXPECT_THAT(LoadError(options), HasSubstr("cert.pem expired at 20"));
  options.clock = [] { return absl::Now() - 2 * kDay; };
  EXPECT_THAT(LoadError(options), HasSubstr("cert.pem is not valid before 20"));
  options.clock = [] { return absl::Now() + 30 * kDay - absl::Hours(1); };
  EXPECT_EQ(LoadError(options), "");
  // Only the CA is given.
  options.cert = options.key = "";
  options.clock = [] { return absl::Now() + 3651 * kDay; };
  EXPECT_THAT(LoadError(options), HasSubstr("ca.pem expired at 20"));
}

TEST_F(CertificatesTest, TrustsCertificatesSignedByTheCa) {
  const std::string leaf = ca_.Issue({}).certificate;
  EXPECT_EQ(PeerError(leaf, "localhost"), "");
  EXPECT_EQ(PeerError(leaf, "127.0.0.1"), "");
  EXPECT_EQ(PeerError(leaf, ""), "");
  EXPECT_THAT(PeerError("", ""), HasSubstr("no certificate"));
}

TEST_F(CertificatesTest, RefusesOtherSigners) {
  const std::string other = TestCa("their CA").Issue({}).certificate;
  EXPECT_THAT(PeerError(other, "localhost"),
              HasSubstr("\"CN=localhost\" (localhost, 127.0.0.1) is not signed "
                        "by --tls-ca " +
                        (directory_ / "ca.pem").string()));
  // A CA with the same name as ours.
  EXPECT_THAT(PeerError(TestCa("our CA").Issue({}).certificate, "localhost"),
              HasSubstr("not signed by --tls-ca"));
  // A self-signed certificate.
  EXPECT_THAT(PeerError(TestCa("localhost").pem(), ""),
              HasSubstr("not signed by --tls-ca"));
}

TEST_F(CertificatesTest, RefusesCertificatesSignedByALeaf) {
  const TestCa client("client", &ca_, /*authority=*/false);
  const std::string forged = client.Issue({}).certificate;
  EXPECT_THAT(PeerError(forged + client.pem(), "localhost"),
              HasSubstr("\"CN=client\" (no names) is refused: invalid CA"));
}

TEST_F(CertificatesTest, FollowsAChainToTheCa) {
  const TestCa middle("middle", &ca_);
  const std::string leaf = middle.Issue({}).certificate;
  const auto trusting = Trusting(ca_.pem());
  EXPECT_TRUE(trusting
                  ->CheckPeer(Peer::kServer, leaf, leaf + middle.pem(),
                              "localhost", absl::Now())
                  .ok());
  EXPECT_THAT(PeerError(leaf, "localhost"), HasSubstr("not signed"));
}

TEST_F(CertificatesTest, RefusesOtherNames) {
  const std::string leaf = ca_.Issue({}).certificate;
  EXPECT_THAT(PeerError(leaf, "elsewhere.example"),
              HasSubstr("is not for elsewhere.example"));
  EXPECT_THAT(PeerError(leaf, "127.0.0.2"), HasSubstr("is not for 127.0.0.2"));
  // A common name does not count as an address.
  CertificateSpec bare;
  bare.names = "";
  EXPECT_THAT(PeerError(ca_.Issue(bare).certificate, "localhost"),
              HasSubstr("(no names) is not for localhost"));
}

TEST_F(CertificatesTest, PeersTimesAreThoseOfTheClock) {
  const std::string leaf = ca_.Issue({}).certificate;
  EXPECT_EQ(PeerError(leaf, "localhost", absl::Now() + 29 * kDay), "");
  EXPECT_THAT(PeerError(leaf, "localhost", absl::Now() + 31 * kDay),
              HasSubstr("expired at 20"));
  EXPECT_THAT(PeerError(leaf, "localhost", absl::Now() - 2 * kDay),
              HasSubstr("is not valid before 20"));
}

TEST_F(CertificatesTest, RefusesOtherPurposes) {
  CertificateSpec spec;
  spec.usage = "clientAuth";
  const std::string client = ca_.Issue(spec).certificate;
  EXPECT_EQ(PeerError(client, "", absl::Now(), Peer::kClient), "");
  EXPECT_THAT(PeerError(client, "", absl::Now(), Peer::kServer),
              HasSubstr("purpose"));
}

TEST_F(CertificatesTest, NamesOfPeersCannotBreakLogs) {
  CertificateSpec spec;
  spec.name = "a\nb";
  spec.names = "DNS:" + std::string(300, 'x');
  const std::string error =
      PeerError(TestCa("their CA").Issue(spec).certificate, "");
  EXPECT_THAT(error, HasSubstr("not signed"));
  EXPECT_LT(error.size(), 500u);
}

TEST_F(CertificatesTest, ComparesEachKindOfName) {
  CertificateSpec spec;
  spec.name = "A Trainer";
  spec.names = "DNS:t1.Fleet.example,URI:spiffe://fleet/T1,IP:10.0.0.7";
  const std::string leaf = ca_.Issue(spec).certificate;
  for (const char* name : {"A Trainer", "T1.fleet.EXAMPLE", "*.fleet.example",
                           "spiffe://fleet/T1"}) {
    EXPECT_TRUE(CheckNames({"other", name}, leaf).ok()) << name;
  }
  for (const char* name : {"a trainer", "spiffe://fleet/t1", "10.0.0.7"}) {
    const absl::Status refused = CheckNames({name}, leaf);
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << name;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("certificate \"CN=A Trainer\" (t1.Fleet.example, "
                          "spiffe://fleet/T1, 10.0.0.7) has no name of "
                          "--tls-allow\nadd one"));
  }
}

TEST_F(CertificatesTest, NamesDoNotEndAtAZeroByte) {
  CertificateSpec spec;
  // A list with one DNS name: "ok.example", a zero byte, and "no".
  spec.names = "DER:300f820d6f6b2e6578616d706c65006e6f";
  const std::string leaf = ca_.Issue(spec).certificate;
  EXPECT_THAT(std::string(CheckNames({"ok.example"}, leaf).message()),
              HasSubstr("(ok.example?no) has no name of --tls-allow"));
}

}  // namespace
}  // namespace millrace
