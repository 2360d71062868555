// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/group_secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "common/file/file.h"
#include "tests/support/test_directory.h"

namespace millrace::testing {
namespace {

using GroupSecretTest = DirectoryTest;

TEST_F(GroupSecretTest, IsTheBytesOfAFile) {
  const auto path = directory_ / "secret";
  const std::string bytes("\0 16 bytes, any\n", 16);
  ASSERT_TRUE(WriteNewFile(path, bytes).ok());
  const auto secret = ReadGroupSecret(path.string());
  ASSERT_TRUE(secret.ok()) << secret.status();
  EXPECT_EQ(*secret, bytes);
}

TEST_F(GroupSecretTest, RefusesWhatIsTooShort) {
  const auto path = directory_ / "secret";
  ASSERT_TRUE(WriteNewFile(path, "fifteen bytes..").ok());
  const absl::Status status = ReadGroupSecret(path.string()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(status.message().find("rendezvous_secret: "), 0u) << status;
  EXPECT_NE(status.message().find(
                " has 15 bytes; at least 16 are needed\nmake it with "),
            absl::string_view::npos)
      << status;
}

TEST_F(GroupSecretTest, NamesTheOptionOfAMissingFile) {
  const absl::Status status =
      ReadGroupSecret((directory_ / "absent").string()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_EQ(status.message().find("rendezvous_secret: "), 0u) << status;
}

TEST_F(GroupSecretTest, WarnsOfAFileThatOthersRead) {
  const auto path = directory_ / "secret";
  ASSERT_TRUE(WriteNewFile(path, "sixteen bytes...").ok());
  for (const auto& [mode, warns] :
       {std::pair(0600, false), std::pair(0640, true), std::pair(0604, true),
        std::pair(0622, false)}) {
    ASSERT_EQ(chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
    ::testing::internal::CaptureStdout();  // where spdlog writes in tests
    EXPECT_TRUE(ReadGroupSecret(path.string()).ok());
    const std::string log = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(log.find("other users can read the secret of this group; chmod "
                       "600 " +
                       path.string()) != std::string::npos,
              warns)
        << mode;
  }
}

}  // namespace
}  // namespace millrace::testing
