// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_assembler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/graph/store.h"
#include "common/sample/digest.h"
#include "common/sample/gather.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/wire/batch_layout.h"
#include "tests/support/known_memory.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A stream as a server would send it, made from a finished batch.
struct Sent {
  StreamLayout layout;
  std::vector<std::byte> bytes;
};

class BatchAssemblerTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    store_ = testing::TestStore(testing::RichGraph(), GetParam()).Open();
    source_ = LocalBatchSource::Create(store_, 1).value();

    JobSpec spec;
    spec.fanouts = {2, 2};
    spec.batch_size = 4;
    spec.split = store_->manifest().splits.at(0).name;
    spec.seed_type =
        store_->schema().node_types[store_->manifest().splits[0].type].name;
    auto job = ResolveJob(spec, store_->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
    request_.columns.original_ids = true;
    request_.columns.edge_ids = true;
    request_.columns.degrees = true;
    request_.columns.labels = LabelRows::kAll;
    auto batch = source_->Make(job_, request_);
    ASSERT_TRUE(batch.ok()) << batch.status();
    batch_ = *std::move(batch);
  }

  AssemblerRequest Asked(int home) const {
    return {.manifest = store_->manifest(),
            .job = job_,
            .request = request_,
            .home = home};
  }

  std::string ErrorOf(const StreamLayout& layout) const {
    return std::string(
        BatchAssembler::Create(Asked(0), layout).status().message());
  }

  // The status of an assembler that gets the whole stream.
  absl::Status Written(const Sent& sent) const {
    auto assembler = BatchAssembler::Create(Asked(0), sent.layout);
    return assembler.ok() ? assembler->Write(sent.bytes) : assembler.status();
  }

  Sent Send(int home, std::span<const uint64_t> cached = {}) const {
    const SentRows rows =
        SelectRows(batch_, store_->manifest(), request_.columns, home, cached);
    Sent sent;
    sent.layout = LayoutBatch(batch_,
                              {store_->manifest(), job_, request_.columns,
                               request_.explicit_seeds.has_value()},
                              rows);
    sent.layout.partition = home;
    sent.bytes.resize(sent.layout.total_bytes);
    for (const ArrayInfo& info : sent.layout.arrays) Copy(info, rows, sent);
    return sent;
  }

  void Copy(const ArrayInfo& info, const SentRows& rows, Sent& sent) const {
    std::byte* out = sent.bytes.data() + info.offset;
    const auto copy = [&](const void* data) {
      if (info.total_bytes() > 0) std::memcpy(out, data, info.total_bytes());
    };
    const BatchArray& description = Describe(info.kind);
    const Array array = description.Get(batch_, info.index);
    if (!description.is_column()) return copy(array.data());
    const size_t row_bytes =
        info.shape[0] > 0 ? info.total_bytes() / info.shape[0] : 0;
    for (const uint32_t row : rows.Of(description, info.index)) {
      std::memcpy(out, array.data() + row * row_bytes, row_bytes);
      out += row_bytes;
    }
  }

  std::shared_ptr<const Store> store_;  // shared with the source
  std::unique_ptr<LocalBatchSource> source_;
  ResolvedJob job_;
  BatchRequest request_;
  Batch batch_;
};

bool SameRow(const Array& a, const Array& b, size_t row) {
  return std::memcmp(a.data() + row * a.row_bytes(),
                     b.data() + row * b.row_bytes(), a.row_bytes()) == 0;
}

