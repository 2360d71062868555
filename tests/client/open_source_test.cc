// SPDX-License-Identifier: Apache-2.0
#include "client/open_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// Fetches `count` batches of a store at once, with so many threads; `done` runs
// on the threads that make them.
void FetchTogether(const std::string& store, int threads, int count,
                   const std::function<void()>& done) {
  SourceOptions options;
  options.store = store;
  options.threads = threads;
  const auto source = OpenSource(options);
  ASSERT_TRUE(source.ok()) << source.status();
  JobSpec spec;
  spec.fanouts = {1};
  const auto job = ResolveJob(spec, (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  std::latch left(count);
  for (int i = 0; i < count; ++i) {
    BatchRequest request;
    request.epoch = static_cast<uint32_t>(i);
    (*source)->Fetch(*job, request, [&](const absl::StatusOr<Batch>& batch) {
      EXPECT_TRUE(batch.ok()) << batch.status();
      done();
      left.count_down();
    });
  }
  left.wait();
}

TEST(OpenSourceTest, StoresAreReadByAsManyThreadsAsWanted) {
  const testing::TestStore store(testing::SmallGraph(), 2);
  for (const int threads : {1, 3}) {
    Mutex mutex;
    std::set<std::thread::id> seen;
    FetchTogether(store.path(), threads, 200, [&] {
      MutexLock lock(&mutex);
      seen.insert(std::this_thread::get_id());
    });
    EXPECT_LE(seen.size(), static_cast<size_t>(threads));
  }
  // Each waits until all are being made.
  std::latch meet(3);
  FetchTogether(store.path(), 3, 3, [&meet] { meet.arrive_and_wait(); });
}

TEST(OpenSourceTest, ThereIsAThreadForEachCoreByDefault) {
  const testing::TestStore store(testing::SmallGraph(), 2);
  const int cores =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::latch meet(cores);
  FetchTogether(store.path(), 0, cores, [&meet] { meet.arrive_and_wait(); });
}

TEST(OpenSourceTest, OneOfStoreAndServersMustBeGiven) {
  SourceOptions options;
  for (const bool both : {false, true}) {
    if (both) options.store = options.servers = "somewhere:7001";
    const absl::Status status = OpenSource(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("store"));
  }
}

TEST(OpenSourceTest, ServersAreConnectedTo) {
  testing::FleetHarness servers(testing::SmallGraph(), 2);
  SourceOptions options;
  options.servers = "@" + servers.list();
  const auto source = OpenSource(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->manifest().fingerprint,
            servers.store()->manifest().fingerprint);
}

// Nobody listens at this port.
TEST(OpenSourceTest, ServersAreWaitedForNoLongerThanWanted) {
  SourceOptions options;
  options.servers = "127.0.0.1:1";
  options.partition_wait = absl::ZeroDuration();
  const absl::Status status = OpenSource(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace millrace
