// SPDX-License-Identifier: Apache-2.0
// Replicas of which some lack a split that a job uses, because it was added to
// their copies of the store later, or not yet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/ingest/add_split.h"
#include "server/server.h"
#include "tests/client/remote/fetch_and_compare.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SplitReplicasTest : public ::testing::Test {
 protected:
  // Two copies of a store with two partitions; "new" has the split "mine".
  SplitReplicasTest() : directory_(testing::TestDirectory("split_replicas")) {
    EXPECT_TRUE(
        testing::WriteGraph(testing::SmallGraph(), 2, directory_ / "old").ok());
    fs::copy(directory_ / "old", directory_ / "new",
             fs::copy_options::recursive);
    const fs::path ids = directory_ / "ids.npy";
    EXPECT_TRUE(
        WriteNpy(ids, Array::Adopt(std::vector<int64_t>{0, 1, 2, 4, 6})).ok());
    const auto added =
        AddSplit(directory_ / "new", {.name = "mine", .type = "", .ids = ids});
    EXPECT_TRUE(added.ok()) << added.status();
  }

  // Serves a partition of a copy. The file `peers` lists the server's peers;
  // the file "servers" lists all servers.
  SamplerServer& Serve(const std::string& copy, int partition,
                       const std::string& peers = "servers") {
    List("servers");
    ServerOptions options;
    options.peers = "@" + (directory_ / peers).string();
    servers_.push_back(
        SamplerServer::Start(
            Store::Open(directory_ / copy, {partition}).value(), options)
            .value());
    List("servers");
    return *servers_.back();
  }

  // Writes all servers started so far to a file.
  void List(const std::string& file) const {
    std::ofstream list(directory_ / file);
    list << "# servers\n";
    for (const auto& server : servers_) list << server->address() << '\n';
  }

  // Fetches batches among the nodes of "mine", whose homes are the two
  // partitions in turn, and compares each with that of the store that has the
  // split.
  absl::Status FetchSome(const std::vector<uint32_t>& batches) const {
    JobSpec spec;
    spec.split = "mine";
    spec.train_graph = "mine";
    spec.fanouts = {-1, -1};
    spec.batch_size = 1;
    return testing::FetchAndCompare("@" + (directory_ / "servers").string(),
                                    directory_ / "new", spec, batches);
  }

  const fs::path directory_;
  std::vector<std::unique_ptr<SamplerServer>> servers_;
};

TEST_F(SplitReplicasTest, ClientsSwitchAwayFromReplicasWithoutIt) {
  for (const int partition : {0, 1}) {
    Serve("old", partition);
    Serve("new", partition);
  }
  EXPECT_EQ(FetchSome({0, 1, 2, 3, 4}), absl::OkStatus());
  EXPECT_EQ(FetchSome({0, 1, 2, 3, 4}), absl::OkStatus());
}

// A server asks all replicas of an owner, not just the first few.
TEST_F(SplitReplicasTest, AnyNumberMayLackIt) {
  SamplerServer& home = Serve("new", 0);
  for (int i = 0; i < 6; ++i) Serve("old", 1);
  Serve("new", 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(FetchSome({0, 2, 4}), absl::OkStatus());
  }
  EXPECT_EQ(home.Metrics().find("UNAVAILABLE"), std::string::npos);
}

TEST_F(SplitReplicasTest, IfAllOwnersLackItTheRunEndsAtOnceAndNamesThem) {
  const std::string home = Serve("new", 0).address();
  const std::string a = Serve("old", 1).address();
  const std::string b = Serve("old", 1).address();
  const absl::Status status = FetchSome({0, 2, 4});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const std::string& part :
       {home, a, b, std::string("has no split \"mine\" of node")}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

// The home may have read the list just before the owner was added to it.
TEST_F(SplitReplicasTest, OwnersAddedToTheListAreAskedBeforeTheRunEnds) {
  Serve("new", 0);
  for (int i = 0; i < 2; ++i) Serve("old", 1);
  // By this fetch the home learns of all servers so far.
  EXPECT_TRUE(absl::IsFailedPrecondition(FetchSome({0, 2, 4})));
  Serve("new", 1);
  EXPECT_EQ(FetchSome({0, 2, 4}), absl::OkStatus());
}

// Another home knows a replica of the owner that has the split.
TEST_F(SplitReplicasTest, ClientsSwitchAwayFromHomesWhoseOwnersAllLackIt) {
  Serve("old", 1);
  List("old servers");
  SamplerServer& blind = Serve("new", 0, "old servers");
  Serve("new", 1);
  Serve("new", 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(FetchSome({0, 2, 4}), absl::OkStatus());
  }
  EXPECT_NE(blind.Metrics().find("FAILED_PRECONDITION"), std::string::npos);
  EXPECT_EQ(blind.Metrics().find("UNAVAILABLE"), std::string::npos);
}

}  // namespace
}  // namespace millrace