TEST_P(BatchAssemblerTest, PutsEveryByteInItsPlace) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1} << 20}) {
    // One assembler per home: together they must receive every row.
    std::vector<std::vector<int>> seen(batch_.nodes.size());
    for (int home = 0; home < store_->partition_count(); ++home) {
      const Sent sent = Send(home);
      auto assembler = BatchAssembler::Create(Asked(home), sent.layout);
      ASSERT_TRUE(assembler.ok()) << assembler.status();
      for (size_t at = 0; at < sent.bytes.size(); at += piece) {
        const size_t count = std::min(piece, sent.bytes.size() - at);
        ASSERT_TRUE(
            assembler->Write(std::span(sent.bytes).subspan(at, count)).ok());
      }
      ASSERT_TRUE(assembler->topology_done());
      ASSERT_TRUE(assembler->done());
      const Batch& got = assembler->batch();
      for (size_t t = 0; t < got.nodes.size(); ++t) {
        seen[t].resize(got.nodes[t].count());
        EXPECT_EQ(got.nodes[t].hop_offsets, batch_.nodes[t].hop_offsets);
        for (const uint32_t row : assembler->rows().home[t]) {
          ++seen[t][row];
          EXPECT_TRUE(SameRow(got.nodes[t].original_id,
                              batch_.nodes[t].original_id, row));
          EXPECT_TRUE(
              SameRow(got.nodes[t].degree, batch_.nodes[t].degree, row));
        }
        for (const uint32_t row : assembler->rows().feature[t]) {
          EXPECT_TRUE(
              SameRow(got.nodes[t].feature, batch_.nodes[t].feature, row));
        }
        for (const uint32_t row : assembler->rows().label[t]) {
          EXPECT_TRUE(SameRow(got.nodes[t].label, batch_.nodes[t].label, row));
        }
      }
    }
    for (const auto& rows : seen) {
      for (const int times : rows) EXPECT_EQ(times, 1);
    }
  }
}

// Copies the rows that `sent` lacks, as a client gathers them.
void FillOthers(const Array& from, const std::vector<uint32_t>& sent,
                Array& to) {
  for (int64_t row = 0; row < from.rows(); ++row) {
    if (std::binary_search(sent.begin(), sent.end(), row)) continue;
    std::memcpy(to.mutable_data() + row * from.row_bytes(),
                from.data() + row * from.row_bytes(), from.row_bytes());
  }
}

TEST_P(BatchAssemblerTest, MakesTheSameBatchOnceOtherRowsAreThere) {
  const Sent sent = Send(0);
  auto assembler = BatchAssembler::Create(Asked(0), sent.layout);
  ASSERT_TRUE(assembler.ok());
  ASSERT_TRUE(assembler->Write(sent.bytes).ok());
  Batch& got = assembler->batch();
  for (size_t t = 0; t < got.nodes.size(); ++t) {
    const SentRows& rows = assembler->rows();
    const NodeBlock& from = batch_.nodes[t];
    FillOthers(from.original_id, rows.home[t], got.nodes[t].original_id);
    FillOthers(from.feature, rows.feature[t], got.nodes[t].feature);
    FillOthers(from.label, rows.label[t], got.nodes[t].label);
  }
  EXPECT_EQ(DigestBatch(got, store_->schema()),
            DigestBatch(batch_, store_->schema()));
}

TEST_P(BatchAssemblerTest, ReceivesIntoTheMemoryOfTheRequest) {
  const auto memory = std::make_shared<testing::KnownMemory>(0);
  request_.memory = memory;
  const Sent sent = Send(0);
  auto assembler = BatchAssembler::Create(Asked(0), sent.layout);
  ASSERT_TRUE(assembler.ok());
  ASSERT_TRUE(assembler->Write(sent.bytes).ok());
  const Batch& got = assembler->batch();
  for (const NodeBlock& block : got.nodes) {
    for (const Array& array : {block.id, block.feature, block.label}) {
      EXPECT_TRUE(array.total_bytes() == 0 || memory->Owns(array.data()));
    }
  }
  for (const EdgeBlock& block : got.edges) {
    EXPECT_TRUE(memory->Owns(block.indptr.data()));
  }
}

