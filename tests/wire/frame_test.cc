// SPDX-License-Identifier: Apache-2.0
#include "common/wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

using Slices = std::vector<std::span<const std::byte>>;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string PayloadOf(const FrameView& frame) {
  std::string payload;
  for (const auto piece : frame.payload) {
    payload.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return payload;
}

FrameHeader ExampleHeader() {
  FrameHeader header;
  header.offset = 1 << 20;
  header.stream.emplace();
  header.stream->hops = 3;
  header.stream->seed_type = 1;
  header.stream->partition = 2;
  header.stream->Append(ArrayKind::kSeedToLocal, 0, DType::kUint32, {5});
  header.stream->Append(ArrayKind::kNodeFeature, 1, DType::kFloat16, {7, 3});
  return header;
}

TEST(FrameTest, IsAValidProtobufMessage) {
  const std::string payload(1000, 'x');
  const std::string message =
      EncodeFrameHead(ExampleHeader(), payload.size()) + payload;
  v1::Frame proto;
  ASSERT_TRUE(proto.ParseFromString(message));
  EXPECT_EQ(proto.payload(), payload);
  EXPECT_EQ(proto.header().offset(), 1u << 20);
  const v1::Stream& stream = proto.header().stream();
  EXPECT_EQ(stream.hops(), 3u);
  EXPECT_EQ(stream.seed_type(), 1u);
  EXPECT_EQ(stream.partition(), 2u);
  ASSERT_EQ(stream.arrays_size(), 2);
  EXPECT_EQ(stream.arrays(1).kind(), v1::ArrayInfo::KIND_NODE_FEATURE);
  EXPECT_EQ(stream.arrays(1).dtype(), v1::DTYPE_FLOAT16);
  EXPECT_THAT(stream.arrays(1).shape(), ::testing::ElementsAre(7, 3));
  EXPECT_EQ(stream.arrays(1).offset(), 24u);  // 5 * 4 bytes, rounded up
  EXPECT_EQ(stream.total_bytes(), 24u + 7 * 3 * 2);
}

// The bytes shown in docs/protocol.md.
TEST(FrameTest, HasTheDocumentedBytes) {
  FrameHeader header;
  header.offset = 300;
  EXPECT_EQ(EncodeFrameHead(header, 2),
            std::string("\x0a\x03\x08\xac\x02\x7a\x02"));
}

TEST(FrameTest, ParsesWhatProtobufWrites) {
  v1::Frame proto;
  proto.mutable_header()->set_offset(77);
  proto.set_padding(std::string(13, '\0'));
  proto.set_payload("payload");
  const std::string message = proto.SerializeAsString();
  const auto frame = ParseFrame(Slices{Bytes(message)});
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->header.offset, 77u);
  EXPECT_FALSE(frame->header.stream.has_value());
  EXPECT_EQ(PayloadOf(*frame), "payload");
}

TEST(FrameTest, ParsesSlicesCutAnywhere) {
  const std::string payload = "0123456789";
  const std::string message =
      EncodeFrameHead(ExampleHeader(), payload.size()) + payload;
  for (size_t first = 0; first <= message.size(); ++first) {
    for (const size_t second : {first, (first + message.size()) / 2}) {
      const auto all = Bytes(message);
      const Slices slices = {all.first(first),
                             all.subspan(first, second - first),
                             all.subspan(second)};
      const auto frame = ParseFrame(slices);
      ASSERT_TRUE(frame.ok()) << frame.status();
      EXPECT_EQ(PayloadOf(*frame), payload);
      EXPECT_EQ(frame->payload_bytes, payload.size());
      EXPECT_EQ(*frame->header.stream, *ExampleHeader().stream);
    }
  }
}

TEST(FrameTest, BorrowsThePayload) {
  const std::string message = EncodeFrameHead({}, 4) + "abcd";
  const auto frame = ParseFrame(Slices{Bytes(message)});
  ASSERT_TRUE(frame.ok());
  ASSERT_EQ(frame->payload.size(), 1u);
  EXPECT_EQ(frame->payload[0].data(), Bytes(message).last(4).data());
}

