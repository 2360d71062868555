// SPDX-License-Identifier: Apache-2.0
#include "client/remote/feature_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "tests/support/fake_device_cache.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::FakeDeviceCache;
using ::testing::HasSubstr;

using FeaturesOr = absl::StatusOr<std::shared_ptr<const CachedFeatures>>;

enum CitationType : TypeIndex { kPaper, kVenue, kAuthor, kTopic };

// Papers with features; venues with other features, so few that the last
// partition has none; authors without features; topics that no edge reaches.
Manifest CitationManifest() {
  Manifest manifest;
  manifest.schema.node_types = {
      {.name = "paper",
       .count = 60,
       .feature = {DType::kFloat32, {5}},
       .has_hotness = true},
      {.name = "venue",
       .count = 2,
       .feature = {DType::kFloat32, {3}},
       .has_hotness = true},
      {.name = "author", .count = 10, .has_hotness = true},
      {.name = "topic",
       .count = 4,
       .feature = {DType::kFloat32, {2}},
       .has_hotness = true}};
  manifest.schema.relations = {
      {.src = kPaper, .name = "cites", .dst = kPaper},
      {.src = kVenue, .name = "prints", .dst = kPaper},
      {.src = kAuthor, .name = "writes", .dst = kPaper}};
  manifest.books = {PartitionBook({0, 21, 40, 60}), PartitionBook({0, 1, 2, 2}),
                    PartitionBook({0, 3, 6, 10}), PartitionBook({0, 2, 3, 4})};
  return manifest;
}

// A job whose batches have papers and all types that edges start from.
ResolvedJob WideJob() {
  ResolvedJob job;
  job.seed_type = kPaper;
  job.fanouts = {{3, 2}, {3, 2}, {3, 2}};
  return job;
}

// A job whose batches have papers only.
ResolvedJob PaperJob() {
  ResolvedJob job = WideJob();
  for (Fanouts& fanouts : job.fanouts) fanouts = {0, 0};
  return job;
}

// The value of every byte of a row; never 0.
int RowByte(TypeIndex type, uint64_t id, DType dtype) {
  return 1 +
         static_cast<int>((31 * type + 7 * id + static_cast<int>(dtype)) % 250);
}

// Delivers rows in place of a fleet.
// Threads: any; Gather() one at a time.
class FakeRows {
 public:
  using Row = std::tuple<TypeIndex, DType, uint64_t>;

  explicit FakeRows(const Manifest& manifest) : manifest_(manifest) {}

  FeatureCache::Gather Gather() {
    return [this](std::vector<RowRequest> requests) {
      return Deliver(std::move(requests));
    };
  }

  // Lets a test decide how the next requests end, and when.
  void BeforeEach(std::function<absl::Status()> act) {
    before_ = std::move(act);
  }

  std::set<Row> delivered() const {
    MutexLock lock(&mutex_);
    return delivered_;
  }

 private:
  absl::Status Deliver(std::vector<RowRequest> requests) {
    if (before_ != nullptr) {
      const absl::Status status = before_();
      if (!status.ok()) return status;
    }
    MutexLock lock(&mutex_);
    for (RowRequest& request : requests) {
      const PartitionBook& book = manifest_.books[request.type];
      const DType dtype = request.target.dtype();
      for (size_t i = 0; i < request.ids.size(); ++i) {
        const uint64_t id = request.ids[i];
        EXPECT_EQ(book.Owner(id), request.partition);
        EXPECT_TRUE(delivered_.emplace(request.type, dtype, id).second)
            << "row " << id << " was requested twice";
        const size_t bytes = request.target.row_bytes();
        std::memset(request.target.mutable_data() + request.rows[i] * bytes,
                    RowByte(request.type, id, dtype), bytes);
      }
    }
    return absl::OkStatus();
  }

  const Manifest& manifest_;
  std::function<absl::Status()> before_;
  mutable Mutex mutex_;
  std::set<Row> delivered_ ABSL_GUARDED_BY(mutex_);
};

