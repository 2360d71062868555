// SPDX-License-Identifier: Apache-2.0
// Files as torch.save writes them, put together by hand. What PyTorch itself
// writes is read by tests/ingest/formats.
#include "common/torchfile/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/support/stored_zip.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tensor of all three elements of a LongStorage, in protocol 2.
const std::string& ThreeLongs() {
  static const std::string pickle =
      std::string("\x80\x02") + "ctorch._utils\n_rebuild_tensor_v2\n((" +
      std::string("X\x07\0\0\0storage", 12) + "ctorch\nLongStorage\n" +
      std::string(
          "X\x01\0\0\0"
          "0",
          6) +
      std::string("X\x03\0\0\0cpu", 8) +
      std::string("K\x03tQK\0K\x03\x85K\x01\x85\x89}tR.", 17);
  return pickle;
}

// The tensor is valid until the next call.
absl::StatusOr<StoredTensor> ReadThree(
    const std::string& storage, const std::string& byte_order = "little") {
  static std::string bytes;
  bytes = testing::StoredZip({{"x/data.pkl", ThreeLongs()},
                              {"x/byteorder", byte_order},
                              {"x/data/0", storage}});
  const auto archive = ZipArchive::Of("x.pt", bytes);
  if (!archive.ok()) return archive.status();
  const auto file = ReadTorchZip(*archive);
  if (!file.ok()) return file.status();
  return file->root().tensor;
}

TEST(ReadTorchZipTest, ReadsAStorageOfTheSizeThatItsTensorsNeed) {
  const auto tensor =
      ReadThree(testing::LittleEndian(5, 8) + testing::LittleEndian(6, 8) +
                testing::LittleEndian(7, 8));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->format.type, ElementType::kInt64);
  EXPECT_THAT(tensor->sizes, ElementsAre(3));
  EXPECT_THAT(tensor->strides, ElementsAre(1));
  int64_t last = 0;
  std::memcpy(&last, tensor->data + 16, sizeof last);
  EXPECT_EQ(last, 7);
}

TEST(ReadTorchZipTest, ShortStoragesAreDataLoss) {
  const absl::Status status = ReadThree(std::string(23, '\0')).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has 23 bytes, but 24 are needed for its 3 elements of "
                        "int64"));
}

TEST(ReadTorchZipTest, RefusesAnotherByteOrder) {
  const absl::Status status = ReadThree(std::string(24, '\0'), "big").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another byte order"));
}

}  // namespace
}  // namespace millrace
