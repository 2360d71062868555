// SPDX-License-Identifier: Apache-2.0
#include "client/flags/serve_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/field_error.h"
#include "tests/support/test_store.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

struct Flags {
  SourceFlags source;
  ServeFlags serve;
};

Flags Parsed(const std::string& line) {
  CLI::App app;
  Flags flags;
  flags.source.AddTo(app);
  flags.source.AddConnectionTo(app);
  flags.serve.AddTo(app);
  app.parse(line);
  // The options refer to these only while they are being parsed.
  return flags;
}

std::string Refusal(const std::string& line) {
  const Flags flags = Parsed(line);
  const absl::Status status = flags.serve.Check(flags.source);
  EXPECT_TRUE(IsUsageError(status)) << line << ": " << status;
  return std::string(status.message());
}

TEST(ServeFlagsTest, OptionsOfAServerNeedOne) {
  for (const char* option : {"--partition 0", "--peers a:1", "--advertise a:1",
                             "--plaintext", "--serve-config f"}) {
    const std::string name =
        std::string(option).substr(0, std::string(option).find(' '));
    EXPECT_EQ(Refusal(std::string("--store s ") + option),
              name +
                  " is for a server beside the trainer, but there is no "
                  "--serve\ngive --serve HOST:PORT, or leave " +
                  name + " out");
  }
  const Flags none = Parsed("--store s");
  EXPECT_FALSE(none.serve.given());
  EXPECT_TRUE(none.serve.Check(none.source).ok());
}

TEST(ServeFlagsTest, AServerNeedsAStoreAndAPartition) {
  EXPECT_THAT(Refusal("--servers a:1 --serve a:1 --partition 0"),
              StartsWith("--serve serves a store of this host, but there is "
                         "no --store\n"));
  EXPECT_THAT(Refusal("--store s --serve a:1"),
              StartsWith("--serve a:1 needs --partition"));
  EXPECT_THAT(Refusal("--store s --serve a:1 --partition 0,x"),
              StartsWith("--partition 0,x: \"x\" is not a partition"));
}

TEST(ServeFlagsTest, OtherHostsNeedTlsOrConsent) {
  const std::string server = "--store s --partition 0 --serve a:1 ";
  EXPECT_THAT(Refusal(server),
              StartsWith("--serve a:1 can be reached from other hosts, but "
                         "there is no --tls-cert\n"));
  EXPECT_THAT(Refusal(server + "--tls-ca c"),
              StartsWith("--serve with TLS needs a certificate of this "
                         "host\n"));
  EXPECT_THAT(Refusal(server + "--plaintext --tls-cert c --tls-key k"),
              StartsWith("--plaintext and TLS options cannot be used"));
  for (const char* consent : {"--plaintext", "--tls-cert c --tls-key k"}) {
    const Flags flags = Parsed(server + consent);
    EXPECT_TRUE(flags.serve.Check(flags.source).ok()) << consent;
  }
}

TEST(ServeFlagsTest, PeersNameTheServer) {
  const std::string line = "--store s --partition 0 --plaintext --serve ";
  for (const char* bad :
       {"a:1 --peers b:1", "a:1 --peers b:1,a:2", "0.0.0.0:1 --peers b:2",
        "a:1 --advertise b:1 --peers a:1", "[::]:1 --peers a:2,b:3"}) {
    EXPECT_THAT(Refusal(line + bad),
                ::testing::HasSubstr("does not name the server of --serve"))
        << bad;
  }
  for (const char* good :
       {"a:1 --peers b:1,a:1", "0.0.0.0:1 --peers b:2,b:1", "a:1",
        "a:1 --advertise b:1 --peers b:1", "a:1 --peers @f",
        "0.0.0.0:1 --advertise b:2 --peers a:1,b:2",
        "a:1 --peers dns:///n:1"}) {
    const Flags flags = Parsed(line + good);
    EXPECT_TRUE(flags.serve.Check(flags.source).ok()) << good;
  }
}