// What MoveToDevice() makes of the features of a batch of nodes of one of the
// types.
Array Moved(const CachedFeatures& features, size_t types, TypeIndex type,
            const Array& ids, const Array& target) {
  Batch batch;
  batch.nodes.resize(types);
  NodeBlock& block = batch.nodes[type];
  block.id = ids;
  block.feature = target;
  const absl::Status moved = features.MoveToDevice(batch);
  EXPECT_TRUE(moved.ok()) << moved;
  EXPECT_FALSE(block.feature.on_host());
  EXPECT_EQ(block.feature.shape(), target.shape());
  return FakeDeviceCache::OnHost(block.feature);
}

// A cache of half of the rows.
class FeatureCacheTest : public ::testing::Test {
 protected:
  static FeaturesOr Get(FeatureCache& cache, const ResolvedJob& job,
                        DType cast = DType::kNone) {
    FeaturesOr result;
    Notification done;
    cache.Get(job, cast, [&](FeaturesOr features) {
      result = std::move(features);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  }

  std::unique_ptr<FeatureCache> NewCache(
      FakeRows& rows,
      std::shared_ptr<DeviceCache> device_cache = nullptr) const {
    return std::make_unique<FeatureCache>(manifest_, 0.5, rows.Gather(),
                                          std::move(device_cache));
  }

  // Half of the nodes that a partition owns, rounded up.
  uint64_t HalfOf(TypeIndex type, int partition) const {
    const PartitionBook& book = manifest_.books[type];
    return (book.end(partition) - book.begin(partition) + 1) / 2;
  }

  bool IsHeld(TypeIndex type, uint64_t id) const {
    const PartitionBook& book = manifest_.books[type];
    const int owner = book.Owner(id);
    return id < book.begin(owner) + HalfOf(type, owner);
  }

  // The cached rows of a type.
  std::set<FakeRows::Row> HeldRows(TypeIndex type, DType dtype) const {
    std::set<FakeRows::Row> rows;
    for (uint64_t id = 0; id < manifest_.books[type].node_count(); ++id) {
      if (IsHeld(type, id)) rows.emplace(type, dtype, id);
    }
    return rows;
  }

  // Copies the rows of all nodes of a type, and returns how many are wrong:
  // different from what was delivered, or written although not cached.
  int WrongRows(const CachedFeatures& features, TypeIndex type,
                DType dtype) const {
    const uint64_t count = manifest_.books[type].node_count();
    std::vector<uint64_t> ids(count);
    std::iota(ids.begin(), ids.end(), uint64_t{0});
    const auto rows = static_cast<int64_t>(count);
    Array target = Array::Allocate(
        dtype, {rows, manifest_.schema.node_types[type].feature.row_shape[0]});
    std::memset(target.mutable_data(), 0, target.total_bytes());
    const Array all =
        Array::Borrow(DType::kUint64, {rows}, ids.data(), nullptr);
    if (features.on_host()) {
      features.CopyRows(type, all, target);
    } else {
      target = Moved(features, manifest_.books.size(), type, all, target);
    }
    int wrong = 0;
    for (const uint64_t id : ids) {
      const std::byte* row = target.data() + id * target.row_bytes();
      const auto want = static_cast<std::byte>(
          IsHeld(type, id) ? RowByte(type, id, dtype) : 0);
      const bool right =
          std::all_of(row, row + target.row_bytes(),
                      [want](std::byte byte) { return byte == want; });
      if (!right) ++wrong;
    }
    return wrong;
  }

  const Manifest manifest_ = CitationManifest();
};

TEST_F(FeatureCacheTest,
       RequestsTheFirstRowsOfEachPartitionOfReachedTypesOnce) {
  FakeRows rows(manifest_);
  const auto cache = NewCache(rows);
  const FeaturesOr features = Get(*cache, WideJob());
  ASSERT_TRUE(features.ok()) << features.status();
  for (const TypeIndex type : {kPaper, kVenue}) {
    for (int part = 0; part < manifest_.partition_count(); ++part) {
      EXPECT_EQ((*features)->CountsOf(part)[type], HalfOf(type, part));
    }
    const PartitionBook& book = manifest_.books[type];
    for (uint64_t id = 0; id < book.node_count(); ++id) {
      EXPECT_EQ((*features)->Holds(type, book.Owner(id), id), IsHeld(type, id));
    }
  }
  EXPECT_FALSE((*features)->Holds(kAuthor, 0, 0));
  EXPECT_FALSE((*features)->Holds(kTopic, 0, 0));
  std::set<FakeRows::Row> want = HeldRows(kPaper, DType::kFloat32);
  want.merge(HeldRows(kVenue, DType::kFloat32));
  EXPECT_EQ(rows.delivered(), want);
}

TEST_F(FeatureCacheTest, CountsRowsThatBatchesFindAndMiss) {
  FakeRows rows(manifest_);
  const auto cache = NewCache(rows);
  const FeaturesOr features = Get(*cache, PaperJob());
  ASSERT_TRUE(features.ok()) << features.status();
  EXPECT_EQ(cache->counts().hits + cache->counts().misses, 0u);
  EXPECT_EQ(WrongRows(**features, kPaper, DType::kFloat32), 0);
  const size_t held = HeldRows(kPaper, DType::kFloat32).size();
  const uint64_t all = manifest_.books[kPaper].node_count();
  EXPECT_EQ(cache->counts().hits, held);
  EXPECT_EQ(cache->counts().misses, all - held);
}

TEST_F(FeatureCacheTest, JobsOfTheSameTypesFetchNothingMore) {
  FakeRows rows(manifest_);
  const auto cache = NewCache(rows);
  ResolvedJob job = WideJob();
  ASSERT_TRUE(Get(*cache, job).ok());
  const std::set<FakeRows::Row> delivered = rows.delivered();
  job.spec.seed = 7;
  EXPECT_TRUE(Get(*cache, job).ok());
  EXPECT_TRUE(Get(*cache, PaperJob()).ok());
  EXPECT_TRUE(Get(*cache, PaperJob(), DType::kFloat32).ok());
  EXPECT_EQ(rows.delivered(), delivered);
}

TEST_F(FeatureCacheTest, CopiesTheRowsThatItHolds) {
  for (const bool on_host : {true, false}) {
    FakeRows rows(manifest_);
    const auto cache =
        NewCache(rows, on_host ? nullptr : std::make_shared<FakeDeviceCache>());
    for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
      const FeaturesOr features = Get(*cache, WideJob(), dtype);
      ASSERT_TRUE(features.ok()) << features.status();
      EXPECT_EQ((*features)->on_host(), on_host);
      EXPECT_EQ(WrongRows(**features, kPaper, dtype), 0);
      EXPECT_EQ(WrongRows(**features, kVenue, dtype), 0);
    }
  }
}

TEST_F(FeatureCacheTest, FailsIfAGpuDoes) {
  FakeRows rows(manifest_);
  const auto gpu = std::make_shared<FakeDeviceCache>();
  const auto cache = NewCache(rows, gpu);
  const absl::Status status = absl::UnavailableError("not now");
  gpu->FailWrite(status);
  EXPECT_EQ(Get(*cache, PaperJob()).status(), status);
}

TEST_F(FeatureCacheTest, RefusesMoreThanNineTenthsOfAGpu) {
  // 31 papers of 20 bytes, and two venues of 12.
  for (const auto& [free, job, fits] :
       std::vector<std::tuple<uint64_t, ResolvedJob, bool>>{
           {700, PaperJob(), true},
           {700, WideJob(), false},
           {720, WideJob(), true}}) {
    FakeRows rows(manifest_);
    const auto gpu = std::make_shared<FakeDeviceCache>(/*device=*/2);
    gpu->SetFreeBytes(free);
    const auto cache = NewCache(rows, gpu);
    const absl::Status status = Get(*cache, job).status();
    EXPECT_EQ(status.ok(), fits) << status;
    if (fits) continue;
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(status.message(),
              "cache_ratio 0.5: would hold 33 rows of features, 644 bytes; the "
              "limit is nine tenths of the memory that CUDA device 2 has free "
              "now, 630 bytes");
    EXPECT_EQ(rows.delivered().size(), 0);
  }
}

TEST_F(FeatureCacheTest, SaysWhyAGpuHasNoRoom) {
  FakeRows rows(manifest_);
  const auto gpu = std::make_shared<FakeDeviceCache>();
  const auto cache = NewCache(rows, gpu);
  gpu->FailAllocation(absl::ResourceExhaustedError("needs 7 of 5\nadvice"));
  const absl::Status status = Get(*cache, PaperJob()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(), "cache_ratio 0.5: needs 7 of 5");
  gpu->FailAllocation(absl::OkStatus());
  EXPECT_TRUE(Get(*cache, PaperJob()).ok());
}

TEST_F(FeatureCacheTest, SharesOfPartitionsAreRounded) {
  ASSERT_EQ(manifest_.books[kPaper].end(0), 21);
  const std::vector<std::pair<double, uint64_t>> shares = {
      {0.06, 1}, {0.1, 2}, {0.11, 2}, {0.12, 3}, {1, 21}};
  for (const auto& [ratio, count] : shares) {
    FakeRows rows(manifest_);
    FeatureCache cache(manifest_, ratio, rows.Gather());
    const FeaturesOr features = Get(cache, PaperJob());
    ASSERT_TRUE(features.ok()) << features.status();
    EXPECT_EQ((*features)->CountsOf(0)[kPaper], count) << ratio;
  }
}

TEST_F(FeatureCacheTest, BothEndsOfSeedEdgesAreReached) {
  constexpr RelationIndex kPrints = 1;  // venues print papers
  ResolvedJob job = PaperJob();
  job.seed_relation = kPrints;
  FakeRows rows(manifest_);
  const auto cache = NewCache(rows);
  ASSERT_TRUE(Get(*cache, job).ok());
  std::set<FakeRows::Row> want = HeldRows(kPaper, DType::kFloat32);
  want.merge(HeldRows(kVenue, DType::kFloat32));
  EXPECT_EQ(rows.delivered(), want);
}

TEST_F(FeatureCacheTest, FailedFetchIsTriedAgain) {
  FakeRows rows(manifest_);
  absl::Status status = absl::UnavailableError("not now");
  rows.BeforeEach([&status] { return status; });
  const auto cache = NewCache(rows);
  EXPECT_EQ(Get(*cache, WideJob()).status(), status);
  status = absl::OkStatus();
  EXPECT_TRUE(Get(*cache, WideJob()).ok());
}

TEST_F(FeatureCacheTest, RefusesMoreThanTheMemoryAndNamesBothSizes) {
  constexpr uint64_t kNodes = uint64_t{1} << 40;
  Manifest manifest;
  manifest.schema.node_types = {{.name = "node",
                                 .count = kNodes,
                                 .feature = {DType::kFloat32, {1000}},
                                 .has_hotness = true}};
  manifest.books = {PartitionBook({0, kNodes / 4, kNodes})};
  FeatureCache cache(manifest, 0.25, [](const std::vector<RowRequest>&) {
    ADD_FAILURE() << "rows were asked for";
    return absl::OkStatus();
  });
  const absl::Status status = Get(cache, ResolvedJob()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("cache_ratio 0.25: would hold 274877906944 "
                                 "rows of features, 1000.0 TiB"));
  EXPECT_THAT(message, HasSubstr("memory that is available now, "));
}

// What a call asks for: a partition, the first id, and the number of rows.
using Piece = std::tuple<int, uint64_t, size_t>;

// Fetches all rows of a node type and returns what the calls ask for, in
// rounds. Expects each row to be where the cache looks for it.
std::vector<std::vector<Piece>> PiecesOf(
    const ColumnSpec& feature, std::vector<uint64_t> offsets,
    const std::shared_ptr<DeviceCache>& device_cache = nullptr) {
  Manifest manifest;
  const auto count = static_cast<int64_t>(offsets.back());
  manifest.schema.node_types = {{.name = "node",
                                 .count = count,
                                 .feature = feature,
                                 .has_hotness = true}};
  manifest.books = {PartitionBook(std::move(offsets))};
  std::vector<std::vector<Piece>> rounds;
  FakeRows rows(manifest);
  const auto gather = [&](std::vector<RowRequest> requests) {
    auto& round = rounds.emplace_back();
    for (const RowRequest& request : requests) {
      EXPECT_FALSE(request.ids.empty());
      round.emplace_back(request.partition, request.ids.front(),
                         request.ids.size());
    }
    return rows.Gather()(std::move(requests));
  };
  FeatureCache cache(manifest, 1, gather, device_cache);
  Notification done;
  cache.Get(ResolvedJob(), DType::kNone, [&](const FeaturesOr& features) {
    ASSERT_TRUE(features.ok()) << features.status();
    std::vector<uint64_t> ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), uint64_t{0});
    Array target =
        Array::Allocate(feature.dtype, {count, feature.row_shape[0]});
    const Array all =
        Array::Borrow(DType::kUint64, {count}, ids.data(), nullptr);
    if (device_cache == nullptr) {
      (*features)->CopyRows(0, all, target);
    } else {
      target = Moved(**features, 1, 0, all, target);
    }
    const size_t bytes = target.row_bytes();
    for (const uint64_t id : ids) {
      const std::byte* row = target.data() + id * bytes;
      const auto want = static_cast<std::byte>(RowByte(0, id, feature.dtype));
      ASSERT_TRUE(row[0] == want && row[bytes - 1] == want) << "row " << id;
    }
    done.Notify();
  });
  cache.Close();  // waits for the rows
  EXPECT_TRUE(done.HasBeenNotified());
  return rounds;
}

