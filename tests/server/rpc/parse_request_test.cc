// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/parse_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <string>

#include "sampler.pb.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

::grpc::ByteBuffer BytesOf(const std::string& text) {
  const ::grpc::Slice slice(text);
  return {&slice, 1};
}

template <typename Request>
absl::StatusOr<uint64_t> MemoryOf(const std::string& text) {
  return RequestMemory(BytesOf(text), *Request::descriptor());
}

std::string RepeatTimes(const std::string& piece, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += piece;
  return all;
}

// Bytes allocated while the request was parsed.
template <typename Request>
uint64_t ParsedBytes(const std::string& text) {
  ::grpc::ByteBuffer bytes = BytesOf(text);
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  Request request;
  const uint64_t before = in_use();
  EXPECT_TRUE(ParseRequest(bytes, request).ok());
  return in_use() - std::min<uint64_t>(before, in_use());
}

TEST(ParseRequestTest, IdsTakeFourTimesTheirBytes) {
  v1::GatherRequest request;
  request.set_ids(std::string(1 << 20, '\1'));
  const auto memory = MemoryOf<v1::GatherRequest>(request.SerializeAsString());
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_GE(*memory, 4u << 20);
  EXPECT_LT(*memory, (4u << 20) + 1024);
}

// 384 bytes for each message and 128 for each field.
TEST(ParseRequestTest, MessagesAndFieldsCostTheSameEverywhere) {
  EXPECT_EQ(*MemoryOf<v1::GatherRequest>(""), 384u);
  v1::GatherRequest rows;
  rows.set_ids("12345678");  // ten bytes
  EXPECT_EQ(*MemoryOf<v1::GatherRequest>(rows.SerializeAsString()),
            384u + 128 + 4 * 10);
  v1::ExpandRequest expand;
  expand.set_hop(1);                                      // two bytes
  expand.add_frontiers()->set_fanout(1);                  // four bytes
  expand.add_frontiers()->mutable_ids()->assign("1234");  // eight bytes
  EXPECT_EQ(*MemoryOf<v1::ExpandRequest>(expand.SerializeAsString()),
            3 * 384u + 5 * 128 + 4 * 14);
  v1::SampleRequest packed;
  packed.add_cached_rows(1);  // a field of five bytes with two numbers
  packed.add_cached_rows(300);
  EXPECT_EQ(*MemoryOf<v1::SampleRequest>(packed.SerializeAsString()),
            384u + 128 + 24 * 3 + 4 * packed.ByteSizeLong());
}

TEST(ParseRequestTest, SmallFieldsAreEstimated) {
  constexpr size_t kCount = 100000;
  const std::string unknown = RepeatTimes(std::string("\x7a\0", 2), kCount);
  EXPECT_GE(*MemoryOf<v1::GatherRequest>(unknown),
            ParsedBytes<v1::GatherRequest>(unknown));
  const std::string groups = RepeatTimes("\x7b\x7c", kCount);
  EXPECT_GE(*MemoryOf<v1::GatherRequest>(groups),
            ParsedBytes<v1::GatherRequest>(groups));
  const std::string frontiers = RepeatTimes("\x42\x02\x10\x01", kCount);
  EXPECT_GE(*MemoryOf<v1::ExpandRequest>(frontiers),
            ParsedBytes<v1::ExpandRequest>(frontiers));
  const std::string splits = RepeatTimes("\x7a\x06\x0a\x01x\x12\x01y", kCount);
  EXPECT_GE(*MemoryOf<v1::ExpandRequest>(splits),
            ParsedBytes<v1::ExpandRequest>(splits));
  const std::string unknown_within =
      RepeatTimes(std::string("\x42\x02\x7a\0", 4), kCount);
  EXPECT_GE(*MemoryOf<v1::ExpandRequest>(unknown_within),
            ParsedBytes<v1::ExpandRequest>(unknown_within));
  v1::SampleRequest numbers;
  for (size_t i = 0; i < kCount; ++i) numbers.add_cached_rows(1);
  const std::string packed = numbers.SerializeAsString();
  EXPECT_GE(*MemoryOf<v1::SampleRequest>(packed),
            ParsedBytes<v1::SampleRequest>(packed));
}

TEST(ParseRequestTest, TooManyFieldsAreRefused) {
  const std::string most = RepeatTimes(std::string("\x7a\0", 2), 1 << 20);
  EXPECT_TRUE(MemoryOf<v1::GatherRequest>(most).ok());
  const absl::Status status =
      MemoryOf<v1::GatherRequest>(most + std::string("\x7a\0", 2)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576 fields"));
  // Fields of submessages count too.
  const std::string nested = RepeatTimes("\x42\x02\x10\x01", (1 << 19) + 1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(MemoryOf<v1::ExpandRequest>(nested).status()));
}

TEST(ParseRequestTest, InvalidMessagesAreRefused) {
  for (const std::string& text :
       {std::string("\x0a\x09"), std::string("\x42\x02\x10"), std::string(1, 0),
        std::string("\x42\x01\x10"), std::string("\x0f"), std::string("\x7b"),
        std::string("\x7c"),
        std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        std::string("\x1a\xff\xff\xff\xff\x0f")}) {
    const absl::Status status = MemoryOf<v1::ExpandRequest>(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_FALSE(v1::ExpandRequest().ParseFromString(text));
  }
}

TEST(ParseRequestTest, UnknownFieldsAreAccepted) {
  for (const std::string& text : {std::string(), std::string("\xa2\x06\x01x"),
                                  std::string("\xa3\x06\xa4\x06"),
                                  // This looks like a frontier, but is inside a
                                  // group.
                                  std::string("\xa3\x06\x42\x01\xff\xa4\x06"),
                                  std::string("\x42\x02\x7b\x7c"),
                                  // This is a number where the known field has
                                  // bytes.
                                  std::string("\x40\x05")}) {
    EXPECT_TRUE(MemoryOf<v1::ExpandRequest>(text).ok());
    EXPECT_TRUE(v1::ExpandRequest().ParseFromString(text));
  }
}

}  // namespace
}  // namespace millrace