TEST_P(BatchAssemblerTest, SkipsCachedFeatureRows) {
  const std::vector<uint64_t> all(batch_.nodes.size(), uint64_t{1} << 40);
  const SentRows rows =
      SelectRows(batch_, store_->manifest(), request_.columns, 0, all);
  for (const auto& feature : rows.feature) EXPECT_TRUE(feature.empty());
  const std::vector<uint64_t> one(batch_.nodes.size(), 1);
  const SentRows most =
      SelectRows(batch_, store_->manifest(), request_.columns, 0, one);
  for (size_t t = 0; t < most.feature.size(); ++t) {
    const uint64_t first = store_->book(static_cast<int>(t)).begin(0);
    for (const uint32_t row : most.feature[t]) {
      EXPECT_GT(batch_.nodes[t].id.IntegerAt(row), static_cast<int64_t>(first));
    }
  }
}

TEST_P(BatchAssemblerTest, TakesExplicitSeedsFromTheRequest) {
  request_.explicit_seeds.emplace();
  request_.explicit_seeds->ids.assign(batch_.seed.As<int64_t>().begin(),
                                      batch_.seed.As<int64_t>().end());
  const Sent sent = Send(0);
  auto assembler = BatchAssembler::Create(Asked(0), sent.layout);
  ASSERT_TRUE(assembler.ok()) << assembler.status();
  ASSERT_TRUE(assembler->Write(sent.bytes).ok());
  const auto seeds = assembler->batch().seed.As<int64_t>();
  EXPECT_TRUE(std::equal(seeds.begin(), seeds.end(),
                         request_.explicit_seeds->ids.begin()));
}

TEST_P(BatchAssemblerTest, RefusesAnswersToOtherRequests) {
  const Sent sent = Send(0);
  request_.columns.edge_ids = false;
  EXPECT_TRUE(absl::IsInvalidArgument(
      BatchAssembler::Create(Asked(0), sent.layout).status()));
  request_.columns.edge_ids = true;
  StreamLayout other = sent.layout;
  other.partition = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(
      BatchAssembler::Create(Asked(0), other).status()));
}

// A wrong array may come after the arrays that it is compared with.
TEST_P(BatchAssemblerTest, RefusesArraysWithoutShapeOrThatAreMissing) {
  const Sent sent = Send(0);
  const size_t count = sent.layout.arrays.size();
  for (size_t i = 0; i < count; ++i) {
    StreamLayout shapeless = sent.layout;
    shapeless.arrays[i].shape.clear();
    EXPECT_TRUE(absl::IsInvalidArgument(
        BatchAssembler::Create(Asked(0), shapeless).status()))
        << i;
    StreamLayout other = sent.layout;
    other.arrays[i].kind = ArrayKind::kRows;
    EXPECT_TRUE(absl::IsInvalidArgument(
        BatchAssembler::Create(Asked(0), other).status()))
        << i;
    StreamLayout missing = sent.layout;
    missing.arrays.erase(missing.arrays.begin() + static_cast<int64_t>(i));
    EXPECT_THAT(ErrorOf(missing),
                HasSubstr(absl::StrCat(count - 1, " arrays, not ", count)));
  }
  StreamLayout more = sent.layout;
  more.Append(ArrayKind::kRows, 0, DType::kUint8, {1});
  EXPECT_THAT(ErrorOf(more),
              HasSubstr(absl::StrCat(count + 1, " arrays, not ", count)));
}

// The layout `from` with one array of another length.
StreamLayout WithLength(const StreamLayout& from, size_t changed,
                        int64_t length) {
  StreamLayout to = from;
  to.arrays.clear();
  to.total_bytes = 0;
  for (size_t i = 0; i < from.arrays.size(); ++i) {
    const ArrayInfo& info = from.arrays[i];
    std::vector<int64_t> shape = info.shape;
    if (i == changed) shape[0] = length;
    to.Append(info.kind, info.index, info.dtype, std::move(shape));
  }
  return to;
}

