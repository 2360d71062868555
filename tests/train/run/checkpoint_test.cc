// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/checkpoint.h"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/train/run/checkpoint_writer.h"
#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/file/file.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Checkpoint Sample() {
  Checkpoint checkpoint;
  checkpoint.model = {
      {"convs.0.bias", at::arange(4, at::kFloat)},
      {"norms.0.module.num_batches_tracked", at::full({}, 7, at::kLong)}};
  checkpoint.optimizer = {{"exp_avg.convs.0.bias", at::full({4}, 0.5)}};
  checkpoint.ranks = {{"norms.0.module.running_mean", at::full({2, 3}, 0.25)}};
  checkpoint.identity = {{"--fanouts", "15,10"}, {"--batch-size", "32"}};
  checkpoint.counters = {{"epoch", 3}, {"next_batch", int64_t{1} << 40}};
  checkpoint.values = {{"loss_sum", 0.1}};
  return checkpoint;
}

TEST(CheckpointTest, ReadsWhatItWrote) {
  const std::string bytes = SerializeCheckpoint(Sample()).value();
  const Checkpoint read = ParseCheckpoint(bytes, "file").value();
  const Checkpoint want = Sample();
  ASSERT_EQ(read.model.size(), 2u);
  EXPECT_EQ(read.model[0].name, "convs.0.bias");
  EXPECT_TRUE(read.model[0].tensor.equal(want.model[0].tensor));
  EXPECT_EQ(read.model[1].tensor.item().toLong(), 7);
  EXPECT_TRUE(read.optimizer[0].tensor.equal(want.optimizer[0].tensor));
  EXPECT_TRUE(read.ranks[0].tensor.equal(want.ranks[0].tensor));
  EXPECT_EQ(read.identity, want.identity);
  EXPECT_EQ(read.counters, want.counters);
  EXPECT_EQ(read.values, want.values);
}

// The relations of a knowledge graph need this many with Adam.
TEST(CheckpointTest, ReadsManyTensors) {
  const std::filesystem::path path = TestDirectory("many") / "last.pt";
  Checkpoint checkpoint = Sample();
  for (int i = 0; i < 40'000; ++i) {
    checkpoint.optimizer.push_back(
        {absl::StrCat("exp_avg.rel.", i), at::full({1, 2}, i, at::kFloat)});
  }
  ASSERT_TRUE(WriteCheckpoint(path, checkpoint).ok());
  const std::string content = ReadFile(path, 1 << 30).value();
  const auto read = ParseCheckpoint(content, path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->optimizer.size(), checkpoint.optimizer.size());
  for (size_t i = 0; i < read->optimizer.size(); ++i) {
    ASSERT_EQ(read->optimizer[i].name, checkpoint.optimizer[i].name);
    ASSERT_TRUE(
        read->optimizer[i].tensor.equal(checkpoint.optimizer[i].tensor));
  }
}

// Tied weights share a storage, and so do the parts of a fused weight.
TEST(CheckpointTest, ReadsTensorsThatShareAStorage) {
  Checkpoint checkpoint = Sample();
  const at::Tensor whole = at::arange(6, at::kFloat).view({2, 3});
  checkpoint.model = {{"a", whole}, {"b", whole}, {"c", whole.t()}};
  const std::string bytes = SerializeCheckpoint(checkpoint).value();
  const Checkpoint read = ParseCheckpoint(bytes, "file").value();
  ASSERT_EQ(read.model.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(read.model[i].tensor.equal(checkpoint.model[i].tensor));
  }
}

TEST(CheckpointTest, DamageIsDataLoss) {
  std::string bytes = SerializeCheckpoint(Sample()).value();
  bytes.resize(bytes.size() / 2);
  const auto read = ParseCheckpoint(bytes, "/run/last.pt");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(read.status().message().find("/run/last.pt"),
            absl::string_view::npos);
}