// A call requests at most 16 MiB of rows (two here); the next rows of each
// partition follow in the next round.
TEST(FeaturePiecesTest, LargeRowsAreFetchedAFewAtATime) {
  const ColumnSpec eight_mebibytes = {DType::kFloat32, {2 << 20}};
  for (const bool on_host : {true, false}) {
    EXPECT_THAT(
        PiecesOf(eight_mebibytes, {0, 5, 7},
                 on_host ? nullptr : std::make_shared<FakeDeviceCache>()),
        ElementsAre(ElementsAre(Piece(0, 0, 2), Piece(1, 5, 2)),
                    ElementsAre(Piece(0, 2, 2)), ElementsAre(Piece(0, 4, 1))));
  }
}

TEST(FeaturePiecesTest, HugeRowsAreFetchedOneByOne) {
  const ColumnSpec twenty_mebibytes = {DType::kFloat32, {5 << 20}};
  EXPECT_THAT(PiecesOf(twenty_mebibytes, {0, 1, 3}),
              ElementsAre(ElementsAre(Piece(0, 0, 1), Piece(1, 1, 1)),
                          ElementsAre(Piece(1, 2, 1))));
}

TEST(FeaturePiecesTest, NoCallAsksForMoreThanAMillionRows) {
  constexpr size_t kMost = 1048576;
  EXPECT_THAT(
      PiecesOf({DType::kUint8, {1}}, {0, kMost + 1, kMost + 3}),
      ElementsAre(ElementsAre(Piece(0, 0, kMost), Piece(1, kMost + 1, 2)),
                  ElementsAre(Piece(0, kMost, 1))));
}