TEST_P(BatchAssemblerTest, RefusesArraysThatAreTooLongOrTooShort) {
  const StreamLayout good = Send(0).layout;
  ASSERT_EQ(WithLength(good, 0, good.arrays[0].shape[0]), good);
  int compared = 0;
  for (size_t i = 0; i < good.arrays.size(); ++i) {
    const ArrayKind kind = good.arrays[i].kind;
    const int64_t length = good.arrays[i].shape[0];
    if (kind == ArrayKind::kIndptr) {
      EXPECT_THAT(ErrorOf(WithLength(good, i, 0)), HasSubstr("is empty"));
    }
    if (kind != ArrayKind::kSeed && kind != ArrayKind::kSeedToLocal &&
        kind != ArrayKind::kHopOffsets && kind != ArrayKind::kNeighbor &&
        kind != ArrayKind::kEdgeId) {
      continue;
    }
    ++compared;
    for (const int64_t wrong : {length - 1, length + 1}) {
      if (wrong < 0) continue;
      EXPECT_TRUE(absl::IsInvalidArgument(
          BatchAssembler::Create(Asked(0), WithLength(good, i, wrong))
              .status()))
          << "array " << static_cast<int>(kind) << " of " << wrong;
    }
  }
  EXPECT_GE(compared, 6);
}

// Pairs of all authors with one paper, and of one author with all papers, so
// that the two ends have different numbers of rows.
TEST_P(BatchAssemblerTest, RefusesSeedsInRowsOfOtherNodes) {
  JobSpec spec;
  spec.seed_kind = SeedKind::kEdge;
  spec.seed_type = "author__writes__paper";
  spec.split.clear();
  spec.fanouts = {2};
  spec.negatives = {NegativeMode::kBinary, 0.2};
  job_ = *ResolveJob(spec, store_->manifest());
  const std::vector<int64_t> many = {0, 1, 2, 3, 4}, one(many.size(), 0);
  for (const auto& [src, dst] : {std::pair(many, one), std::pair(one, many)}) {
    request_.explicit_seeds.emplace();
    request_.explicit_seeds->ids = src;
    request_.explicit_seeds->dst = dst;
    auto batch = source_->Make(job_, request_);
    ASSERT_TRUE(batch.ok()) << batch.status();
    batch_ = *std::move(batch);
    const Sent good = Send(0);
    int arrays = 0;
    for (const ArrayInfo& info : good.layout.arrays) {
      const bool of_src = info.kind == ArrayKind::kSeedToLocal ||
                          info.kind == ArrayKind::kNegativeSrcLocal;
      const bool of_dst = info.kind == ArrayKind::kDstLocal ||
                          info.kind == ArrayKind::kNegativeLocal;
      if (!of_src && !of_dst) continue;
      ++arrays;
      const uint32_t rows = batch_.nodes[of_src ? 0 : 1].hop_offsets[1];
      for (const uint32_t row : {rows - 1, rows}) {
        Sent sent = good;
        std::memcpy(sent.bytes.data() + info.offset, &row, sizeof row);
        auto assembler = BatchAssembler::Create(Asked(0), sent.layout);
        ASSERT_TRUE(assembler.ok()) << assembler.status();
        EXPECT_EQ(assembler->Write(sent.bytes).ok(), row < rows)
            << "array " << static_cast<int>(info.kind);
      }
    }
    EXPECT_EQ(arrays, 4);
  }
}

// Overwrites an element of an array, the first array of its kind that has any.
template <typename T>
void Overwrite(ArrayKind kind, T value, Sent& sent, int64_t element = 0) {
  for (const ArrayInfo& info : sent.layout.arrays) {
    if (info.kind != kind || info.shape[0] <= element) continue;
    ASSERT_EQ(ItemBytes(info.dtype), sizeof(T));
    std::memcpy(sent.bytes.data() + info.offset + element * sizeof(T), &value,
                sizeof(T));
    return;
  }
  ADD_FAILURE() << "no such array";
}

