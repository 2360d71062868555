// SPDX-License-Identifier: Apache-2.0
// A separate directory for each test of a fixture.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace millrace::testing {

// A fixture whose `directory_` is empty when a test starts and is removed
// afterwards. It is in memory if possible, because writers fsync every file.
class DirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::filesystem::path memory = "/dev/shm";
    directory_ = (access(memory.c_str(), W_OK) == 0
                      ? memory
                      : std::filesystem::temp_directory_path()) /
                 ("millrace-test-" + std::to_string(getpid()) + "-" +
                  std::string(info->name()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

}  // namespace millrace::testing
