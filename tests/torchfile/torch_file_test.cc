// SPDX-License-Identifier: Apache-2.0
// Files as torch.save writes them, put together by hand. What PyTorch itself
// writes is read by tests/ingest/formats.
#include "common/torchfile/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/stored_zip.h"
#include "tests/support/test_directory.h"

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

// ThreeLongs() with `text` in place of `old`.
std::string Changed(const std::string& old, const std::string& text) {
  std::string pickle = ThreeLongs();
  const size_t at = pickle.find(old);
  EXPECT_NE(at, std::string::npos);
  return pickle.replace(at, old.size(), text);
}

std::string RefusalOf(const std::vector<testing::ZipEntry>& entries) {
  const std::string bytes = testing::StoredZip(entries);
  const auto archive = ZipArchive::Of("x.pt", bytes);
  EXPECT_TRUE(archive.ok()) << archive.status();
  return std::string(ReadTorchZip(*archive).status().message());
}

TEST(ReadTorchZipTest, ReadsStoragesOfEveryType) {
  const std::vector<std::pair<const char*, ElementType>> types = {
      {"Double", ElementType::kFloat64}, {"Float", ElementType::kFloat32},
      {"Half", ElementType::kFloat16},   {"BFloat16", ElementType::kBFloat16},
      {"Long", ElementType::kInt64},     {"Int", ElementType::kInt32},
      {"Short", ElementType::kInt16},    {"Char", ElementType::kInt8},
      {"Byte", ElementType::kUint8},     {"Bool", ElementType::kBool}};
  for (const auto& [name, type] : types) {
    const std::string bytes = testing::StoredZip(
        {{"x/data.pkl", Changed("LongStorage", std::string(name) + "Storage")},
         {"x/data/0", std::string(24, '\1')}});
    const auto archive = ZipArchive::Of("x.pt", bytes);
    ASSERT_TRUE(archive.ok()) << archive.status();
    const auto file = ReadTorchZip(*archive);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->root().tensor.format.type, type) << name;
    EXPECT_FALSE(file->root().tensor.format.big_endian);
  }
}

TEST(ReadTorchZipTest, SaysWhatIsWrong) {
  const testing::ZipEntry good = {"x/data.pkl", ThreeLongs()},
                          storage = {"x/data/0", std::string(24, '\1')};
  EXPECT_EQ(RefusalOf({good, storage}), "");
  EXPECT_EQ(RefusalOf({storage}),
            "x.pt: a zip file that torch.save did not write: it has no "
            "data.pkl\ngive a file that torch.save wrote");
  EXPECT_THAT(RefusalOf({good, storage, {"x/constants.pkl", "x"}}),
              HasSubstr("x.pt: a TorchScript archive, not a file written by "
                        "torch.save\nsave its tensors with torch.save("));
  EXPECT_THAT(RefusalOf({good}),
              HasSubstr("the file has no entry \"x/data/0\""));
  EXPECT_THAT(RefusalOf({good, {"y/data/0", std::string(24, '\1')}}),
              HasSubstr("the file has no entry \"x/data/0\""));
  const auto refusal = [&](const std::string& old, const std::string& text) {
    return RefusalOf({{"x/data.pkl", Changed(old, text)}, storage});
  };
  EXPECT_THAT(refusal("LongStorage", "Size"),
              HasSubstr("a tensor in a torch Size, which is not a supported "
                        "dtype\nload the file with torch.load and save its "
                        "tensors again with torch.save"));
  const char* no_storage = "a persistent id that names no storage";
  EXPECT_THAT(refusal("storage", "Storage"), HasSubstr(no_storage));
  EXPECT_THAT(refusal("ctorch\nLongStorage\n", "N"), HasSubstr(no_storage));
  EXPECT_THAT(refusal("K\x03tQ", "NtQ"), HasSubstr(no_storage));
  EXPECT_THAT(refusal("K\x03tQ", "J\xff\xff\xff\xfftQ"), HasSubstr(no_storage));
  EXPECT_THAT(refusal("K\x03tQ", "tQ"), HasSubstr(no_storage));
  EXPECT_THAT(refusal("K\x03tQ", "K\x03K\x03tQ"), HasSubstr(no_storage));
  EXPECT_THAT(refusal("K\x03tQ", "K\x03NNtQ"), HasSubstr(no_storage));
  EXPECT_EQ(refusal("K\x03tQ", "K\x03NtQ"), "");  // of an old version
}

