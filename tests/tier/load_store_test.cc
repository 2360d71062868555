// SPDX-License-Identifier: Apache-2.0
#include "common/tier/load_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/graph/store.h"
#include "tests/support/captured_log.h"
#include "tests/support/sampled.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// What of a store has been copied to memory.
struct Places {
  bool graph, features;
  friend bool operator==(const Places&, const Places&) = default;
};

Places PlacesOf(const Store& store) {
  Places places = {false, false};
  for (const NodeType& type : store.schema().node_types) {
    const auto loaded = [&](std::string_view column) {
      return store.FindLoaded(NodePath(0, type.name, column)) != nullptr;
    };
    places.graph |= loaded("original_id");
    places.features |= loaded("feature");
  }
  return places;
}

class LoadStoreTest : public ::testing::Test {
 protected:
  absl::StatusOr<LoadedStore> Load(const MemoryOptions& options) const {
    return LoadStore(store_.Open(), options);
  }

 private:
  const testing::TestStore store_{testing::RandomGraph(1), 2};
};

TEST_F(LoadStoreTest, CopiesWhatItIsAskedTo) {
  for (const MemoryTier graph : {MemoryTier::kMmap, MemoryTier::kRam}) {
    for (const MemoryTier features : {MemoryTier::kMmap, MemoryTier::kRam}) {
      const auto loaded = Load({.graph = graph, .features = features});
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(
          PlacesOf(*loaded->store),
          (Places{graph == MemoryTier::kRam, features == MemoryTier::kRam}));
      EXPECT_EQ(loaded->sampler, nullptr);
    }
  }
}

TEST_F(LoadStoreTest, SamplesOnADeviceOrSaysWhyNot) {
  for (const MemoryTier tier : {MemoryTier::kCuda, MemoryTier::kPinned}) {
    const auto loaded = Load({.graph = tier});
    if (loaded.ok()) {
      EXPECT_NE(loaded->sampler, nullptr);
      EXPECT_EQ(PlacesOf(*loaded->store).graph, tier == MemoryTier::kPinned);
      continue;
    }
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
    const std::string message(loaded.status().message());
    EXPECT_THAT(message, HasSubstr("CUDA"));
    EXPECT_THAT(message, HasSubstr("\n")) << "without advice";
  }
}

TEST_F(LoadStoreTest, ChoosesTheBestMemoryThereIs) {
  testing::CapturedLog log;
  const auto loaded = Load({.graph = MemoryTier::kAuto});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto on_device = Load({.graph = MemoryTier::kCuda});
  EXPECT_EQ(loaded->sampler != nullptr, on_device.ok());
  EXPECT_EQ(PlacesOf(*loaded->store).graph, !on_device.ok());
  if (on_device.ok()) return;
  const std::string message(on_device.status().message());
  EXPECT_THAT(log.text(),
              HasSubstr("memory not used content=graph memory=cuda why=\"" +
                        message.substr(0, message.find('\n'))));
  EXPECT_THAT(log.text(),
              HasSubstr("memory not used content=graph memory=pinned why="));
}

TEST_F(LoadStoreTest, LetsDevicesReadPinnedFeaturesForBatchesThatGoThere) {
  const auto loaded =
      Load({.features = MemoryTier::kPinned, .gpus_read_pinned = true});
  if (!loaded.ok()) {
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
    return;
  }
  EXPECT_TRUE(PlacesOf(*loaded->store).features);
  ASSERT_NE(loaded->features, nullptr);
  EXPECT_EQ(Load({.features = MemoryTier::kPinned})->features, nullptr);
}

TEST_F(LoadStoreTest, PinsFeaturesOrSaysWhyNot) {
  const auto loaded = Load({.features = MemoryTier::kPinned});
  if (loaded.ok()) {
    EXPECT_EQ(PlacesOf(*loaded->store), (Places{false, true}));
  } else {
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace millrace
