// SPDX-License-Identifier: Apache-2.0
// The files beside a dataset: names, and the partitions of nodes.
#include <gmock/gmock.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/ingest/formats/name_output.h"
#include "common/ingest/formats/owner_output.h"
#include "common/table/npy_rows.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OutputTest : public testing::DirectoryTest {};

RawGraph WithOwners(std::vector<int64_t> owners) {
  RawGraph graph;
  const auto count = static_cast<int64_t>(owners.size());
  graph.nodes.push_back({.name = "a", .count = count});
  graph.nodes[0].owner = ArrayRows("book", Array::Adopt(std::move(owners)));
  return graph;
}

TEST_F(OutputTest, WritesPartitionsInRange) {
  const std::string path = directory_ / "owners.npy";
  const absl::Status written = WriteOwners(WithOwners({0, 65534, 7}), path);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_THAT(MapNpy(path)->As<int32_t>(), ElementsAre(0, 65534, 7));
  for (const int64_t wrong : {int64_t{-1}, int64_t{65535}, int64_t{1} << 40}) {
    const absl::Status refused =
        WriteOwners(WithOwners({0, wrong}), directory_ / StrCat(wrong));
    EXPECT_EQ(refused.message(),
              StrCat("book: row 1: ", wrong,
                     " is not a partition; partitions are 0 to 65534"));
  }
}

TEST_F(OutputTest, RefusesPartitionsThatCannotBeWritten) {
  RawGraph graph = WithOwners({0, 1});
  graph.nodes.push_back({.name = "b", .count = 2});
  EXPECT_EQ(CheckOwners(graph, directory_ / "new").message(),
            "assignment_out: this input has no partitions of node type b");
  EXPECT_FALSE(WriteOwners(graph, directory_ / "new").ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  const std::string path = directory_ / "old";
  std::ofstream(path) << "x";
  const absl::Status refused = CheckOwners(WithOwners({0}), path);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(refused.message(), StrCat("assignment_out ", path,
                                      ": the file already exists\nremove it "
                                      "or choose another"));
  graph.nodes.pop_back();
  graph.nodes.push_back(graph.nodes[0]);
  graph.nodes[1].name = "c";
  EXPECT_THAT(
      std::string(WriteOwners(graph, directory_ / "old/below").message()),
      HasSubstr("old/below"));
}

RawGraph WithNames(std::deque<std::string> names) {
  RawGraph graph;
  graph.names = {
      {"one.txt", std::make_shared<const std::deque<std::string>>(names)},
      {"two.txt", std::make_shared<const std::deque<std::string>>(names)}};
  return graph;
}

TEST_F(OutputTest, WritesMoreNamesThanABlockHolds) {
  std::deque<std::string> names;
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    names.push_back(StrCat(std::string(400, 'x'), i));
    expected += names.back() + "\n";
  }
  ASSERT_TRUE(WriteNames(WithNames(names), directory_ / "names").ok());
  for (const char* name : {"one.txt", "two.txt"}) {
    std::ifstream file(directory_ / "names" / name, std::ios::binary);
    EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(file), {}) ==
                expected);
  }
}

TEST_F(OutputTest, RefusesNamesThatCannotBeWritten) {
  EXPECT_EQ(CheckNames({}, directory_).message(),
            "names_out: this input has numbers instead of names\nleave it out");
  std::ofstream(directory_ / "two.txt") << "x";
  const absl::Status refused = CheckNames(WithNames({"a"}), directory_);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(refused.message(),
            StrCat("names_out ", directory_.string(),
                   ": file two.txt exists\nremove it or choose another "
                   "folder"));
  EXPECT_FALSE(WriteNames(WithNames({"a"}), directory_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "one.txt"));
  EXPECT_THAT(
      std::string(
          WriteNames(WithNames({"a"}), directory_ / "two.txt/below").message()),
      HasSubstr("two.txt/below"));
}

}  // namespace
}  // namespace millrace