TEST_P(BatchAssemblerTest, RefusesNumbersOutOfTheirRanges) {
  const auto make = [this](const std::function<void(JobSpec&)>& set) {
    JobSpec spec = job_.spec;
    set(spec);
    job_ = *ResolveJob(spec, store_->manifest());
    batch_ = *source_->Make(job_, request_);
    const Sent sent = Send(0);
    EXPECT_TRUE(Written(sent).ok()) << Written(sent);
    return sent;
  };
  const auto refuses = [this](Sent sent, ArrayKind kind, auto value) {
    Overwrite(kind, value, sent);
    return absl::IsInvalidArgument(Written(sent));
  };
  constexpr uint32_t kHuge = 1 << 30;
  const Sent trees = make([](JobSpec& spec) { spec.disjoint = true; });
  const auto seeds = static_cast<uint32_t>(batch_.seed.rows());
  EXPECT_FALSE(refuses(trees, ArrayKind::kTree, seeds - 1));
  EXPECT_TRUE(refuses(trees, ArrayKind::kTree, seeds));
  EXPECT_TRUE(refuses(trees, ArrayKind::kNodeId, kHuge));
  EXPECT_TRUE(refuses(trees, ArrayKind::kNeighbor, kHuge));
  EXPECT_TRUE(refuses(trees, ArrayKind::kIndptr, uint32_t{1}));
  EXPECT_TRUE(refuses(trees, ArrayKind::kHopOffsets, uint32_t{1}));
  EXPECT_TRUE(refuses(trees, ArrayKind::kSeedToLocal, kHuge));
  const Sent walks = make([](JobSpec& spec) {
    spec.disjoint = false;
    spec.method = SampleMethod::kWalk;
    spec.fanouts = {};
    spec.walks = 2;
    spec.walk_length = 3;
    spec.metapath = {"paper__cites__paper"};
  });
  const auto papers =
      static_cast<int32_t>(batch_.nodes[batch_.seed_type].count());
  EXPECT_FALSE(refuses(walks, ArrayKind::kWalks, papers - 1));
  EXPECT_TRUE(refuses(walks, ArrayKind::kWalks, papers));
  EXPECT_FALSE(refuses(walks, ArrayKind::kWalks, int32_t{-1}));
  EXPECT_TRUE(refuses(walks, ArrayKind::kWalks, int32_t{-2}));
  EXPECT_FALSE(refuses(walks, ArrayKind::kEdgeHop, uint8_t{2}));
  EXPECT_TRUE(refuses(walks, ArrayKind::kEdgeHop, uint8_t{3}));
}

// The job's seeds are papers; their neighbours are found in the first hop.
TEST_P(BatchAssemblerTest, NodesOfOtherTypesAreNotSeeds) {
  const Sent good = Send(0);
  int others = 0;
  for (const ArrayInfo& info : good.layout.arrays) {
    if (info.kind != ArrayKind::kHopOffsets || info.index == job_.seed_type) {
      continue;
    }
    const uint32_t first_hop = batch_.nodes[info.index].hop_offsets[2];
    ASSERT_GT(first_hop, 0u);
    Sent sent = good;
    std::memcpy(sent.bytes.data() + info.offset + sizeof first_hop, &first_hop,
                sizeof first_hop);
    const absl::Status status = Written(sent);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    ++others;
  }
  EXPECT_EQ(others, 1);
}

TEST_P(BatchAssemblerTest, RefusesSeedsWhoseTypeIsNotTheJobs) {
  const TypeIndex other = 1 - batch_.seed_type;
  Sent sent = Send(0);
  for (const ArrayInfo& info : sent.layout.arrays) {
    if (info.kind != ArrayKind::kHopOffsets || info.index != other) continue;
    const uint32_t count = batch_.nodes[other].count();
    ASSERT_GT(count, 0u);
    // The array looks as if all rows had been present from the start.
    for (int64_t i = 1; i < info.shape[0]; ++i) {
      std::memcpy(sent.bytes.data() + info.offset + i * sizeof count, &count,
                  sizeof count);
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Written(sent)));
}

