// SPDX-License-Identifier: Apache-2.0
// Replicas whose files are damaged under them.
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

#include "client/remote_batch_source.h"
#include "common/base/steady_time.h"
#include "common/graph/store.h"
#include "common/sample/digest.h"
#include "common/sample/local_batch_source.h"
#include "common/wire/error_info.h"
#include "server/server.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using testing::BuildStore;
using ::testing::HasSubstr;
using testing::PendingFetch;

class DamagedReplicasTest : public ::testing::Test {
 protected:
  DamagedReplicasTest() : directory_(testing::TestDirectory("damaged")) {
    const testing::TestGraph graph = testing::SmallGraph();
    EXPECT_TRUE(BuildStore(graph, 2, testing::SpreadAssignment(graph, 2),
                           directory_ / "sound")
                    .ok());
    std::ofstream(directory_ / "servers") << "# nobody yet\n";
  }

  // Serves partitions of a copy of the store, with the servers that the file
  // `peers` lists, or none.
  SamplerServer& Serve(const std::string& copy, std::vector<int> partitions,
                       const std::string& peers = "servers") {
    const fs::path path = directory_ / copy;
    if (!fs::exists(path)) {
      fs::copy(directory_ / "sound", path, fs::copy_options::recursive);
    }
    auto store = Store::Open(path, std::move(partitions));
    EXPECT_TRUE(store.ok()) << store.status();
    ServerOptions options;
    if (!peers.empty()) options.peers = "@" + (directory_ / peers).string();
    auto server = SamplerServer::Start(*std::move(store), options);
    EXPECT_TRUE(server.ok()) << server.status();
    servers_.push_back(*std::move(server));
    std::ofstream list(directory_ / "servers");
    for (const auto& each : servers_) list << each->address() << '\n';
    return *servers_.back();
  }

  // Neighbours that no graph has, in the file that servers have mapped.
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

  // The batches of an epoch; each must be that of a sound store.
  absl::Status FetchAll() const {
    RemoteOptions options;
    options.servers = "@" + (directory_ / "servers").string();
    options.partition_wait = absl::Hours(1);
    const auto source = RemoteBatchSource::Connect(options);
    if (!source.ok()) return source.status();
    JobSpec spec;
    spec.fanouts = {-1, -1};
    spec.batch_size = 1;
    const auto job = ResolveJob(spec, (*source)->manifest());
    EXPECT_TRUE(job.ok()) << job.status();
    auto store = Store::Open(directory_ / "sound");
    EXPECT_TRUE(store.ok()) << store.status();
    const auto local = LocalBatchSource::Create(
        std::shared_ptr<const Store>(*std::move(store)), 1);
    EXPECT_TRUE(local.ok()) << local.status();
    const Schema& schema = (*source)->manifest().schema;
    for (uint32_t batch = 0; batch < 4; ++batch) {
      BatchRequest request;
      request.batch = batch;
      request.columns = DigestColumns(/*features=*/true, false);
      PendingFetch fetch(**source, *job, request);
      if (!fetch.Wait().ok()) return fetch.Wait().status();
      const auto want = (*local)->Make(*job, request);
      EXPECT_TRUE(want.ok()) << want.status();
      EXPECT_EQ(DigestBatch(*fetch.Wait(), schema), DigestBatch(*want, schema));
    }
    return absl::OkStatus();
  }

  const fs::path directory_;
  std::vector<std::unique_ptr<SamplerServer>> servers_;
};

TEST_F(DamagedReplicasTest, OneIsLeft) {
  Serve("a", {0});
  Serve("b", {0});
  Serve("sound", {1});
  Damage("a", 0);
  EXPECT_EQ(FetchAll(), absl::OkStatus());
  EXPECT_EQ(FetchAll(), absl::OkStatus());
}

TEST_F(DamagedReplicasTest, AllEndTheRunAtOnceAndAreNamed) {
  const std::string a = Serve("a", {0}).address();
  const std::string b = Serve("b", {0}).address();
  Serve("sound", {1});
  Damage("a", 0);
  Damage("b", 0);
  const absl::Status status = FetchAll();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 0);
  for (const std::string& name : {a, b, std::string("indices.npy")}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

// Such a server asks another one for what it has itself.
TEST_F(DamagedReplicasTest, OneServesItsOtherPartitions) {
  Serve("a", {0, 1});
  Serve("b", {1});
  Damage("a", 1);
  EXPECT_EQ(FetchAll(), absl::OkStatus());
}

// The client knows a sound replica before the home does.
TEST_F(DamagedReplicasTest, OneIsNotTheLastForAHomeThatKnowsNoOther) {
  const fs::path peers = directory_ / "peers";
  std::ofstream(peers) << "# nobody yet\n";
  SamplerServer& home = Serve("a", {0, 1}, "peers");
  std::ofstream(peers) << home.address() << '\n';
  const std::string other = Serve("b", {1}).address();
  Damage("a", 1);
  absl::Status status;
  std::thread client([&] { status = FetchAll(); });
  // Until the home has answered that nobody is left.
  const SteadyTime limit = SteadyNow() + absl::Seconds(60);
  while (home.Metrics().find("DATA_LOSS") == std::string::npos &&
         SteadyNow() < limit) {
    std::this_thread::yield();
  }
  std::ofstream(peers, std::ios::app) << other << '\n';
  client.join();
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(DamagedReplicasTest, OneWithoutPeersIsLeftForAnother) {
  Serve("a", {0, 1}, /*peers=*/"");
  Serve("b", {0, 1}, /*peers=*/"");
  Damage("a", 1);
  EXPECT_EQ(FetchAll(), absl::OkStatus());
}

}  // namespace
}  // namespace millrace
