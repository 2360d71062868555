// SPDX-License-Identifier: Apache-2.0
// A test must add ../support/store_builder.cc to its SOURCES and
// millrace::graph to its LINK.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/store.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {

// A graph's store on disk for as long as this object lives. Stores that were
// opened stay valid longer, since they are mapped.
class TestStore {
 public:
  // Writes `graph` as a dataset if `parts` is 0, otherwise as that many
  // partitions.
  explicit TestStore(const TestGraph& graph, int parts = 0)
      : directory_(TestDirectory("store-" + std::to_string(made_++))) {
    const absl::Status written = WriteGraph(graph, parts, path());
    EXPECT_TRUE(written.ok()) << written;
  }
  ~TestStore() { std::filesystem::remove_all(directory_); }
  TestStore(const TestStore&) = delete;
  TestStore& operator=(const TestStore&) = delete;

  // Throws if the store is damaged, because no test can go on then.
  std::unique_ptr<Store> Open(std::vector<int> partitions = {}) const {
    return Store::Open(path(), std::move(partitions)).value();
  }

  std::filesystem::path path() const { return directory_ / "store"; }
  // Holds the store, and has room for a test's other files.
  const std::filesystem::path& directory() const { return directory_; }

 private:
  inline static int made_ = 0;

  const std::filesystem::path directory_;
};

}  // namespace millrace::testing