TEST(FrameTest, RefusesLengthsBeyondTheMessage) {
  for (const std::string& message :
       {std::string("\x7a\xff\xff\xff\xff\x0f"), std::string("\x7a\x02x"),
        std::string("\x0a\x7f\x08"), std::string("\x12\x05zz"),
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string("\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        std::string("\x7b"), std::string("\x00", 1), std::string("\xff")}) {
    EXPECT_EQ(ParseFrame(Slices{Bytes(message)}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// A field unknown to all versions brings the header to its maximum size.
TEST(FrameTest, RefusesHeadersAboveTheLimit) {
  for (const size_t bytes : {kMaxFrameHeaderBytes, kMaxFrameHeaderBytes + 1}) {
    v1::Frame proto;
    google::protobuf::UnknownFieldSet& more =
        *proto.mutable_header()->GetReflection()->MutableUnknownFields(
            proto.mutable_header());
    std::string& text = *more.AddLengthDelimited(1000);
    text.assign(bytes - 10, 'x');
    text.append(bytes - proto.header().ByteSizeLong(), 'x');
    ASSERT_EQ(proto.header().ByteSizeLong(), bytes);
    const std::string message = proto.SerializeAsString();
    const absl::Status status = ParseFrame(Slices{Bytes(message)}).status();
    if (bytes == kMaxFrameHeaderBytes) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("limit"));
    }
  }
}

TEST(FrameTest, RefusesStreamsThatMatchNoSchema) {
  using Edit = std::function<void(v1::Stream&, bool beyond)>;
  const std::vector<Edit> edits = {
      [](v1::Stream& s, bool beyond) { s.set_hops((1 << 16) + beyond); },
      [](v1::Stream& s, bool beyond) { s.set_seed_type((1 << 16) + beyond); },
      [](v1::Stream& s, bool beyond) { s.set_partition((1 << 30) + beyond); },
      [](v1::Stream& s, bool beyond) {
        s.mutable_arrays(1)->set_index((1 << 16) + beyond);
      },
      [](v1::Stream& s, bool beyond) {
        while (s.arrays(1).shape_size() < 8 + beyond) {
          s.mutable_arrays(1)->add_shape(1);
        }
      },
      [](v1::Stream& s, bool beyond) {
        if (beyond) s.mutable_arrays(1)->set_dtype(static_cast<v1::DType>(99));
      },
      [](v1::Stream& s, bool beyond) {
        if (!beyond) return;
        s.mutable_arrays(1)->set_kind(static_cast<v1::ArrayInfo::Kind>(999));
      }};
  for (size_t i = 0; i < edits.size(); ++i) {
    for (const bool beyond : {false, true}) {
      v1::Frame proto;
      ASSERT_TRUE(proto.ParseFromString(EncodeFrameHead(ExampleHeader(), 0)));
      edits[i](*proto.mutable_header()->mutable_stream(), beyond);
      const std::string message = proto.SerializeAsString();
      const absl::Status status = ParseFrame(Slices{Bytes(message)}).status();
      EXPECT_EQ(status.code(), beyond ? absl::StatusCode::kInvalidArgument
                                      : absl::StatusCode::kOk)
          << "edit " << i << ": " << status;
    }
  }
}

TEST(FrameTest, RefusesASecondPayload) {
  const std::string message("\x7a\x01x\x7a\x01y");
  EXPECT_FALSE(ParseFrame(Slices{Bytes(message)}).ok());
}

TEST(FrameTest, SurvivesAnyDamage) {
  const std::string good =
      EncodeFrameHead(ExampleHeader(), 20) + std::string(20, 'p');
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string message = good;
    for (int flips = 0; flips < 3; ++flips) {
      message[random() % message.size()] = static_cast<char>(random());
    }
    message.resize(random() % (message.size() + 1));
    const auto frame = ParseFrame(Slices{Bytes(message)});
    if (!frame.ok()) continue;
    EXPECT_LE(frame->payload_bytes, message.size());
    if (frame->header.stream) {
      (void)CheckLayout(*frame->header.stream, 1 << 30);
    }
  }
}

TEST(FrameOffsetTest, IsThatOfTheNextByte) {
  EXPECT_EQ(CheckOffset({.offset = 12, .stream = {}}, 12), absl::OkStatus());
  for (const uint64_t position : {0, 11, 13}) {
    const absl::Status status =
        CheckOffset({.offset = 12, .stream = {}}, position);
    EXPECT_TRUE(absl::IsInternal(status)) << position << ": " << status;
  }
}

TEST(StreamLayoutTest, NamesArraysAsTheProtocolDoes) {
  for (int kind = 0; kind < v1::ArrayInfo::Kind_ARRAYSIZE; ++kind) {
    const std::string name =
        v1::ArrayInfo::Kind_Name(static_cast<v1::ArrayInfo::Kind>(kind));
    EXPECT_EQ(StrCat("KIND_", ArrayKindName(static_cast<ArrayKind>(kind))),
              name);
  }
}

TEST(StreamLayoutTest, AcceptsWhatAppendMakes) {
  EXPECT_TRUE(CheckLayout(*ExampleHeader().stream, 1000).ok());
}

TEST(StreamLayoutTest, RefusesStreamsAboveTheLimit) {
  EXPECT_EQ(CheckLayout(*ExampleHeader().stream, 50).code(),
            absl::StatusCode::kOutOfRange);
}

TEST(StreamLayoutTest, RefusesArraysThatDoNotFit) {
  const auto refused = [](auto change) {
    StreamLayout layout = *ExampleHeader().stream;
    change(layout);
    return absl::IsInvalidArgument(CheckLayout(layout, 1000));
  };
  EXPECT_TRUE(refused([](auto& l) { l.arrays[1].offset = 16; }));
  EXPECT_TRUE(refused([](auto& l) { l.arrays[1].offset = 28; }));
  EXPECT_TRUE(refused([](auto& l) { l.arrays[1].offset = 1 << 30; }));
  EXPECT_TRUE(refused([](auto& l) { l.arrays[1].shape[0] = -1; }));
  EXPECT_TRUE(refused([](auto& l) {
    l.arrays[1].shape = {int64_t{1} << 62, int64_t{1} << 62};
  }));
  EXPECT_TRUE(refused([](auto& l) { l.arrays[1].dtype = DType::kNone; }));
  EXPECT_TRUE(refused([](auto& l) { l.total_bytes = 40; }));
}

// The first array takes bytes 0 to 20, the second 24 to 66.
TEST(StreamLayoutTest, ErrorsNameTheArrayAndItsPlace) {
  const StreamLayout good = *ExampleHeader().stream;
  ASSERT_EQ(good.total_bytes, 66u);
  EXPECT_EQ(CheckLayout(good, 66), absl::OkStatus());
  const absl::Status large = CheckLayout(good, 65);
  EXPECT_EQ(large.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(large.message(), "the stream announces 66 bytes; the limit is 65");
  const auto message = [&](auto change) {
    StreamLayout layout = good;
    change(layout);
    return std::string(CheckLayout(layout, 1000).message());
  };
  EXPECT_EQ(message([](auto& l) { l.arrays[1].offset = 16; }),
            "array 1 of the stream (NODE_FEATURE 1, offset 16) does not fit "
            "between byte 20 and byte 66");
  EXPECT_EQ(message([](auto& l) { l.total_bytes = 65; }),
            "array 1 of the stream (NODE_FEATURE 1, offset 24) does not fit "
            "between byte 20 and byte 65");
  EXPECT_EQ(message([](auto& l) { l.arrays[0].shape[0] = 20; }),
            "array 0 of the stream (SEED_TO_LOCAL 0, offset 0) does not fit "
            "between byte 0 and byte 66");
  EXPECT_EQ(message([](auto& l) { l.total_bytes = 67; }), "");
}

TEST(FrameTest, ErrorsSayWhatIsWrongWhere) {
  for (const auto& [bytes, what] :
       {std::pair(std::string("\x0a\x7f\x08"), "bad header length at byte "),
        std::pair(std::string("\x7a\x02x"), "bad payload length at byte "),
        std::pair(std::string("\x7a\x01x\x7a\x01y"),
                  "second header or payload at byte 4"),
        std::pair(std::string("\x0a\x00\x0a\x00", 4),
                  "second header or payload at byte 3"),
        std::pair(std::string("\x7b"), "unreadable field at byte "),
        std::pair(std::string("\x0a\x01\x08"), "unreadable header")}) {
    EXPECT_THAT(
        std::string(ParseFrame(Slices{Bytes(bytes)}).status().message()),
        ::testing::StartsWith(StrCat("not a frame: ", what)));
  }
}

}  // namespace
}  // namespace millrace