// Reads the store's store.json, but none of the files that it names: the server
// looks at these.
TEST(ServeFlagsTest, TheStoreHasThePartitions) {
  const TestStore store(SmallGraph(), 3);
  const std::filesystem::path root = store.path();
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".npy") {
      std::filesystem::resize_file(entry.path(), 0);
    }
  }
  const auto check = [&](const std::string& more) {
    const Flags flags = Parsed("--store " + root.string() +
                               " --serve 127.0.0.1:1 --partition " + more);
    return flags.serve.CheckStore(flags.source);
  };
  EXPECT_EQ(check("all"), absl::OkStatus());
  EXPECT_EQ(check("0,1,2,1"), absl::OkStatus());
  EXPECT_EQ(check("1 --peers a:1"), absl::OkStatus());
  EXPECT_EQ(check("1,2"),
            UsageError("--partition 1,2 is 2 of the 3 partitions of the store, "
                       "and there is no --peers\nname the servers of all "
                       "partitions with --peers LIST, or serve --partition "
                       "all"));
  EXPECT_EQ(check("3 --peers a:1"),
            absl::OutOfRangeError("no partition 3 in " + root.string() +
                                  "; it has 0 to 2"));
  std::filesystem::remove_all(root / "part-00001");
  EXPECT_EQ(check("0 --peers a:1"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(check("0,1 --peers a:1")));
  EXPECT_TRUE(absl::IsNotFound(check("all")));
  std::filesystem::remove(root / "store.json");
  EXPECT_TRUE(absl::IsNotFound(check("0 --peers a:1")));
}

TEST(ServeFlagsTest, TheTrainerReadsFromThePeersOrFromItsOwnServer) {
  const auto servers = [](const std::string& more) {
    return Parsed("--store s --partition all " + more).serve.Servers();
  };
  EXPECT_EQ(servers("--serve a:1 --peers b:2,a:1"), "b:2,a:1");
  EXPECT_EQ(servers("--serve a:1"), "a:1");
  EXPECT_EQ(servers("--serve 0.0.0.0:1"), "127.0.0.1:1");
  EXPECT_EQ(servers("--serve [::]:1"), "[::1]:1");
  EXPECT_EQ(servers("--serve 0.0.0.0:1 --advertise c:3"), "c:3");
}

TEST(ServeFlagsTest, TheServerGetsItsOptions) {
  const auto arguments = [](const std::string& line) {
    const Flags flags = Parsed(line);
    return flags.serve.ServerArguments(flags.source);
  };
  EXPECT_THAT(
      arguments("--store s --partition 0 --serve a:1"),
      ElementsAre("--store", "s", "--partition", "0", "--listen", "a:1"));
  EXPECT_THAT(
      arguments("--store s --partition 0,2 --serve a:1 --peers @f --advertise "
                "b:1 --plaintext --serve-config c --graph-memory ram "
                "--feature-memory cuda --gpus 1,2 --device-fallback forbid "
                "--cache-ratio 0.5 --threads 3"),
      ElementsAre("--config", "c", "--store", "s", "--partition", "0,2",
                  "--listen", "a:1", "--advertise", "b:1", "--peers", "@f",
                  "--plaintext", "--graph-memory", "ram", "--feature-memory",
                  "cuda", "--gpus", "1,2", "--device-fallback", "forbid"));
  EXPECT_THAT(arguments("--store s --partition 0 --serve a:1 --tls-cert c "
                        "--tls-key k --tls-ca a --tls-server-name n"),
              ElementsAre("--store", "s", "--partition", "0", "--listen", "a:1",
                          "--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a",
                          "--tls-server-name", "n"));
}

TEST(ServeFlagsTest, OptionsOfMemoryAreNotTheTrainers) {
  Flags flags = Parsed("--store s --graph-memory ram --cache-ratio 0.5");
  flags.source.ReadFromServers("a:1");
  const auto options = flags.source.Options();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->store, "");
  EXPECT_EQ(options->servers, "a:1");
  EXPECT_EQ(options->memory.graph, MemoryOptions().graph);
  EXPECT_EQ(options->cache_ratio, 0.5);
}

}  // namespace
}  // namespace millrace::testing