TEST_P(BatchAssemblerTest, RefusesMoreBytesThanAnnounced) {
  Sent sent = Send(0);
  sent.bytes.push_back({});
  EXPECT_THAT(std::string(Written(sent).message()), HasSubstr("has more"));
}

// They are refused before memory is allocated for them.
TEST_P(BatchAssemblerTest, RefusesImpossibleCounts) {
  const Sent sent = Send(0);
  for (const ArrayKind kind : {ArrayKind::kNodeId, ArrayKind::kSeedToLocal}) {
    StreamLayout layout = sent.layout;
    uint64_t more = 0;
    for (ArrayInfo& info : layout.arrays) {
      info.offset += more;
      const bool seeds =
          kind == ArrayKind::kSeedToLocal && info.kind == ArrayKind::kSeed;
      if ((info.kind != kind && !seeds) || info.index != 0) continue;
      info.shape[0] += 1000;
      more += 1000 * ItemBytes(info.dtype);
    }
    layout.total_bytes += more;
    EXPECT_THAT(
        BatchAssembler::Create(Asked(0), layout).status().message(),
        HasSubstr(kind == ArrayKind::kNodeId ? "more nodes than there are"
                                             : "the wrong number of seeds"));
  }
}

TEST_P(BatchAssemblerTest, RefusesMoreThanTheLimit) {
  const Sent sent = Send(0);
  AssemblerRequest asked = Asked(0);
  asked.max_bytes = sent.layout.total_bytes - 1;
  const absl::Status status =
      BatchAssembler::Create(asked, sent.layout).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_EQ(GetFieldError(status)->field, "batch_size");
}

// The rows that a client has cached are not sent, but belong to the batch.
TEST_P(BatchAssemblerTest, RefusesBatchesThatBecomeLargerThanTheLimit) {
  const std::vector<uint64_t> all(batch_.nodes.size(), uint64_t{1} << 40);
  const Sent sent = Send(0, all);
  uint64_t topology = 0, columns = 0;
  for (const ArrayInfo& info : sent.layout.arrays) {
    const BatchArray& array = Describe(info.kind);
    if (array.is_column()) {
      const Array whole = array.Get(batch_, info.index);
      columns += whole.rows() * whole.row_bytes();
    } else {
      topology = info.offset + info.total_bytes();
    }
  }
  ASSERT_LT(sent.layout.total_bytes, topology + columns - 1);
  for (const uint64_t missing : {0, 1}) {
    AssemblerRequest asked = Asked(0);
    asked.cached_rows = all;
    asked.max_bytes = topology + columns - missing;
    auto assembler = BatchAssembler::Create(asked, sent.layout);
    ASSERT_TRUE(assembler.ok()) << assembler.status();
    const absl::Status written = assembler->Write(sent.bytes);
    EXPECT_EQ(written.code(), missing == 0 ? absl::StatusCode::kOk
                                           : absl::StatusCode::kOutOfRange)
        << written;
  }
}

TEST_P(BatchAssemblerTest, RefusesMoreThanTheAvailableMemory) {
  Sent sent = Send(0);
  sent.layout.total_bytes = uint64_t{1} << 60;
  AssemblerRequest asked = Asked(0);
  asked.max_bytes = uint64_t{1} << 62;
  const absl::Status status =
      BatchAssembler::Create(asked, sent.layout).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), "out_of_memory");
}

