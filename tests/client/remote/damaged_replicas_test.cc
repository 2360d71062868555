// SPDX-License-Identifier: Apache-2.0
// Replicas whose files are damaged while they are served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/steady_time.h"
#include "common/graph/store.h"
#include "common/wire/error_info.h"
#include "server/server.h"
#include "tests/client/remote/fetch_and_compare.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using testing::CallSample;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SampleRequestOf;

class DamagedReplicasTest : public ::testing::Test {
 protected:
  DamagedReplicasTest() : directory_(testing::TestDirectory("damaged")) {
    EXPECT_TRUE(
        testing::WriteGraph(testing::SmallGraph(), 2, directory_ / "intact")
            .ok());
    std::ofstream(directory_ / "servers") << "# nobody yet\n";
  }

  // Serves partitions of a copy of the store. The file `peers` lists the
  // server's peers, if any.
  SamplerServer& Serve(const std::string& copy, std::vector<int> partitions,
                       const std::string& peers = "servers") {
    const fs::path path = directory_ / copy;
    if (!fs::exists(path)) {
      fs::copy(directory_ / "intact", path, fs::copy_options::recursive);
    }
    ServerOptions options;
    if (!peers.empty()) options.peers = "@" + (directory_ / peers).string();
    servers_.push_back(
        SamplerServer::Start(Store::Open(path, std::move(partitions)).value(),
                             options)
            .value());
    std::ofstream list(directory_ / "servers");
    for (const auto& each : servers_) list << each->address() << '\n';
    return *servers_.back();
  }

  // Writes impossible neighbour ids into the file that servers have mapped.
  void Damage(const std::string& copy, int part) const {
    const fs::path path =
        directory_ / copy /
        ListPath(part, "node__to__node", Direction::kIn, "indices");
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const size_t data = content.find('\n') + 1;
    ASSERT_LT(data, content.size());
    file.seekp(static_cast<std::streamoff>(data));
    file << std::string(content.size() - data, '\xff');
  }

  // Fetches the batches of an epoch and compares each with that of an intact
  // store.
  absl::Status FetchAll() const {
    JobSpec spec;
    spec.fanouts = {-1, -1};
    spec.batch_size = 1;
    return testing::FetchAndCompare("@" + (directory_ / "servers").string(),
                                    directory_ / "intact", spec, {0, 1, 2, 3});
  }

  const fs::path directory_;
  std::vector<std::unique_ptr<SamplerServer>> servers_;
};

TEST_F(DamagedReplicasTest, ADamagedOneIsAbandoned) {
  Serve("a", {0});
  Serve("b", {0});
  Serve("intact", {1});
  Damage("a", 0);
  EXPECT_EQ(FetchAll(), absl::OkStatus());
  EXPECT_EQ(FetchAll(), absl::OkStatus());
}

TEST_F(DamagedReplicasTest, IfAllAreDamagedTheRunEndsAtOnceAndNamesThem) {
  const std::string a = Serve("a", {0}).address();
  const std::string b = Serve("b", {0}).address();
  Serve("intact", {1});
  Damage("a", 0);
  Damage("b", 0);
  const absl::Status status = FetchAll();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 0);
  for (const std::string& name : {a, b, std::string("indices.npy")}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

// Clients do not learn where a server keeps its store.
TEST_F(DamagedReplicasTest, FilesAreNamedByTheirPathsInsideTheStore) {
  const std::string home = Serve("a", {0, 1}).address();
  Serve("b", {1});
  Damage("a", 1);
  JobSpec spec;
  spec.fanouts = {-1, -1};
  spec.batch_size = 1;
  const auto stub = v1::Sampler::NewStub(
      ::grpc::CreateChannel(home, ::grpc::InsecureChannelCredentials()));
  const absl::Status status =
      CallSample(*stub, SampleRequestOf(spec, Columns(), 0)).status;
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("indices.npy"));
  EXPECT_THAT(std::string(status.message()),
              Not(HasSubstr(directory_.string())));
}

// The server then asks another one for a partition that it has itself.
TEST_F(DamagedReplicasTest, ADamagedOneServesItsOtherPartitions) {
  Serve("a", {0, 1});
  Serve("b", {1});
  Damage("a", 1);
  EXPECT_EQ(FetchAll(), absl::OkStatus());
}

// The client knows of an intact replica before the home does.
TEST_F(DamagedReplicasTest, ADamagedOneIsNotFinalIfOnlyTheClientKnowsAnother) {
  const fs::path peers = directory_ / "peers";
  std::ofstream(peers) << "# nobody yet\n";
  SamplerServer& home = Serve("a", {0, 1}, "peers");
  std::ofstream(peers) << home.address() << '\n';
  const std::string other = Serve("b", {1}).address();
  Damage("a", 1);
  absl::Status status;
  std::thread client([&] { status = FetchAll(); });
  // Wait until the home has answered that no replica is left.
  const SteadyTime limit = SteadyNow() + absl::Seconds(60);
  while (home.Metrics().find("DATA_LOSS") == std::string::npos &&
         SteadyNow() < limit) {
    std::this_thread::yield();
  }
  std::ofstream(peers, std::ios::app) << other << '\n';
  client.join();
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(DamagedReplicasTest, ADamagedOneWithoutPeersIsAbandoned) {
  Serve("a", {0, 1}, /*peers=*/"");
  Serve("b", {0, 1}, /*peers=*/"");
  Damage("a", 1);
  EXPECT_EQ(FetchAll(), absl::OkStatus());
}

}  // namespace
}  // namespace millrace