// The byte may be in a tensor, the dictionary, or the records of the zip file.
TEST(CheckpointTest, DetectsAnyChangedByte) {
  const std::string whole = SerializeCheckpoint(Sample()).value();
  const Checkpoint want = Sample();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    const auto read = ParseCheckpoint(bytes, "last.pt");
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
      continue;
    }
    // The byte has no meaning: padding, or a time.
    ASSERT_EQ(SerializeCheckpoint(*read).value(), whole) << "byte " << at;
  }
}

TEST(CheckpointTest, NamesTheDamagedPart) {
  std::string bytes = SerializeCheckpoint(Sample()).value();
  const float half[] = {0.5, 0.5, 0.5, 0.5};
  const auto* pattern = reinterpret_cast<const char*>(half);
  const auto found =
      std::search(bytes.begin(), bytes.end(), pattern, pattern + sizeof(half));
  ASSERT_NE(found, bytes.end());
  *found = 1;
  const absl::Status status = ParseCheckpoint(bytes, "last.pt").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("last.pt: entry archive/data/2"), HasSubstr("checksum")));
  EXPECT_EQ(ReasonOf(status), "unreadable_checkpoint");
}

TEST(CheckpointTest, NamesTheFieldThatDiffers) {
  auto wanted = Sample().identity;
  EXPECT_TRUE(CheckSameIdentity(Sample().identity, wanted).ok());
  wanted["--batch-size"] = "64";
  const absl::Status status = CheckSameIdentity(Sample().identity, wanted);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "batch_size 64: the checkpoint was made with 32");
  EXPECT_EQ(ReasonOf(status), "other_batch_size");
  // Fields that an older checkpoint does not mention were not given.
  wanted = Sample().identity;
  wanted["--feature-dtype"] = "";
  EXPECT_TRUE(CheckSameIdentity(Sample().identity, wanted).ok());
  wanted["--feature-dtype"] = "bfloat16";
  EXPECT_THAT(
      std::string(CheckSameIdentity(Sample().identity, wanted).message()),
      HasSubstr("feature_dtype bfloat16: the checkpoint was made with none"));
  wanted = Sample().identity;
  wanted["classes"] = "7";
  EXPECT_EQ(CheckSameIdentity(Sample().identity, wanted).message(),
            "classes 7: the checkpoint was made with none");
}

// The bytes of a file of torch.save, whatever it holds.
std::string Saved(const c10::IValue& value) {
  std::string pickled;
  torch::jit::Pickler pickler(
      [&pickled](const char* data, size_t size) { pickled.append(data, size); },
      /*tensor_table=*/nullptr, /*type_renamer=*/nullptr,
      /*memoized_class_types=*/nullptr, /*get_tensor_id=*/nullptr,
      /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer(
      [&bytes](const void* data, size_t size) {
        bytes.append(static_cast<const char*>(data), size);
        return size;
      });
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  int number = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    const auto storage = torch::jit::getWriteableTensorData(tensor);
    writer.writeRecord(absl::StrCat("data/", number++), storage.data(),
                       storage.sizeInBytes());
  }
  writer.writeEndOfFile();
  return bytes;
}

using Dict = c10::impl::GenericDict;

Dict NewDict() { return Dict(c10::StringType::get(), c10::AnyType::get()); }

// What a checkpoint must hold at least.
Dict Fields() {
  Dict fields = NewDict();
  fields.insert("format", "millrace checkpoint");
  fields.insert("version", int64_t{1});
  for (const char* key :
       {"model", "optimizer", "identity", "counters", "values"}) {
    fields.insert(key, NewDict());
  }
  return fields;
}

std::string Unread(const Dict& fields) {
  const auto read = ParseCheckpoint(Saved(fields), "last.pt");
  EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
  return std::string(read.status().message());
}