// Rows that the stream does not carry are not among the bytes that it
// announces.
TEST_P(BatchAssemblerTest, RefusesRowsOfOthersBeyondTheAvailableMemory) {
  constexpr int64_t kWidth = int64_t{1} << 48;
  const std::vector<uint64_t> all(batch_.nodes.size(), uint64_t{1} << 40);
  Sent sent = Send(0, all);
  Manifest manifest = store_->manifest();
  for (NodeType& type : manifest.schema.node_types) {
    if (type.feature.present()) type.feature.row_shape = {kWidth};
  }
  for (ArrayInfo& info : sent.layout.arrays) {
    if (info.kind == ArrayKind::kNodeFeature) info.shape = {0, kWidth};
  }
  const AssemblerRequest asked = {.manifest = manifest,
                                  .job = job_,
                                  .request = request_,
                                  .home = 0,
                                  .cached_rows = all,
                                  .max_bytes = uint64_t{1} << 62};
  auto assembler = BatchAssembler::Create(asked, sent.layout);
  ASSERT_TRUE(assembler.ok()) << assembler.status();
  const absl::Status status = assembler->Write(sent.bytes);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), "out_of_memory");
}

TEST_P(BatchAssemblerTest, ErrorsSayWhatDisagrees) {
  const Sent good = Send(0);
  StreamLayout other = good.layout;
  other.partition = 1;
  EXPECT_EQ(ErrorOf(other),
            "the stream has 2 hops, seed type 1 and partition 1; the request "
            "was for 2, 1 and 0");
  other = good.layout;
  other.hops = 3;
  EXPECT_EQ(ErrorOf(other),
            "the stream has 3 hops, seed type 1 and partition 0; the request "
            "was for 2, 1 and 0");
  other = good.layout;
  other.seed_type = 0;
  EXPECT_EQ(ErrorOf(other),
            "the stream has 2 hops, seed type 0 and partition 0; the request "
            "was for 2, 1 and 0");
  const auto error_with = [&](ArrayKind kind, uint32_t value) {
    Sent sent = good;
    Overwrite(kind, value, sent);
    return std::string(Written(sent).message());
  };
  EXPECT_THAT(error_with(ArrayKind::kNodeId, 7),
              ::testing::MatchesRegex(
                  "the nodes of type (author|paper) are inconsistent"));
  EXPECT_EQ(error_with(ArrayKind::kSeedToLocal, 7),
            "a seed's local id is not that of a seed");
  EXPECT_THAT(error_with(ArrayKind::kNeighbor, 7),
              ::testing::MatchesRegex("the edges of [a-z_]+ are inconsistent"));
  Sent longer = good;
  longer.bytes.push_back({});
  EXPECT_EQ(Written(longer).message(),
            absl::StrCat("the stream has more than the announced ",
                         good.layout.total_bytes, " bytes"));
}

TEST_P(BatchAssemblerTest, SurvivesDamagedStreams) {
  const Sent good = Send(0);
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    Sent sent = good;
    for (int flips = 0; flips < 4; ++flips) {
      sent.bytes[random() % sent.bytes.size()] =
          static_cast<std::byte>(random());
    }
    auto assembler = BatchAssembler::Create(Asked(0), sent.layout);
    ASSERT_TRUE(assembler.ok());
    // The result must be either an error, or a batch whose numbers are in
    // range.
    if (!assembler->Write(sent.bytes).ok()) continue;
    const Batch& batch = assembler->batch();
    for (size_t r = 0; r < batch.edges.size(); ++r) {
      const EdgeBlock& edges = batch.edges[r];
      const auto indptr = edges.indptr.As<uint32_t>();
      EXPECT_TRUE(std::is_sorted(indptr.begin(), indptr.end()));
      EXPECT_EQ(indptr.front(), 0u);
      EXPECT_EQ(indptr.back(), edges.edge_count());
      const Relation& relation = store_->schema().relations[r];
      const uint32_t count =
          batch.nodes[NeighborType(relation, batch.direction)].count();
      for (const uint32_t neighbor : edges.neighbor.As<uint32_t>()) {
        EXPECT_LT(neighbor, count);
      }
    }
    for (const uint32_t local : batch.seed_to_local.As<uint32_t>()) {
      EXPECT_LT(local, batch.nodes[batch.seed_type].hop_offsets[1]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Partitions, BatchAssemblerTest,
                         ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace millrace
