// SPDX-License-Identifier: Apache-2.0
#include "common/file/memory_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/file/file.h"

namespace millrace {
namespace {

TEST(MemoryFileTest, HasTheLastContentUnderOnePath) {
  MemoryFile file;
  EXPECT_EQ(file.path(), "");
  ASSERT_TRUE(file.Replace("one").ok());
  const std::string path = file.path();
  EXPECT_EQ(ReadFile(path, 100).value(), "one");
  // Readers of the old content keep it.
  uint64_t size = 0;
  const auto reader = OpenForReading(path, &size);
  ASSERT_TRUE(file.Replace("another").ok());
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(ReadFile(path, 100).value(), "another");
  EXPECT_EQ(size, 3u);
  ASSERT_TRUE(file.Replace("").ok());
  EXPECT_EQ(ReadFile(path, 100).value(), "");
}

TEST(MemoryFileTest, IsGoneWithItsObject) {
  std::string path;
  {
    MemoryFile file;
    ASSERT_TRUE(file.Replace("secret").ok());
    path = file.path();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace millrace