// While the rows of one job are fetched, 1024 other jobs may wait, each for a
// different set of node types.
TEST(FeatureCacheQueueTest, OneJobTooManyIsRefused) {
  constexpr int kRelations = 11;
  constexpr uint32_t kWaiting = 1024;
  Manifest manifest;
  for (int t = 0; t <= kRelations; ++t) {
    manifest.schema.node_types.push_back({.name = "node",
                                          .count = 1,
                                          .feature = {DType::kFloat32, {1}},
                                          .has_hotness = true});
    manifest.books.push_back(PartitionBook({0, 1}));
  }
  for (int r = 0; r < kRelations; ++r) {
    manifest.schema.relations.push_back({.src = r + 1, .name = "to", .dst = 0});
  }
  Notification fetching, release;
  FeatureCache cache(manifest, 1, [&](const std::vector<RowRequest>&) {
    if (!fetching.HasBeenNotified()) fetching.Notify();
    release.WaitForNotification();
    return absl::OkStatus();
  });
  // Job n reaches the sources of the relations that are bits of n.
  std::vector<absl::Status> ends(kWaiting + 2, absl::UnknownError("waits"));
  const auto get = [&](uint32_t n) {
    ResolvedJob job;
    for (int r = 0; r < kRelations; ++r) {
      job.fanouts.push_back({(n >> r & 1) != 0 ? 1 : 0});
    }
    cache.Get(job, DType::kNone,
              [&ends, n](const FeaturesOr& end) { ends[n] = end.status(); });
  };
  get(0);
  fetching.WaitForNotification();
  for (uint32_t n = 1; n <= kWaiting; ++n) get(n);
  EXPECT_THAT(ends, ::testing::Each(absl::UnknownError("waits")));
  get(kWaiting + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(ends.back())) << ends.back();
  release.Notify();
  cache.Close();
  ends.pop_back();
  EXPECT_THAT(ends, ::testing::Each(absl::OkStatus()));
}

