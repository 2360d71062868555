// SPDX-License-Identifier: Apache-2.0
#include "client/open_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/fake_device_cache.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/known_memory.h"
#include "tests/support/pending_fetch.h"
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

// Whether so many batches are made at the same time: each waits for the others.
bool AllMeet(const std::string& store, int threads, int batches) {
  Notification all_here;
  std::atomic<int> here = 0;
  std::atomic<bool> met = true;
  FetchTogether(store, threads, batches, [&] {
    if (++here == batches) all_here.Notify();
    if (!all_here.WaitForNotificationWithTimeout(absl::Seconds(20))) {
      met = false;
    }
  });
  return met;
}

TEST(OpenSourceTest, UsesTheRequestedNumberOfThreads) {
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
  EXPECT_TRUE(AllMeet(store.path(), /*threads=*/3, /*batches=*/3));
}

TEST(OpenSourceTest, UsesOneThreadPerCoreByDefault) {
  const testing::TestStore store(testing::SmallGraph(), 2);
  const int cores =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_TRUE(AllMeet(store.path(), /*threads=*/0, cores));
}

TEST(OpenSourceTest, OneOfStoreAndServersMustBeGiven) {
  SourceOptions options;
  for (const bool both : {false, true}) {
    if (both) options.store = options.servers = "somewhere:7001";
    const absl::Status status = OpenSource(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(),
              "store is needed: give a store or servers to take batches from");
  }
}

TEST(OpenSourceTest, CachesOfStoresAreOnDevices) {
  const testing::TestStore store(testing::SmallGraph());
  SourceOptions options;
  options.store = store.path();
  EXPECT_TRUE(OpenSource(options).ok());
  options.cache_ratio = 0.25;
  const absl::Status cached = OpenSource(options).status();
  if (!cached.ok()) {
    EXPECT_TRUE(absl::IsFailedPrecondition(cached)) << cached;
    EXPECT_THAT(std::string(cached.message()), HasSubstr("CUDA"));
  }
  options.memory.features = MemoryTier::kRam;
  EXPECT_TRUE(absl::IsInvalidArgument(OpenSource(options).status()));
}

TEST(OpenSourceTest, OptionsOfServersReachThem) {
  SourceOptions options;
  options.servers = "127.0.0.1:1";
  for (const double ratio : {-0.1, 1.1, std::nan("")}) {
    options.cache_ratio = ratio;
    const absl::Status status = OpenSource(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(" is out of range: 0 to 1, a share of the rows"));
  }
  options.cache_ratio = 1;
  options.tls.ca = "/absent/ca.pem";
  const absl::Status tls = OpenSource(options).status();
  EXPECT_TRUE(absl::IsNotFound(tls)) << tls;
}

TEST(OpenSourceTest, AbsentStoresAreNamed) {
  SourceOptions options;
  options.store = "/absent/store";
  const absl::Status status = OpenSource(options).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/absent/store"));
}

TEST(OpenSourceTest, ConnectsToServers) {
  testing::FleetHarness servers(testing::SmallGraph(), 2);
  SourceOptions options;
  options.servers = "@" + servers.list();
  const auto source = OpenSource(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->manifest().fingerprint,
            servers.store()->manifest().fingerprint);
}

TEST(OpenSourceTest, CachesOfServersMayBeOnAGpu) {
  testing::FleetHarness servers(testing::SmallGraph(), 2);
  const auto gpu = std::make_shared<testing::FakeDeviceCache>();
  SourceOptions options;
  options.servers = "@" + servers.list();
  options.cache_ratio = 1;
  options.device_cache = gpu;
  const auto source = OpenSource(options);
  ASSERT_TRUE(source.ok()) << source.status();
  JobSpec spec;
  spec.fanouts = {1};
  const auto job = ResolveJob(spec, (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  BatchRequest request;
  request.memory = std::make_shared<testing::KnownMemory>(/*device=*/0);
  testing::PendingFetch fetch(**source, *job, request);
  ASSERT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
  EXPECT_EQ(fetch.Wait()->nodes[0].feature.device(), 0);
  EXPECT_EQ(gpu->held_rows(), (*source)->manifest().schema.node_types[0].count);
}

// Nobody listens at this port.
TEST(OpenSourceTest, WaitsForServersNoLongerThanRequested) {
  SourceOptions options;
  options.servers = "127.0.0.1:1";
  options.partition_wait = absl::ZeroDuration();
  const absl::Status status = OpenSource(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace millrace