TEST(ForeignCheckpointTest, NamesTheFieldThatIsMissingOrOfAnotherKind) {
  EXPECT_TRUE(ParseCheckpoint(Saved(Fields()), "last.pt").ok());
  for (const auto& [key, kind] :
       {std::pair("format", "a string"), std::pair("version", "an integer"),
        std::pair("model", "a dictionary"),
        std::pair("optimizer", "a dictionary"),
        std::pair("identity", "a dictionary"),
        std::pair("counters", "a dictionary"),
        std::pair("values", "a dictionary")}) {
    Dict fields = Fields();
    EXPECT_EQ(fields.erase(key), 1u);
    EXPECT_THAT(Unread(fields),
                HasSubstr(absl::StrCat("\"", key, "\" is missing")));
    fields = Fields();
    fields.insert_or_assign(key, 0.5);
    EXPECT_THAT(Unread(fields), HasSubstr(absl::StrCat("\"", key, "\" is ")));
    EXPECT_THAT(Unread(fields), HasSubstr(absl::StrCat(", not ", kind)));
  }
  // Old files have no "ranks".
  Dict fields = Fields();
  fields.insert("ranks", 0.5);
  EXPECT_THAT(Unread(fields), HasSubstr("\"ranks\" is "));
}

TEST(ForeignCheckpointTest, NamesAnotherFormatOrVersion) {
  Dict fields = Fields();
  fields.insert_or_assign("format", "another");
  EXPECT_THAT(Unread(fields),
              HasSubstr("its format is \"another\", version 1; only "
                        "\"millrace checkpoint\", version 1 is supported"));
  for (const int64_t version : {0, 2}) {
    fields = Fields();
    fields.insert_or_assign("version", version);
    EXPECT_THAT(Unread(fields),
                HasSubstr(absl::StrCat("version ", version, "; only")));
  }
}

TEST(ForeignCheckpointTest, CountersHaveLimits) {
  constexpr int64_t kMost = int64_t{1} << 53;
  const auto with = [](const c10::IValue& count) {
    Dict counters = NewDict();
    counters.insert("step", count);
    Dict fields = Fields();
    fields.insert_or_assign("counters", counters);
    return fields;
  };
  for (const int64_t count : {int64_t{0}, kMost}) {
    const auto read = ParseCheckpoint(Saved(with(count)), "last.pt");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->counters.at("step"), count);
  }
  for (const int64_t count : {int64_t{-1}, kMost + 1}) {
    EXPECT_THAT(
        Unread(with(count)),
        HasSubstr(absl::StrCat("counter \"step\" is ", count,
                               ", which is not in the range 0 to ", kMost)));
  }
  EXPECT_THAT(Unread(with("many")), HasSubstr("\"counters\" has "));
}

TEST(ForeignCheckpointTest, ValuesAreSingleNumbers) {
  Dict values = NewDict();
  values.insert("loss_sum", at::arange(2, at::kDouble));
  Dict fields = Fields();
  fields.insert_or_assign("values", values);
  EXPECT_THAT(Unread(fields), HasSubstr("\"loss_sum\" has shape [2], but must "
                                        "be one number"));
  values.insert_or_assign("loss_sum", at::full({1}, 0.25, at::kDouble));
  EXPECT_EQ(ParseCheckpoint(Saved(fields), "last.pt")->values.at("loss_sum"),
            0.25);
}

TEST(ForeignCheckpointTest, TextsHaveALimit) {
  const auto with = [](size_t bytes) {
    Dict identity = NewDict();
    identity.insert("--lr", std::string(bytes, 'x'));
    Dict fields = Fields();
    fields.insert_or_assign("identity", identity);
    return fields;
  };
  constexpr size_t kMost = size_t{16} << 20;
  EXPECT_TRUE(ParseCheckpoint(Saved(with(kMost)), "last.pt").ok());
  EXPECT_THAT(Unread(with(kMost + 1)),
              HasSubstr("the texts of \"identity\" have more than 16777216 "
                        "bytes"));
}

TEST(ForeignCheckpointTest, AnEmptyFileIsNone) {
  const absl::Status status = ParseCheckpoint({}, "last.pt").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(), "the checkpoint last.pt is empty");
  EXPECT_EQ(ReasonOf(status), "unreadable_checkpoint");
}

// A checkpoint that its counter identifies.
Checkpoint OfEpoch(int64_t epoch) {
  Checkpoint checkpoint = Sample();
  checkpoint.counters["epoch"] = epoch;
  return checkpoint;
}

