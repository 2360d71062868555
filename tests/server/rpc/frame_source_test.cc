// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/frame_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/grpc/frames.h"
#include "common/sample/gather.h"
#include "tests/support/fake_feature_rows.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

constexpr TypeIndex kItemType = 1;
constexpr RelationIndex kUserBuysItem = 0;
// Its rows take two frames.
constexpr size_t kRows = 60000;

// The features of a graph, framed as they are in the store, or where a
// FeatureRows reads them.
class FrameSourceTest : public ::testing::Test {
 protected:
  FrameSourceTest()
      : store_(testing::TestStore(testing::RandomGraph(3), 2).Open()),
        features_(store_) {}

  struct Stream {
    std::vector<std::byte> bytes;
    std::vector<ReceivedFrame> frames;
  };

  // Frames rows of `part`, which has no ids yet.
  absl::StatusOr<Stream> Frame(StreamPart part, const ColumnSpec& spec,
                               FeatureRows* features) const {
    StreamLayout layout;
    layout.Append(ArrayKind::kRows, 0, spec.dtype, spec.ShapeOf(kRows));
    part.ids = [](size_t first, std::span<uint64_t> ids) {
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = (first + i) % 13;
    };
    FrameSource source({*store_, features, cpu_rows_}, std::move(layout),
                       {std::move(part)});
    Stream stream;
    while (true) {
      auto frame = source.Next();
      if (!frame.ok()) return frame.status();
      if (!frame->has_value()) return stream;
      stream.frames.push_back(ReceivedFrame::Parse(**frame).value());
      for (const auto& piece : stream.frames.back().payload()) {
        stream.bytes.insert(stream.bytes.end(), piece.begin(), piece.end());
      }
    }
  }

  // Whether all payload is, or none of it, in blocks of `features_`.
  bool Borrows(const Stream& stream, bool all) const {
    return std::ranges::all_of(stream.frames, [&](const ReceivedFrame& frame) {
      return std::ranges::all_of(
          frame.payload(), [&](std::span<const std::byte> piece) {
            return (features_.Owns(piece.data()) &&
                    features_.Owns(&piece.back())) == all;
          });
    });
  }

  // The stream is that of the store.
  void ExpectSame(const StreamPart& part, const ColumnSpec& spec,
                  bool borrows) {
    const auto expected = Frame(part, spec, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_EQ(expected->bytes.size(), kRows * spec.row_bytes());
    const auto stream = Frame(part, spec, &features_);
    ASSERT_TRUE(stream.ok()) << stream.status();
    EXPECT_EQ(stream->bytes, expected->bytes);
    EXPECT_TRUE(Borrows(*stream, borrows));
  }

  const ColumnSpec& item_feature() const {
    return store_->schema().node_types[kItemType].feature;
  }

  const std::shared_ptr<const Store> store_;
  testing::FakeFeatureRows features_;
  mutable std::atomic<uint64_t> cpu_rows_ = 0;
};

TEST_F(FrameSourceTest, FramesBorrowTheMemoryOfFeatureRows) {
  StreamPart part;
  part.type = kItemType;
  ExpectSame(part, item_feature(), /*borrows=*/true);
  EXPECT_EQ(features_.counts().gpu, kRows);
  EXPECT_EQ(cpu_rows_, kRows) << "of the store";
  // The frames have been freed.
  EXPECT_EQ(features_.block_count(), 0);
}

TEST_F(FrameSourceTest, CastsIntoMemoryOfItsOwn) {
  StreamPart part;
  part.type = kItemType;
  ColumnSpec spec = item_feature();
  spec.dtype = DType::kFloat16;
  ExpectSame(part, spec, /*borrows=*/false);
  EXPECT_EQ(features_.counts().gpu, kRows);
  EXPECT_EQ(cpu_rows_, kRows) << "of the store";
}

TEST_F(FrameSourceTest, ReadsFeaturesOfEdges) {
  StreamPart part;
  part.edge_relation = kUserBuysItem;
  part.edge_part = 1;
  ExpectSame(part, store_->schema().relations[kUserBuysItem].feature,
             /*borrows=*/true);
  EXPECT_EQ(features_.counts().gpu, kRows);
  EXPECT_EQ(cpu_rows_, kRows) << "of the store";
}

TEST_F(FrameSourceTest, ReadsOtherColumnsInTheStore) {
  StreamPart part;
  part.type = kItemType;
  part.column = NodeColumn::kLabel;
  ExpectSame(part, store_->schema().node_types[kItemType].label,
             /*borrows=*/false);
  EXPECT_EQ(features_.counts().gpu, 0);
  EXPECT_EQ(cpu_rows_, 0) << "labels are not features";
}

TEST_F(FrameSourceTest, PassesTheErrorsOfFeatureRows) {
  const absl::Status error = absl::InternalError("the device has failed");
  features_.FailWith(error);
  StreamPart part;
  part.type = kItemType;
  EXPECT_EQ(Frame(part, item_feature(), &features_).status(), error);
  part.edge_relation = kUserBuysItem;
  EXPECT_EQ(
      Frame(part, store_->schema().relations[kUserBuysItem].feature, &features_)
          .status(),
      error);
}

}  // namespace
}  // namespace millrace
