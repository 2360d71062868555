// SPDX-License-Identifier: Apache-2.0
#include "common/tier/until_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/sample/gather.h"
#include "common/sample/resolve_job.h"
#include "tests/support/captured_log.h"
#include "tests/support/known_memory.h"
#include "tests/support/sampled.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr char kFailed[] = "CUDA device 0 has failed";

// Devices that return `status`, or what they are asked for if it is OK, and
// count their calls.
struct Device {
  absl::Status status;
  int calls = 0;
};

class FakeSampler final : public TopologySampler {
 public:
  explicit FakeSampler(Device& device) : device_(device) {}
  absl::StatusOr<std::optional<Batch>> Sample(const Store&, const ResolvedJob&,
                                              const TopologyRequest&,
                                              const ResolvedSeeds&,
                                              const Reserve&) override {
    ++device_.calls;
    if (!device_.status.ok()) return device_.status;
    return Batch();
  }

 private:
  Device& device_;
};

class FakeDrawer final : public NeighborDrawer {
 public:
  explicit FakeDrawer(Device& device) : device_(device) {}
  absl::StatusOr<bool> Draw(const Store&, int, const DrawContext&,
                            const Frontier&, Picks&) override {
    ++device_.calls;
    if (!device_.status.ok()) return device_.status;
    return true;
  }

 private:
  Device& device_;
};

// Returns an array on GPU 3 without rows.
class FakeRows final : public FeatureRows {
 public:
  explicit FakeRows(Device& device) : device_(device) {}
  absl::StatusOr<Array> GatherNodes(TypeIndex, std::span<const uint64_t>,
                                    ArrayMemory*) override {
    return Rows();
  }
  absl::StatusOr<Array> GatherEdges(RelationIndex, std::span<const uint32_t>,
                                    std::span<const uint64_t>,
                                    ArrayMemory*) override {
    return Rows();
  }
  FeatureRowCounts counts() const override { return {1, 2}; }

 private:
  absl::StatusOr<Array> Rows() {
    ++device_.calls;
    if (!device_.status.ok()) return device_.status;
    return Array::Borrow(DType::kFloat32, {0, 4}, nullptr, nullptr, 3);
  }

  Device& device_;
};

class UntilFailureTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::optional<Batch>> Sample(TopologySampler& sampler) const {
    const ResolvedJob job =
        ResolveJob(testing::ExplicitJob({2}, "item"), store_->manifest())
            .value();
    return sampler.Sample(*store_, job, {}, {}, nullptr);
  }
  absl::StatusOr<bool> Draw(NeighborDrawer& drawer) const {
    Picks picks;
    return drawer.Draw(*store_, 0, {}, {}, picks);
  }
  void Fail() { device_.status = absl::UnavailableError(kFailed); }

  const std::shared_ptr<const Store> store_ =
      testing::TestStore(testing::RandomGraph(3), 2).Open();
  Device device_;
};

TEST_F(UntilFailureTest, SamplesOnTheDeviceUntilItFails) {
  testing::CapturedLog log;
  const auto failure = std::make_shared<DeviceFailure>();
  SamplerUntilFailure sampler(std::make_unique<FakeSampler>(device_), failure);
  DrawerUntilFailure drawer(std::make_unique<FakeDrawer>(device_), failure);
  EXPECT_TRUE(Sample(sampler).value().has_value());
  EXPECT_TRUE(Draw(drawer).value());
  Fail();
  EXPECT_FALSE(Sample(sampler).value().has_value());
  EXPECT_EQ(device_.calls, 3);
  device_.status = absl::OkStatus();
  EXPECT_FALSE(Sample(sampler).value().has_value());
  EXPECT_FALSE(Draw(drawer).value());
  EXPECT_EQ(device_.calls, 3) << "a device that has failed is not used again";
  const std::string line =
      "a GPU has failed: from now on the CPU does its work error=\"" +
      std::string(kFailed);
  const size_t at = log.text().find(line);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(log.text().find(line, at + 1), std::string::npos) << log.text();
}

TEST_F(UntilFailureTest, PassesOtherErrorsOn) {
  const auto failure = std::make_shared<DeviceFailure>();
  SamplerUntilFailure sampler(std::make_unique<FakeSampler>(device_), failure);
  DrawerUntilFailure drawer(std::make_unique<FakeDrawer>(device_), failure);
  device_.status = absl::FailedPreconditionError("too large");
  EXPECT_EQ(Sample(sampler).status(), device_.status);
  EXPECT_EQ(Draw(drawer).status(), device_.status);
  EXPECT_FALSE(failure->noted());
}

TEST_F(UntilFailureTest, ReadsTheStoresRowsOnceTheDeviceHasFailed) {
  RowsUntilFailure rows(store_, std::make_shared<FakeRows>(device_),
                        std::make_shared<DeviceFailure>());
  const std::vector<uint64_t> ids = {3, 0, 3};
  TypeIndex type = 0;
  while (!store_->schema().node_types.at(type).feature.present()) ++type;
  testing::KnownMemory memory(3);
  EXPECT_EQ(rows.GatherNodes(type, ids, &memory)->device(), 3);
  EXPECT_EQ(rows.counts().gpu_pinned, 2);
  EXPECT_EQ(rows.counts().cpu, 0);
  Fail();
  const ColumnSpec& spec = store_->schema().node_types.at(type).feature;
  std::vector<std::byte> expected(ids.size() * spec.row_bytes());
  ASSERT_TRUE(
      GatherRows(*store_, type, NodeColumn::kFeature, ids, expected.data())
          .ok());
  for (int i = 0; i < 2; ++i) {
    const auto got = rows.GatherNodes(type, ids, &memory);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(memory.Owns(got->data())) << "on the host";
    EXPECT_EQ(got->dtype(), spec.dtype);
    ASSERT_EQ(got->total_bytes(), expected.size());
    EXPECT_EQ(std::memcmp(got->data(), expected.data(), expected.size()), 0);
  }
  EXPECT_EQ(device_.calls, 2);
  EXPECT_EQ(rows.counts().cpu, 6);
}

TEST_F(UntilFailureTest, ReadsTheStoresEdgeRowsOnceTheDeviceHasFailed) {
  RowsUntilFailure rows(store_, std::make_shared<FakeRows>(device_),
                        std::make_shared<DeviceFailure>());
  Fail();
  for (size_t r = 0; r < store_->schema().relations.size(); ++r) {
    const Relation& relation = store_->schema().relations[r];
    if (!relation.feature.present()) continue;
    const std::vector<uint32_t> parts = {1, 0};
    const std::vector<uint64_t> numbers = {0, 1};
    std::vector<std::byte> expected(2 * relation.feature.row_bytes());
    const auto index = static_cast<RelationIndex>(r);
    ASSERT_TRUE(
        GatherEdgeRows(*store_, index, parts, numbers, expected.data()).ok());
    const auto got = rows.GatherEdges(index, parts, numbers, nullptr);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->total_bytes(), expected.size());
    EXPECT_EQ(std::memcmp(got->data(), expected.data(), expected.size()), 0);
    EXPECT_EQ(rows.counts().cpu, 2);
    return;
  }
  FAIL() << "no relation has features";
}

}  // namespace
}  // namespace millrace