int64_t EpochIn(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto read = ParseCheckpoint(bytes, path);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->counters.at("epoch") : -1;
}

int64_t FilesIn(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(CheckpointTest, KeepsOnlyItsPartOfAView) {
  Checkpoint checkpoint;
  const at::Tensor whole = at::arange(1 << 20, at::kFloat);
  checkpoint.model = {{"row", whole.narrow(0, 7, 3)}};
  const std::string bytes = SerializeCheckpoint(checkpoint).value();
  EXPECT_LT(bytes.size(), 10000u);
  const Checkpoint read = ParseCheckpoint(bytes, "file").value();
  EXPECT_TRUE(read.model[0].tensor.equal(whole.narrow(0, 7, 3)));
}

TEST(CheckpointTest, ReplacesTheFileAtomically) {
  const std::filesystem::path folder = TestDirectory("replace");
  ASSERT_TRUE(WriteCheckpoint(folder / "last.pt", OfEpoch(1)).ok());
  // A killed process left a longer fragment of another checkpoint.
  std::ofstream(TemporaryOf(folder / "last.pt")) << std::string(100000, 'x');
  ASSERT_TRUE(WriteCheckpoint(folder / "last.pt", OfEpoch(2)).ok());
  EXPECT_EQ(EpochIn(folder / "last.pt"), 2);
  EXPECT_EQ(FilesIn(folder), 1);
}

TEST(CheckpointTest, FullDiskLeavesTheOldFile) {
  const std::filesystem::path folder = TestDirectory("full");
  const std::filesystem::path path = folder / "last.pt";
  ASSERT_TRUE(WriteCheckpoint(path, OfEpoch(1)).ok());
  std::filesystem::create_symlink("/dev/full", TemporaryOf(path));
  const absl::Status status = WriteCheckpoint(path, OfEpoch(2));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(path.string()), HasSubstr("No space left on device")));
  EXPECT_EQ(ReasonOf(status), "checkpoint_not_written");
  EXPECT_EQ(EpochIn(path), 1);
  EXPECT_EQ(FilesIn(folder), 1);
}

TEST(CheckpointTest, NamesTheFolderThatIsGone) {
  const std::filesystem::path folder = TestDirectory("gone");
  std::filesystem::remove(folder);
  const absl::Status status = WriteCheckpoint(folder / "last.pt", OfEpoch(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr((folder / "last.pt").string()));
}

// Writes that wait until the test allows them; records what was written.
class SlowDisk {
 public:
  absl::Status operator()(const std::filesystem::path& path,
                          const Checkpoint& checkpoint) {
    MutexLock lock(&mutex_);
    ++begun_;
    changed_.NotifyAll();
    changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return allowed_ > 0;
    });
    --allowed_;
    if (!error_.ok()) return error_;
    written_.push_back(absl::StrCat(path.filename().string(), " ",
                                    checkpoint.counters.at("epoch")));
    return absl::OkStatus();
  }
  void Allow(int writes) {
    MutexLock lock(&mutex_);
    allowed_ += writes;
    changed_.NotifyAll();
  }
  void FailFromNowOn() { SetError(absl::ResourceExhaustedError("full")); }
  void Recover() { SetError(absl::OkStatus()); }
  void AwaitBegun(int writes) {
    MutexLock lock(&mutex_);
    changed_.Wait(&mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return begun_ >= writes;
    });
  }
  std::vector<std::string> written() {
    MutexLock lock(&mutex_);
    return written_;
  }

 private:
  void SetError(absl::Status error) {
    MutexLock lock(&mutex_);
    error_ = std::move(error);
  }

  Mutex mutex_;
  CondVar changed_;
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> written_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<CheckpointWriter> OpenOn(SlowDisk& disk, const char* name) {
  return CheckpointWriter::Open(TestDirectory(name), /*resume=*/false,
                                std::ref(disk))
      .value();
}

