// SPDX-License-Identifier: Apache-2.0
// The importers: directories of files that are described and imported. Input:
// the format, options, then files, each as the number of a name and the
// length-prefixed content.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/check.h"
#include "common/graph/verify.h"
#include "common/ingest/formats/glt.h"
#include "common/ingest/formats/npy_graph.h"
#include "common/ingest/formats/ogb.h"
#include "common/ingest/formats/pyg.h"
#include "common/ingest/formats/reddit.h"
#include "common/ingest/formats/triples.h"
#include "common/ingest/formats/tu.h"
#include "common/ingest/importer.h"
#include "tests/fuzz/support/import_files.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

ImportOptions OptionsOf(uint8_t bits) {
  ImportOptions options;
  options.undirected = (bits & 1) != 0;
  options.coalesce = (bits & 2) != 0;
  options.add_reverse = (bits & 4) != 0;
  if ((bits & 8) != 0) options.self_loops = SelfLoops::kAdd;
  if ((bits & 16) != 0) options.split_fractions = {0.5, 0.25, 0.25};
  if ((bits & 32) != 0) options.normalize_features = Normalization::kRow;
  options.memory_bytes = 1 << 20;
  return options;
}

// The files that exist, under the names that NpyInput gives them.
NpyInput NpyOf(const std::filesystem::path& folder) {
  NpyInput input;
  input.edges = {{"", folder / "edges.npy"}};
  const auto take = [&](const char* name, NamedFiles& files) {
    if (std::filesystem::exists(folder / name)) files[""] = folder / name;
  };
  take("features.npy", input.features);
  take("labels.npy", input.labels);
  take("times.npy", input.node_times);
  take("edge_weights.npy", input.edge_weights);
  take("edge_times.npy", input.edge_times);
  take("train.npy", input.train);
  take("test.npy", input.test);
  return input;
}

absl::StatusOr<RawGraph> Describe(ImportFormat format,
                                  const std::filesystem::path& folder,
                                  const ImportOptions& options) {
  PartitionFolderInput partitions;
  partitions.directory = folder;
  partitions.restore = {.scratch = Scratch(), .memory_bytes = 1 << 16};
  switch (format) {
    case ImportFormat::kNpy:
      return OpenNpy(NpyOf(folder));
    case ImportFormat::kOgb:
      return OpenOgb({.directory = folder}, options);
    case ImportFormat::kTu:
      return OpenTu({.directory = folder});
    case ImportFormat::kTriples:
      return OpenTriples({.directory = folder});
    case ImportFormat::kReddit:
      return OpenReddit(folder, options);
    case ImportFormat::kPyg:
      return OpenPygPartitions(partitions, options);
    default:
      return OpenGltPartitions(partitions, options);
  }
}

void Run(Input input) {
  const std::filesystem::path folder = Scratch() / "in" / "DS-partitions";
  const std::filesystem::path dataset = Scratch() / "dataset";
  std::filesystem::remove_all(folder.parent_path());
  std::filesystem::remove_all(dataset);
  std::filesystem::create_directories(folder);
  const auto format = static_cast<ImportFormat>(input.Byte() % kImportFormats);
  const ImportOptions options = OptionsOf(input.Byte());
  const std::span<const std::string_view> names = ImportFiles(format);
  while (!input.empty()) {
    const std::string_view name = names[input.Byte() % names.size()];
    WriteScratch(folder / name, input.Piece());
  }
  const absl::StatusOr<RawGraph> graph = Describe(format, folder, options);
  if (!graph.ok()) return;
  if (!ImportGraph(*graph, options, dataset).ok()) return;
  const absl::Status sound = VerifyStore(dataset);
  MILLRACE_CHECK(sound.ok());
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
