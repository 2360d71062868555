// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/address_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AddressListTest, ReadsAListOfAddresses) {
  const auto list = AddressList::Parse("a:1, b.example:2,a:1,[::1]:3");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(*list->Read(), ElementsAre("a:1", "b.example:2", "[::1]:3"));
}

TEST(AddressListTest, NamesTheEntryThatIsNotAnAddress) {
  for (const char* bad :
       {"a", "a:", ":1", "a:0", "a:65536", "a:1x", "::1:5", "a b:1", "a:1,b",
        "", ",", "@", "dns:///", "dns:///a", "http://a:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(AddressList::Parse(bad).status()))
        << bad;
  }
  EXPECT_THAT(std::string(AddressList::Parse("a:1,b").status().message()),
              HasSubstr("\"b\""));
}

TEST(AddressListTest, RereadsTheFileEachTime) {
  const std::string path =
      (testing::TestDirectory("address_list") / "servers").string();
  const auto list = AddressList::Parse("@" + path);
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(absl::IsUnavailable(list->Read().status()));
  std::ofstream(path) << "# the fleet\na:1\nb:2, c:3 # spare\n\n";
  EXPECT_THAT(*list->Read(), ElementsAre("a:1", "b:2", "c:3"));
  std::ofstream(path) << "a:1\nwrong\n";
  const absl::Status status = list->Read().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("line 2"));
}

TEST(AddressListTest, RefusesFilesWithoutAddresses) {
  const std::filesystem::path folder = testing::TestDirectory("no_list");
  const std::string path = (folder / "servers").string();
  std::ofstream(path) << "# about to be rewritten\n";
  const absl::Status empty = AddressList::Parse("@" + path)->Read().status();
  EXPECT_TRUE(absl::IsNotFound(empty)) << empty;
  EXPECT_THAT(std::string(empty.message()), HasSubstr("names no server"));
  const absl::Status of_folder =
      AddressList::Parse("@" + folder.string())->Read().status();
  EXPECT_TRUE(absl::IsUnavailable(of_folder)) << of_folder;
  const absl::Status endless =
      AddressList::Parse("@/dev/zero")->Read().status();
  EXPECT_TRUE(absl::IsInvalidArgument(endless)) << endless;
}

TEST(AddressListTest, ResolvesNames) {
  const auto list = AddressList::Parse("dns:///localhost:77");
  ASSERT_TRUE(list.ok());
  const auto addresses = list->Read();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses, ::testing::Contains(
                              ::testing::AnyOf("127.0.0.1:77", "[::1]:77")));
}

}  // namespace
}  // namespace millrace
