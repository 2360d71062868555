// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/message_signer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace millrace::testing {
namespace {

constexpr char kSecret[] = "sixteen bytes or more";

TEST(MessageSignerTest, VerifiesWhatItSigned) {
  const MessageSigner signer(kSecret, "run");
  for (const std::string& message :
       {std::string(), std::string("a message"), std::string("\0\n\xff", 3)}) {
    EXPECT_EQ(signer.Verify("key", signer.Sign("key", message)), message);
  }
}

// The expected value was computed with Python's hmac.
TEST(MessageSignerTest, SignsWithHmacSha256) {
  EXPECT_EQ(absl::BytesToHexString(
                MessageSigner(kSecret, "run").Sign("key", "message")),
            absl::StrCat("0e0e5b092a07d2aa5df81b4d3947a446"
                         "2a87c4bc5a8a52b3b1d4deb3dad8cfbb",
                         absl::BytesToHexString("message")));
}

TEST(MessageSignerTest, RefusesAMessageThatWasChanged) {
  const MessageSigner signer(kSecret, "run");
  const std::string value = signer.Sign("key", "message");
  for (size_t i = 0; i < value.size(); ++i) {
    std::string changed = value;
    changed[i] ^= 1;
    EXPECT_FALSE(signer.Verify("key", changed).has_value()) << i;
  }
  for (size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(signer.Verify("key", value.substr(0, size)).has_value());
  }
}

TEST(MessageSignerTest, RefusesAMessageForAnotherKeyRunOrSecret) {
  const MessageSigner signer(kSecret, "run");
  EXPECT_FALSE(
      signer.Verify("other", signer.Sign("key", "message")).has_value());
  for (const MessageSigner& other :
       {MessageSigner(kSecret, "another run"), MessageSigner(kSecret, ""),
        MessageSigner("another secret", "run"), MessageSigner("", "run")}) {
    EXPECT_FALSE(
        signer.Verify("key", other.Sign("key", "message")).has_value());
  }
  // The boundaries between the texts matter.
  EXPECT_FALSE(
      MessageSigner(kSecret, "ab")
          .Verify("c", MessageSigner(kSecret, "a").Sign("bc", "message"))
          .has_value());
}

TEST(MessageSignerTest, WithoutASecretAnyoneCanSign) {
  EXPECT_EQ(MessageSigner("", "run").Verify(
                "key", MessageSigner("", "run").Sign("key", "a")),
            "a");
}

TEST(MessageSignerTest, RandomBytesDiffer) {
  EXPECT_EQ(RandomBytes(16).size(), 16u);
  EXPECT_NE(RandomBytes(16), RandomBytes(16));
}

}  // namespace
}  // namespace millrace::testing
