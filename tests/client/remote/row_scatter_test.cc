// SPDX-License-Identifier: Apache-2.0
#include "client/remote/row_scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/stream_layout.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pieces = std::vector<std::span<const std::byte>>;

constexpr float kUntouched = -1;

// Three rows of two numbers for rows 4, 0 and 3 of five.
class RowScatterTest : public ::testing::Test {
 protected:
  RowScatterTest()
      : target_(Array::Adopt(std::vector<float>(10, kUntouched), {5, 2})),
        scatter_({4, 0, 3}, target_) {
    layout_.Append(ArrayKind::kRows, 0, DType::kFloat32, {3, 2});
  }

  FrameHeader First() const {
    FrameHeader header;
    header.stream = layout_;
    return header;
  }

  std::span<const std::byte> Bytes(size_t begin, size_t end) const {
    return std::as_bytes(std::span(rows_)).subspan(begin, end - begin);
  }

  absl::Status Take(const FrameHeader& header, Pieces pieces) {
    return scatter_.Take(header, pieces);
  }

  void ExpectAll() const {
    EXPECT_EQ(scatter_.CheckComplete(), absl::OkStatus());
    EXPECT_THAT(target_.As<float>(),
                ElementsAre(3, 4, kUntouched, kUntouched, kUntouched,
                            kUntouched, 5, 6, 1, 2));
  }

  const std::vector<float> rows_ = {1, 2, 3, 4, 5, 6};
  StreamLayout layout_;
  Array target_;
  RowScatter scatter_;
};

TEST_F(RowScatterTest, PutsRowsInTheirPlaces) {
  ASSERT_TRUE(Take(First(), {Bytes(0, 24)}).ok());
  ExpectAll();
}

TEST_F(RowScatterTest, TakesRowsThatAreCutAnywhere) {
  for (size_t cut = 1; cut < 24; ++cut) {
    RowScatter scatter({4, 0, 3}, target_);
    ASSERT_TRUE(scatter.Take(First(), Pieces{Bytes(0, cut)}).ok());
    EXPECT_TRUE(absl::IsInternal(scatter.CheckComplete())) << cut;
    const Pieces rest = {Bytes(cut, 24)};
    ASSERT_TRUE(scatter.Take({.offset = cut, .stream = {}}, rest).ok());
    EXPECT_TRUE(scatter.CheckComplete().ok()) << cut;
  }
  ASSERT_TRUE(
      Take(First(), {Bytes(0, 5), Bytes(5, 5), Bytes(5, 23), Bytes(23, 24)})
          .ok());
  ExpectAll();
}

TEST_F(RowScatterTest, SaysHowManyBytesAreMissing) {
  ASSERT_TRUE(Take(First(), {Bytes(0, 16)}).ok());
  EXPECT_THAT(std::string(scatter_.CheckComplete().message()),
              HasSubstr("16 of 24 bytes"));
}

TEST_F(RowScatterTest, RefusesAFrameThatIsNotTheNext) {
  ASSERT_TRUE(Take(First(), {Bytes(0, 8)}).ok());
  for (const uint64_t offset : {0, 7, 16}) {
    const absl::Status status =
        Take({.offset = offset, .stream = {}}, {Bytes(8, 24)});
    EXPECT_TRUE(absl::IsInternal(status)) << offset << ": " << status;
  }
  ASSERT_TRUE(Take({.offset = 8, .stream = {}}, {Bytes(8, 24)}).ok());
  ExpectAll();
}

TEST_F(RowScatterTest, RefusesMoreRowsThanWereAskedFor) {
  ASSERT_TRUE(Take(First(), {Bytes(0, 24)}).ok());
  const absl::Status status = Take({.offset = 24, .stream = {}}, {Bytes(0, 1)});
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more rows"));
  ExpectAll();
}

TEST_F(RowScatterTest, RefusesOtherRowsThanWereAskedFor) {
  const auto expect_refusal = [this](StreamLayout layout) {
    layout_ = std::move(layout);
    const absl::Status status = Take(First(), {Bytes(0, 8)});
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("different dtype or number"));
  };
  const auto layout_of = [](ArrayKind kind, DType dtype, int64_t rows) {
    StreamLayout layout;
    layout.Append(kind, 0, dtype, {rows, 2});
    return layout;
  };
  expect_refusal(layout_of(ArrayKind::kRows, DType::kFloat32, 2));
  expect_refusal(layout_of(ArrayKind::kRows, DType::kFloat32, 4));
  expect_refusal(layout_of(ArrayKind::kRows, DType::kInt32, 3));
  expect_refusal(layout_of(ArrayKind::kNodeFeature, DType::kFloat32, 3));
  expect_refusal(StreamLayout());
  StreamLayout two = layout_of(ArrayKind::kRows, DType::kFloat32, 3);
  two.Append(ArrayKind::kRows, 0, DType::kFloat32, {0, 2});
  expect_refusal(two);
  const absl::Status none = Take(FrameHeader(), {Bytes(0, 8)});
  EXPECT_TRUE(absl::IsInternal(none)) << none;
  EXPECT_THAT(target_.As<float>(), ::testing::Each(kUntouched));
}

}  // namespace
}  // namespace millrace
