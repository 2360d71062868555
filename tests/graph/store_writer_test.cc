// SPDX-License-Identifier: Apache-2.0
#include "common/graph/store_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "common/graph/store.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::MatchesRegex;

// Two nodes and nothing else.
Manifest TwoNodes() {
  Manifest manifest;
  manifest.schema.node_types = {{.name = "node", .count = 2}};
  manifest.books = {PartitionBook({0, 2})};
  return manifest;
}

const Array kTwo = Array::Adopt(std::vector<uint32_t>{0, 1});

class StoreWriterTest : public testing::DirectoryTest {
 protected:
  fs::path path() const { return directory_ / "store"; }

  // Writes TwoNodes() using each method that adds a file.
  absl::Status Write(const fs::path& target) const {
    auto writer = StoreWriter::Create(target);
    if (!writer.ok()) return writer.status();
    const absl::Status written = writer->Write(LookupPath(0, "node"), kTwo);
    if (!written.ok()) return written;
    const std::string file = NodePath(0, "node", "original_id");
    auto stream = writer->Open(file, DType::kUint32, {}, -1);
    if (!stream.ok()) return stream.status();
    const absl::Status appended = (*stream)->Append(kTwo.data(), 8);
    if (!appended.ok()) return appended;
    const absl::Status closed = writer->Close(file, *std::move(stream));
    if (!closed.ok()) return closed;
    std::ofstream(writer->scratch() / "temporary") << "gone at the end";
    return writer->Commit(TwoNodes());
  }

  size_t Entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), {}));
  }
};

TEST_F(StoreWriterTest, WritesWhatStoreReads) {
  ASSERT_TRUE(Write(path()).ok());
  const auto store = Store::Open(path()).value();
  const Manifest& manifest = store->manifest();
  EXPECT_THAT(manifest.uuid,
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                           "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  ASSERT_EQ(manifest.files.size(), 2u);
  EXPECT_LT(manifest.files[0].path, manifest.files[1].path);
  EXPECT_EQ(store->partition(0)->nodes[0].original_id.IntegerAt(1), 1);
  EXPECT_EQ(Entries(), 1u);
  for (const auto& entry : fs::recursive_directory_iterator(path())) {
    EXPECT_NE(entry.path().filename(), "temporary");
  }
}

TEST_F(StoreWriterTest, FingerprintsAreEqualIfAndOnlyIfContentIs) {
  ASSERT_TRUE(Write(directory_ / "a").ok());
  ASSERT_TRUE(Write(directory_ / "b").ok());
  const auto a = Store::Open(directory_ / "a");
  const auto b = Store::Open(directory_ / "b");
  EXPECT_EQ((*a)->manifest().fingerprint, (*b)->manifest().fingerprint);
  EXPECT_NE((*a)->manifest().uuid, (*b)->manifest().uuid);
}

TEST_F(StoreWriterTest, LeavesNothingUncommitted) {
  {
    auto writer = StoreWriter::Create(path());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Write("a/b/c.npy", kTwo).ok());
  }
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(StoreWriterTest, PublishesNoManifestThatCannotBeRead) {
  {
    auto writer = StoreWriter::Create(path());
    ASSERT_TRUE(writer.ok());
    Manifest manifest = TwoNodes();
    manifest.books = {PartitionBook({0, 3})};
    EXPECT_EQ(writer->Commit(manifest).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(StoreWriterTest, RefusesToWriteAFileTwice) {
  auto writer = StoreWriter::Create(path());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write("a.npy", kTwo).ok());
  EXPECT_EQ(writer->Write("a.npy", kTwo).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(StoreWriterTest, CopiesFilesOfAnotherStore) {
  ASSERT_TRUE(Write(path()).ok());
  const auto source = Store::Open(path()).value();
  auto writer = StoreWriter::Create(directory_ / "copy");
  ASSERT_TRUE(writer.ok());
  for (const FileInfo& file : source->manifest().files) {
    ASSERT_TRUE(writer->CopyFrom(path(), file).ok());
  }
  ASSERT_TRUE(writer->Commit(TwoNodes()).ok());
  fs::remove_all(path());
  const auto copy = Store::Open(directory_ / "copy").value();
  EXPECT_EQ(copy->manifest().fingerprint, source->manifest().fingerprint);
}

TEST_F(StoreWriterTest, CopiesNoDamagedFile) {
  ASSERT_TRUE(Write(path()).ok());
  const auto source = Store::Open(path()).value();
  const FileInfo file = source->manifest().files[0];
  fs::resize_file(path() / file.path, file.bytes + 1);
  auto writer = StoreWriter::Create(directory_ / "copy");
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->CopyFrom(path(), file).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace millrace