void SaveEpoch(CheckpointWriter& writer, int64_t epoch, bool best = false) {
  writer.Save(std::make_shared<Checkpoint>(OfEpoch(epoch)), best);
}

TEST(CheckpointWriterTest, OnlyTheNewestIsQueued) {
  SlowDisk disk;
  const auto writer = OpenOn(disk, "newest_waits");
  SaveEpoch(*writer, 1);
  disk.AwaitBegun(1);
  for (const int64_t epoch : {2, 3, 4}) SaveEpoch(*writer, epoch);
  disk.Allow(2);
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_THAT(disk.written(), ElementsAre("last.pt 1", "last.pt 4"));
}

TEST(CheckpointWriterTest, BestIsWrittenDespiteNewerCheckpoints) {
  SlowDisk disk;
  const auto writer = OpenOn(disk, "best_waits");
  SaveEpoch(*writer, 1);
  disk.AwaitBegun(1);
  SaveEpoch(*writer, 2, /*best=*/true);
  SaveEpoch(*writer, 3);
  disk.Allow(3);
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_THAT(disk.written(),
              ElementsAre("last.pt 1", "best.pt 2", "last.pt 3"));
}

TEST(CheckpointWriterTest, DestructorWritesPendingCheckpoints) {
  SlowDisk disk;
  auto writer = OpenOn(disk, "destructor");
  SaveEpoch(*writer, 1);
  disk.AwaitBegun(1);
  SaveEpoch(*writer, 2);
  disk.Allow(2);
  writer.reset();
  EXPECT_THAT(disk.written(), ElementsAre("last.pt 1", "last.pt 2"));
}

TEST(CheckpointWriterTest, NothingIsWrittenAfterTheFirstError) {
  SlowDisk disk;
  const auto writer = OpenOn(disk, "first_error");
  disk.Allow(9);
  SaveEpoch(*writer, 1);
  EXPECT_TRUE(writer->Finish().ok());
  disk.FailFromNowOn();
  SaveEpoch(*writer, 2);
  EXPECT_EQ(writer->Finish().message(), "full");
  // Nothing is written even if there is room again.
  disk.Recover();
  SaveEpoch(*writer, 3, /*best=*/true);
  EXPECT_EQ(writer->Finish().message(), "full");
  EXPECT_EQ(writer->status().message(), "full");
  disk.AwaitBegun(2);
  EXPECT_THAT(disk.written(), ElementsAre("last.pt 1"));
}

TEST(CheckpointWriterTest, RemovesWhatAKilledRunLeft) {
  const std::filesystem::path folder = TestDirectory("left");
  for (const char* name : {"last.pt", "best.pt"}) {
    std::ofstream(TemporaryOf(folder / name)) << "half of";
  }
  ASSERT_TRUE(CheckpointWriter::Open(folder, /*resume=*/false).ok());
  EXPECT_EQ(FilesIn(folder), 0);
}

TEST(CheckpointWriterTest, KeepsAnotherRunsCheckpoints) {
  for (const char* name : {"last.pt", "best.pt"}) {
    const std::filesystem::path folder = TestDirectory("earlier");
    std::ofstream(folder / name) << "of weeks";
    const absl::Status refused =
        CheckpointWriter::Open(folder, /*resume=*/false).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(refused.message()),
        HasSubstr((folder / name).string() + " is from an earlier run"));
    EXPECT_TRUE(CheckpointWriter::Open(folder, /*resume=*/true).ok());
    EXPECT_EQ(std::filesystem::file_size(folder / name), 8);
  }
}

TEST(CheckpointWriterTest, RefusesAFolderThatAnotherRunWrites) {
  const std::filesystem::path folder = TestDirectory("locked") / "new";
  auto first = CheckpointWriter::Open(folder, /*resume=*/false);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second =
      CheckpointWriter::Open(folder, /*resume=*/false).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(folder.string()));
  first->reset();
  EXPECT_TRUE(CheckpointWriter::Open(folder, /*resume=*/false).ok());
}

}  // namespace
}  // namespace millrace::testing
