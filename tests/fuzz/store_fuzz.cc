// SPDX-License-Identifier: Apache-2.0
// Damaged stores: opened, verified and, if they open, sampled. Input: a job,
// then patches, each the number of a file of RichStore(), an offset, and bytes.
// If the highest bit of the job is set, the checksums are made to fit.
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/fuzz/support/checksummed_manifest.h"
#include "tests/fuzz/support/graph.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

// A file of the store and its undamaged content.
struct StoredFile {
  std::filesystem::path path;
  std::string bytes;
  bool damaged = false;

  void Write(std::string_view content) const {
    std::ofstream(path, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
};

// A store that can be damaged and repaired.
class Patient {
 public:
  Patient() : root_(Scratch() / "patient") {
    BuildRichStore(root_);
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root_)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files_.push_back(
          {entry.path(), {std::istreambuf_iterator<char>(in), {}}});
    }
    // A file must have the same number in every process.
    std::sort(files_.begin(), files_.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    while (files_[manifest_].path.filename() != "store.json") ++manifest_;
  }

  const std::filesystem::path& root() const { return root_; }

  void Damage(Input& input) {
    StoredFile& file = files_[input.Byte() % files_.size()];
    const size_t offset = input.Short();
    const std::string_view patch = input.Take(input.Byte());
    std::string bytes = Content(file);
    if (offset >= bytes.size()) return;
    // A patch past the end makes the file longer; an empty one cuts it off.
    bytes.resize(patch.empty() ? offset
                               : std::max(bytes.size(), offset + patch.size()));
    std::copy(patch.begin(), patch.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    file.Write(file.path.filename() == "store.json" ? WithChecksum(bytes)
                                                    : bytes);
    file.damaged = true;
  }

  // Writes store.json as if the files had always been as they are now.
  void Seal() {
    absl::StatusOr<Manifest> manifest =
        ParseManifest(files_[manifest_].bytes, files_[manifest_].path.native());
    MILLRACE_CHECK(manifest.ok());
    for (const StoredFile& file : files_) {
      if (!file.damaged) continue;
      const std::string path =
          file.path.lexically_relative(root_).generic_string();
      for (FileInfo& info : manifest->files) {
        if (info.path != path) continue;
        const std::string bytes = Content(file);
        info.bytes = bytes.size();
        info.xxh3 = XXH3_64bits(bytes.data(), bytes.size());
      }
    }
    SetFingerprints(*manifest);
    files_[manifest_].Write(FormatManifest(*manifest));
    files_[manifest_].damaged = true;
  }

  void Heal() {
    for (StoredFile& file : files_) {
      if (file.damaged) file.Write(file.bytes);
      file.damaged = false;
    }
  }

 private:
  static std::string Content(const StoredFile& file) {
    if (!file.damaged) return file.bytes;
    std::ifstream in(file.path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::filesystem::path root_;
  std::vector<StoredFile> files_;
  size_t manifest_ = 0;  // its index
};

void Sample(const std::shared_ptr<const Store>& store, const FuzzJob& asked) {
  const auto job = ResolveJob(asked.spec, store->manifest());
  if (!job.ok() || !CheckColumns(asked.columns, store->schema()).ok()) return;
  static constexpr int kThreads = 1;
  auto source = LocalBatchSource::Create(store, kThreads);
  if (!source.ok()) return;
  for (uint32_t batch = 0; batch < 2; ++batch) {
    (void)(*source)->Make(*job, {.batch = batch,
                                 .explicit_seeds = asked.explicit_seeds,
                                 .columns = asked.columns});
  }
}

void Run(Input input) {
  // Never destroyed: Scratch() removes its files.
  static auto* const patient = new Patient();
  const uint8_t choice = input.Byte();
  const bool sealed = (choice & 0x80) != 0;
  const FuzzJob& job = RichJobs()[(choice & 0x7f) % RichJobs().size()];
  while (!input.empty()) patient->Damage(input);
  if (sealed) patient->Seal();
  if (auto store = Store::Open(patient->root()); store.ok()) {
    Sample(*std::move(store), job);
  }
  // Without correct checksums VerifyStore() would find only that they are
  // wrong.
  if (sealed) (void)VerifyStore(patient->root());
  patient->Heal();
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
