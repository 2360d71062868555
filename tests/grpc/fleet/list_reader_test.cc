// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/list_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<ListReader> ReaderOf(const std::string& list) {
  return std::make_unique<ListReader>(*AddressList::Parse(list));
}

// Reads once; returns the thread that called back.
pid_t Read(ListReader& reader, ListReader::Result& result) {
  pid_t thread = 0;
  Notification done;
  reader.Start([&](const ListReader::Result& read) {
    result = read;
    thread = gettid();
    done.Notify();
  });
  done.WaitForNotification();
  return thread;
}

TEST(ListReaderTest, ListsAreReadAtOnce) {
  ListReader::Result result;
  EXPECT_EQ(Read(*ReaderOf("a:1,b:2"), result), gettid());
  EXPECT_THAT(*result, ElementsAre("a:1", "b:2"));
}

TEST(ListReaderTest, OneThreadReadsFilesAndEndsWithTheReader) {
  const auto path = testing::TestDirectory("list_reader") / "servers";
  auto reader = ReaderOf("@" + path.string());
  ListReader::Result result;
  const pid_t thread = Read(*reader, result);
  EXPECT_NE(thread, gettid());
  EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
  for (const std::string address : {"a:1", "b:2", "c:3"}) {
    std::ofstream(path) << address << '\n';
    EXPECT_EQ(Read(*reader, result), thread);
    EXPECT_THAT(*result, ElementsAre(address));
  }
  reader.reset();
  // The system may need a moment to remove a joined thread.
  const std::string task = "/proc/self/task/" + std::to_string(thread);
  const SteadyTime soon = SteadyNow() + absl::Seconds(10);
  while (std::filesystem::exists(task) && SteadyNow() < soon) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(std::filesystem::exists(task));
}

// A pipe that nothing writes to blocks its reader, like a dead file system.
TEST(ListReaderTest, AHangingReadIsAbandoned) {
  const auto path = testing::TestDirectory("list_reader") / "servers";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto reader = ReaderOf("@" + path.string());
  reader->Start([](const ListReader::Result&) { ADD_FAILURE() << "called"; });
  // Opens when something reads the pipe; the read ends when it is closed.
  const std::ofstream no_answer(path);
  ASSERT_TRUE(no_answer.is_open());
  const SteadyTime start = SteadyNow();
  reader.reset();
  EXPECT_LT(SteadyNow() - start, absl::Seconds(20));
}

}  // namespace
}  // namespace millrace
