// SPDX-License-Identifier: Apache-2.0
#include "server/scrubber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "tests/support/captured_log.h"
#include "tests/support/eventually.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr uint64_t kRate = 1 << 30;

// A server's partition 0 of two, loaded into memory completely.
class LoadedStoreTest : public ::testing::Test {
 protected:
  LoadedStoreTest() { Load(); }

  // Loads what the files contain now.
  void Load() {
    auto store = stored_.Open({0});
    for (const auto content :
         {Store::Content::kGraph, Store::Content::kFeatures}) {
      EXPECT_EQ(store->LoadIntoMemory(content), absl::OkStatus());
    }
    store_ = std::move(store);
  }

  // How many bytes of partition 0 are read, once loaded in memory and once on
  // disk.
  uint64_t BytesOfARound() const {
    uint64_t bytes = 0;
    for (const FileInfo& file : store_->manifest().files) {
      if (file.path.starts_with("part-00001")) continue;
      const bool loaded = store_->FindLoaded(file.path) != nullptr;
      bytes += loaded ? 2 * file.bytes : file.bytes;
    }
    return bytes;
  }

  // Scrubs once and returns the damaged partitions. The log is in `log_`.
  std::map<int, std::string> Scrub() {
    const uint64_t bytes = BytesOfARound();
    testing::CapturedLog log;
    ServedStore served(store_);
    Damage damage(path_, {0});
    Scrubber scrubber(served, kRate, damage);
    const SteadyTime end = SteadyNow() + absl::Minutes(1);
    while (scrubber.bytes() < bytes && !damage.AreAllDamaged()) {
      if (SteadyNow() > end) {
        ADD_FAILURE() << "scrubbed " << scrubber.bytes() << " of " << bytes
                      << " bytes in a minute";
        break;
      }
      std::this_thread::yield();
    }
    scrubber.Stop();
    log_ = log.text();
    return damage.damaged();
  }

  const testing::TestStore stored_{testing::SmallGraph(), 2};
  const fs::path path_ = stored_.path();
  // A file that is not read last.
  const std::string features_ = NodePath(0, "node", "feature");
  std::shared_ptr<Store> store_;
  std::string log_;
};

TEST_F(LoadedStoreTest, IsIntact) { EXPECT_THAT(Scrub(), IsEmpty()); }

TEST_F(LoadedStoreTest, ReadsNoFilesOfOtherPartitions) {
  testing::CapturedLog log;
  ServedStore served(store_);
  Damage damage(path_, {0});
  Scrubber scrubber(served, kRate, damage);
  EXPECT_TRUE(testing::Eventually([&log] {
    return log.text().find("all files read") != std::string::npos;
  }));
  scrubber.Stop();
  EXPECT_EQ(scrubber.rounds(), 1u);
  EXPECT_EQ(scrubber.damaged_files(), 0u);
  EXPECT_THAT(
      log.text(),
      AllOf(HasSubstr(StrCat("all files read bytes=", BytesOfARound(), " ")),
            HasSubstr(" damaged_files=0\n")));
}

TEST_F(LoadedStoreTest, CountsDamagedFiles) {
  for (const std::string& file :
       {features_, SplitPath("node", "train", "id")}) {
    std::fstream(path_ / file) << "not a .npy file";
  }
  testing::CapturedLog log;
  ServedStore served(store_);
  Damage damage(path_, {0});
  Scrubber scrubber(served, kRate, damage);
  EXPECT_TRUE(testing::Eventually([&] { return scrubber.rounds() == 1; }));
  EXPECT_EQ(scrubber.damaged_files(), 2u);
}

TEST_F(LoadedStoreTest, DetectsDamageInMemory) {
  const Array& features = store_->FindLoaded(features_)->data;
  ASSERT_EQ(features.data(), store_->partition(0)->nodes[0].feature.data());
  *const_cast<std::byte*>(features.data()) ^= std::byte{1};
  EXPECT_THAT(Scrub(), ElementsAre(Pair(0, StartsWith(features_ + " "))));
}

TEST_F(LoadedStoreTest, IsNotDamagedByFilesThatAreNoLongerRead) {
  std::fstream(path_ / features_) << "not a .npy file";
  EXPECT_THAT(Scrub(), IsEmpty());
  EXPECT_THAT(log_, HasSubstr((path_ / features_).string()));
  EXPECT_THAT(log_,
              HasSubstr("restore it from a copy before a restart reads it"));
}

TEST_F(LoadedStoreTest, IsDamagedByFilesThatWereDamagedWhenLoaded) {
  std::fstream file(path_ / features_);
  file.seekp(-1, std::ios::end).put('x');
  file.close();
  Load();
  EXPECT_THAT(Scrub(), ElementsAre(Pair(0, StartsWith(features_ + " "))));
  EXPECT_THAT(log_, Not(HasSubstr("the server goes on")));
}

TEST_F(LoadedStoreTest, DetectsDamageInMappedFiles) {
  const std::string split = SplitPath("node", "train", "id");
  std::fstream(path_ / split) << "not a .npy file";
  EXPECT_THAT(Scrub(), ElementsAre(Pair(0, StartsWith(split + " "))));
}

}  // namespace
}  // namespace millrace
