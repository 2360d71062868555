// SPDX-License-Identifier: Apache-2.0
#include "common/table/inflated_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/test_directory.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

// Compresses `text` like gzip(1).
std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED,
                         MAX_WBITS + 16, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class InflatedFileTest : public DirectoryTest {
 protected:
  // The whole content of a file with these bytes, read `count` at a time.
  absl::StatusOr<std::string> ReadAll(const std::string& bytes, size_t count,
                                      const char* name = "file.gz") {
    const std::filesystem::path path = directory_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    auto file = InflatedFile::Open(path);
    if (!file.ok()) return file.status();
    std::vector<char> block(count);
    std::string all;
    while (true) {
      const auto read = (*file)->Read(block.data(), count);
      if (!read.ok()) return read.status();
      if (*read == 0) break;
      all.append(block.data(), *read);
    }
    EXPECT_EQ(*(*file)->Read(block.data(), count), 0);
    return all;
  }

  void ExpectDamaged(const std::string& bytes, const char* how) {
    for (const size_t count : {100, 4096, 262'144}) {
      const absl::Status status = ReadAll(bytes, count).status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(how));
      EXPECT_THAT(std::string(status.message()), HasSubstr("file.gz"));
    }
  }
};

std::string RandomText(size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>('0' + random() % 10);
  return text;
}

TEST_F(InflatedFileTest, InflatesTheOriginal) {
  for (const size_t size : {0, 1, 4095, 4096, 4097, 300'000, 1'000'000}) {
    for (const std::string& text : {RandomText(size), std::string(size, 'x')}) {
      for (const size_t count : {1000, 4096, 2'000'000}) {
        EXPECT_EQ(*ReadAll(Gzip(text), count), text) << size << " " << count;
        EXPECT_EQ(*ReadAll(text, count, "file.csv"), text) << size;
        // The file is recognised by its content.
        EXPECT_EQ(*ReadAll(Gzip(text), count, "file.csv"), text) << size;
      }
    }
  }
}

TEST_F(InflatedFileTest, ReturnsAllMembersWithoutPadding) {
  const std::string first = RandomText(5000), last = RandomText(300'000);
  const std::string both = Gzip(first) + Gzip("") + Gzip(last);
  EXPECT_EQ(*ReadAll(both, 4096), first + last);
  EXPECT_EQ(*ReadAll(both + std::string(10'000, '\0'), 4096), first + last);
  ExpectDamaged(both + "and more", "damaged gzip data");
  ExpectDamaged(both.substr(0, both.size() - 100), "truncated gzip data");
}

// When asked for 4096 bytes at a time, zlib's own gzread() accepts one in nine
// of the second kind as whole.
TEST_F(InflatedFileTest, RefusesFilesThatAreCutAnywhere) {
  for (const std::string& text :
       {RandomText(2000), std::string(100'000, 'x'), std::string()}) {
    const std::string packed = Gzip(text);
    for (size_t size = 2; size < packed.size(); ++size) {
      ExpectDamaged(packed.substr(0, size), "truncated gzip data");
      if (HasFailure()) FAIL() << size << " of " << packed.size() << " bytes";
    }
  }
}

TEST_F(InflatedFileTest, RefusesFlippedBitsByTheChecksum) {
  const std::string text = RandomText(2000), packed = Gzip(text);
  constexpr size_t kHeaderBytes = 10;  // has no checksum
  for (size_t i = kHeaderBytes; i < packed.size(); ++i) {
    std::string flipped = packed;
    flipped[i] = static_cast<char>(flipped[i] ^ 16);
    const auto all = ReadAll(flipped, 4096);
    // A few bits, such as padding, have no meaning.
    if (all.ok() && *all == text) continue;
    EXPECT_TRUE(absl::IsDataLoss(all.status())) << i << " " << all.status();
  }
}

TEST_F(InflatedFileTest, NamesFilesThatAreMissingOrNotGzip) {
  for (const char* bytes : {"", "\x1f", "1,2\n"}) {
    const absl::Status status = ReadAll(bytes, 10).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("file.gz: not gzip data"));
    EXPECT_EQ(*ReadAll(bytes, 10, "file.csv"), bytes);
  }
  EXPECT_TRUE(
      absl::IsNotFound(InflatedFile::Open(directory_ / "none").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(InflatedFile::Open(directory_).status()));
}

}  // namespace
}  // namespace millrace::testing