// Threads ask for features, which the cache's own thread fetches.
class FeatureCacheThreadsTest : public FeatureCacheTest {
 protected:
  static constexpr int kThreads = 4;

  // Runs `act(thread)` on several threads at the same time.
  static void Race(const std::function<void(int)>& act) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(act, i);
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_F(FeatureCacheThreadsTest, EveryWaiterGetsTheFetchedRows) {
  FakeRows rows(manifest_);
  Notification all_wait;
  rows.BeforeEach([&all_wait] {
    all_wait.WaitForNotification();
    return absl::OkStatus();
  });
  std::atomic<int> answers = 0;
  std::atomic<int> wrong = 0;
  const auto cache = NewCache(rows);
  Race([&](int) {
    cache->Get(PaperJob(), DType::kNone, [&](const FeaturesOr& features) {
      ++answers;
      wrong +=
          features.ok() ? WrongRows(**features, kPaper, DType::kFloat32) : 1;
    });
  });
  EXPECT_EQ(answers, 0);
  all_wait.Notify();
  cache->Close();  // waits for the fetch
  EXPECT_EQ(answers, kThreads);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rows.delivered(), HeldRows(kPaper, DType::kFloat32));
}

TEST_F(FeatureCacheThreadsTest, RowsAreReadWhileOthersAreFetchedOrFail) {
  for (int round = 0; round < 20; ++round) {
    FakeRows rows(manifest_);
    int requests = 0;  // used by the cache's thread
    // A status without a message has no reference count. ThreadSanitizer cannot
    // see all of the counting of others, part of which is inside Debian's
    // Abseil.
    rows.BeforeEach([&requests] {
      return ++requests % 3 == 0 ? absl::UnavailableError("")
                                 : absl::OkStatus();
    });
    std::atomic<int> wrong = 0;
    const auto cache = NewCache(rows);
    Race([&](int thread) {
      for (int i = 0; i < 6; ++i) {
        const bool wide = (thread + i) % 2 == 0;
        const DType dtype = i % 3 == 0 ? DType::kFloat32 : DType::kFloat16;
        const FeaturesOr features =
            Get(*cache, wide ? WideJob() : PaperJob(), dtype);
        if (!features.ok()) {
          if (!absl::IsUnavailable(features.status())) ++wrong;
          continue;
        }
        wrong += WrongRows(**features, kPaper, dtype);
        if (wide) wrong += WrongRows(**features, kVenue, dtype);
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(FeatureCacheThreadsTest, CloseAnswersEveryWaiterOnce) {
  for (int round = 0; round < 50; ++round) {
    FakeRows rows(manifest_);
    Notification closing;
    rows.BeforeEach([&closing] {
      closing.WaitForNotification();
      return absl::CancelledError("closing");
    });
    std::atomic<int> answers[kThreads] = {};
    std::atomic<int> cancelled = 0;
    const auto cache = NewCache(rows);
    Race([&](int thread) {
      // The second half waits for the fetch of the first half.
      cache->Get(thread % 2 == 0 ? WideJob() : PaperJob(), DType::kNone,
                 [&, thread](const FeaturesOr& features) {
                   ++answers[thread];
                   if (absl::IsCancelled(features.status())) ++cancelled;
                 });
    });
    closing.Notify();
    Race([&](int) { cache->Close(); });
    EXPECT_EQ(cancelled, kThreads);
    for (const std::atomic<int>& count : answers) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace millrace