// A file that is a sequence of pickles, with one storage.
struct Legacy {
  std::string magic =
      std::string("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
  std::string protocol = std::string("M\xe9\x03.", 4);
  std::string machine = "}\x8c\x0dlittle_endian\x88s.";
  std::string value = ThreeLongs();
  std::string keys = std::string("]X\1\0\0\0", 6) + "0a.";
  std::string elements = testing::LittleEndian(3, 8);
  std::string data = testing::LittleEndian(5, 8) + testing::LittleEndian(6, 8) +
                     testing::LittleEndian(7, 8);
};

class TorchFileTest : public testing::DirectoryTest {
 protected:
  absl::StatusOr<StoredTensor> Open(const Legacy& legacy) {
    const std::filesystem::path path = directory_ / "x.pt";
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        << legacy.magic << legacy.protocol << legacy.machine << legacy.value
        << legacy.keys << legacy.elements << legacy.data;
    return OpenTorchTensor(path);
  }
  std::string Refusal(const Legacy& legacy) {
    return std::string(Open(legacy).status().message());
  }
};

TEST_F(TorchFileTest, ReadsSequencesOfPickles) {
  const auto tensor = Open({});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->sizes, ElementsAre(3));
  int64_t last = 0;
  std::memcpy(&last, tensor->data + 16, sizeof last);
  EXPECT_EQ(last, 7);
}

TEST_F(TorchFileTest, SaysWhatIsWrongWithASequence) {
  Legacy legacy;
  legacy.magic[3] = 'x';
  EXPECT_THAT(Refusal(legacy),
              HasSubstr("x.pt: this is not a file written by torch.save\ngive "
                        "a file that torch.save wrote"));
  legacy = {};
  legacy.protocol[1] = '\xea';
  EXPECT_THAT(Refusal(legacy),
              HasSubstr("x.pt: protocol 1002; only 1001 is supported"));
  for (const char* machine : {"}\x8c\x0dlittle_endian\x89s.", "}."}) {
    legacy = {};
    legacy.machine = machine;
    EXPECT_THAT(
        Refusal(legacy),
        HasSubstr("this was written on a machine with another byte order"));
  }
  const char* misplaced =
      "x.pt: storage \"0\" of 3 elements is not where it should be";
  legacy = {};
  legacy.elements[0] = 2;
  EXPECT_THAT(Refusal(legacy), HasSubstr(misplaced));
  legacy = {};
  legacy.data.pop_back();
  EXPECT_THAT(Refusal(legacy), HasSubstr(misplaced));
  legacy = {};
  legacy.data.clear();
  legacy.elements.pop_back();
  EXPECT_THAT(Refusal(legacy), HasSubstr(misplaced));
  legacy = {};
  legacy.keys = "].";  // the storage has no place
  EXPECT_THAT(Refusal(legacy),
              HasSubstr("storage \"0\" has 0 bytes, but 24 are needed"));
  legacy = {};
  legacy.value = "N.";
  EXPECT_THAT(Refusal(legacy),
              HasSubstr("x.pt: a tensor is needed here, but this is None"));
}

TEST_F(TorchFileTest, FindsTensorsOfADictionary) {
  // {"n": None, "i": 7}
  const std::filesystem::path path = directory_ / "d.pkl";
  std::ofstream(path, std::ios::binary) << "}(\x8c\1nN\x8c\1iK\x07u.";
  const auto file = OpenPickle(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(FindTensor("f", file->root(), "n")->has_value());
  EXPECT_FALSE(FindTensor("f", file->root(), "x")->has_value());
  EXPECT_THAT(
      std::string(FindTensor("f", file->root(), "i").status().message()),
      HasSubstr("f: i: a tensor is needed here, but this is an integer\nload"));
  for (const char* key : {"n", "x"}) {
    EXPECT_EQ(RequireTensor("f", file->root(), key).status().message(),
              std::string("f: there is no ") + key);
  }
  EXPECT_THAT(std::string(OpenPickledTensors(path).status().message()),
              HasSubstr("d.pkl: a tensor is needed here, but this is a "
                        "dictionary"));
  EXPECT_TRUE(absl::IsNotFound(OpenPickle(directory_ / "none").status()));
}

TEST(ReadTorchZipTest, RefusesAnotherByteOrder) {
  const absl::Status status = ReadThree(std::string(24, '\0'), "big").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another byte order"));
}

}  // namespace
}  // namespace millrace
