// SPDX-License-Identifier: Apache-2.0
// .npz files: the reader, and the importers that use it.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/store.h"
#include "common/ingest/formats/ogb.h"
#include "common/ingest/formats/reddit.h"
#include "common/ingest/importer.h"
#include "common/ingest/split_import.h"
#include "common/table/npz_rows.h"
#include "common/table/zip_archive.h"
#include "tests/support/python.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Sizes and formulas from make_npz.py.
constexpr int64_t kNodes = 50, kEdges = 70000;
int64_t Src(int64_t edge) { return edge * 7 % kNodes; }
int64_t Dst(int64_t edge) { return edge * edge % kNodes; }

class NpzTest : public testing::DirectoryTest {
 protected:
  static void SetUpTestSuite() {
    inputs_ =
        new std::filesystem::path(std::filesystem::temp_directory_path() /
                                  ("millrace-npz-" + std::to_string(getpid())));
    std::filesystem::create_directories(*inputs_);
    status_ = testing::RunPython(MILLRACE_PYTHON, "ingest/formats/make_npz.py",
                                 {inputs_->string()});
  }
  static void TearDownTestSuite() {
    std::filesystem::remove_all(*inputs_);
    delete inputs_;
  }

  void SetUp() override {
    DirectoryTest::SetUp();
    ASSERT_EQ(status_, 0);
  }

  absl::StatusOr<std::unique_ptr<Store>> Import(
      const absl::StatusOr<RawGraph>& graph) {
    if (!graph.ok()) return graph.status();
    const auto manifest = ImportGraph(*graph, {}, directory_ / "out");
    if (!manifest.ok()) return manifest.status();
    return Store::Open(directory_ / "out");
  }
  absl::StatusOr<std::unique_ptr<Store>> ImportReddit(const char* folder) {
    return Import(OpenReddit(*inputs_ / folder, {}));
  }

  static inline std::filesystem::path* inputs_ = nullptr;
  static inline int status_ = 0;
};

// (source, destination) by edge id.
std::vector<std::pair<int64_t, int64_t>> Edges(const Store& store) {
  const NeighborLists& in = store.partition(0)->edges[0].in;
  std::vector<std::pair<int64_t, int64_t>> edges(
      static_cast<size_t>(in.indices.rows()));
  const auto indptr = in.indptr.As<int64_t>();
  for (int64_t node = 0; node + 1 < in.indptr.rows(); ++node) {
    for (int64_t i = indptr[node]; i < indptr[node + 1]; ++i) {
      edges[in.edge_id.As<int64_t>()[i]] = {in.indices.IntegerAt(i), node};
    }
  }
  return edges;
}

std::vector<std::pair<int64_t, int64_t>> FileEdges() {
  std::vector<std::pair<int64_t, int64_t>> edges;
  for (int64_t i = 0; i < kEdges; ++i) edges.emplace_back(Src(i), Dst(i));
  return edges;
}

void ExpectNodes(const Store& store) {
  const auto feature = store.partition(0)->nodes[0].feature.As<float>();
  ASSERT_EQ(feature.size(), 2 * kNodes);
  for (int64_t node = 0; node < kNodes; ++node) {
    EXPECT_EQ(feature[2 * node], static_cast<float>(node) / 2);
    EXPECT_EQ(feature[2 * node + 1], static_cast<float>(node) / 4);
  }
}

TEST_F(NpzTest, ReadsRedditOfAnySparseFormat) {
  for (const char* folder : {"coo", "stored", "csr", "csc"}) {
    SCOPED_TRACE(folder);
    const auto store = ImportReddit(folder);
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectNodes(**store);
    const auto label = (*store)->partition(0)->nodes[0].label.As<int64_t>();
    EXPECT_EQ(label[17], 2);
    const auto valid = (*store)->FindSplit(0, "valid");
    ASSERT_TRUE(valid.ok());
    EXPECT_EQ((*valid)->original_id.rows(), 12);
    EXPECT_EQ((*valid)->original_id.As<int64_t>()[1], 6);
    std::vector<std::pair<int64_t, int64_t>> edges = Edges(**store);
    std::vector<std::pair<int64_t, int64_t>> expected = FileEdges();
    if (std::string(folder).starts_with("cs")) {
      // Edges are in the order of the matrix, which differs.
      std::sort(edges.begin(), edges.end());
      std::sort(expected.begin(), expected.end());
    }
    EXPECT_TRUE(edges == expected);
    std::filesystem::remove_all(directory_ / "out");
  }
}

TEST_F(NpzTest, ReadsBinaryOgbFolders) {
  for (const char* folder : {"papers", "papers_stored"}) {
    SCOPED_TRACE(folder);
    const auto store = Import(OpenOgb({*inputs_ / folder, "", {}}, {}));
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectNodes(**store);
    EXPECT_TRUE(Edges(**store) == FileEdges());
    const Partition& part = *(*store)->partition(0);
    EXPECT_TRUE(std::isnan(part.nodes[0].label.As<float>()[2]));
    EXPECT_EQ(part.nodes[0].label.As<float>()[13], 6);
    EXPECT_EQ(part.nodes[0].time.As<int64_t>()[3], 2003);
    EXPECT_TRUE((*store)->schema().relations[0].has_weight);
    EXPECT_THAT((*(*store)->FindSplit(0, "test"))->original_id.As<int64_t>(),
                ElementsAreArray({5, 15}));
    std::filesystem::remove_all(directory_ / "out");
  }
}

// Columns that may be absent, under either of their names.
TEST_F(NpzTest, ReadsOptionalColumnsOfBinaryOgbFolders) {
  auto store = Import(OpenOgb({*inputs_ / "plain", "", {}}, {}));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->schema().node_types[0].feature.present());
  EXPECT_FALSE((*store)->schema().node_types[0].has_time);
  EXPECT_FALSE((*store)->schema().relations[0].has_weight);
  EXPECT_FALSE((*store)->schema().relations[0].feature.present());
  for (const char* folder : {"years", "times"}) {
    SCOPED_TRACE(folder);
    std::filesystem::remove_all(directory_ / "out");
    store = Import(OpenOgb({*inputs_ / folder, "", {}}, {}));
    ASSERT_TRUE(store.ok()) << store.status();
    const Partition& part = *(*store)->partition(0);
    EXPECT_THAT(part.nodes[0].time.As<int64_t>(), ElementsAreArray({1, 2, 3}));
    // The edges end in nodes 1, 2 and 0.
    const NeighborLists& in = part.edges[0].in;
    EXPECT_THAT(in.time.As<int64_t>(), ElementsAreArray({6, 4, 5}));
    EXPECT_THAT(in.type.As<int32_t>(), ElementsAreArray({9, 7, 8}));
    const bool times = std::string(folder) == "times";
    EXPECT_EQ(in.weight.present(), times);
    EXPECT_EQ(part.nodes[0].feature.present(), times);
    EXPECT_EQ(part.edges[0].feature.present(), !times);
    if (times) {
      EXPECT_THAT(in.weight.As<float>(), ElementsAreArray({2., 0.5, 1.}));
    } else {
      EXPECT_THAT(part.edges[0].feature.As<float>(),
                  ElementsAreArray({3.5, 1.5, 2.5}));
    }
  }
  // Features of another file replace the folder's.
  const auto other =
      OpenOgb({*inputs_ / "times", "", {{"", directory_ / "none.npy"}}}, {});
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("none.npy"));
}

TEST_F(NpzTest, NamesWhatIsWrongInAFolder) {
  const std::vector<std::pair<const char*, const char*>> of_reddit = {
      {"first",
       "reddit_graph.npz: indptr: its 51 values do not increase from 0 to the "
       "70000 indices"},
      {"last", "reddit_graph.npz: indptr: its 51 values do not increase"},
      {"falling", "reddit_graph.npz: indptr: its 51 values do not increase"},
      {"short", "reddit_graph.npz: indptr: shape [50], but shape [51] is"},
      {"number", "reddit_graph.npz: format: a string is needed here"},
      {"ragged",
       "reddit_graph.npz: col: shape [70000], but row and col have one "
       "dimension and the same length"},
      {"fourth",
       "reddit_data.npz: node_types: row 2 is 4, but 1 stands for train, 2 for "
       "valid, 3 for test, 0 for none"},
      {"negative", "reddit_data.npz: node_types: row 2 is -1, but 1 stands"}};
  for (const auto& [folder, what] : of_reddit) {
    EXPECT_THAT(std::string(ImportReddit(folder).status().message()),
                HasSubstr(what));
  }
  const std::vector<std::pair<const char*, const char*>> of_ogb = {
      {"two_graphs",
       "data.npz: num_nodes_list: shape [2], but shape [1] is needed "
       "here\n`import ogb` takes one graph, with one count"},
      {"negative_count",
       "data.npz: num_edges_list is -1, which is not a count"},
      {"fewer_edges", "data.npz: num_edges_list declares"}};
  for (const auto& [folder, what] : of_ogb) {
    const auto store = Import(OpenOgb({*inputs_ / folder, "", {}}, {}));
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(what));
  }
}

TEST_F(NpzTest, LeavesOutTheSplitsOfRedditIfTheImportMakesThem) {
  ImportOptions options;
  options.folds = 3;
  const auto graph = OpenReddit(*inputs_ / "coo", options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(graph->splits.empty());
}

TEST_F(NpzTest, RefusesWhatDoesNotFit) {
  const auto refusal = [&](const char* folder) {
    return std::string(ImportReddit(folder).status().message());
  };
  EXPECT_THAT(refusal("dia"), HasSubstr("sparse format \"dia\""));
  EXPECT_THAT(refusal("shape"), HasSubstr("shape [51, 51], but there are 50"));
  EXPECT_THAT(refusal("papers"), HasSubstr("reddit_data.npz"));
  const auto file = NpzFile::Open(*inputs_ / "odd.npz");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(std::string(file->Rows("cube").status().message()),
              HasSubstr("odd.npz: cube: shape [2, 2, 2]"));
  EXPECT_THAT(std::string(file->Rows("none").status().message()),
              HasSubstr("no array none; the arrays are cube.npy"));
  EXPECT_THAT(std::string(file->Integers("half", 2).status().message()),
              HasSubstr("dtype float16, but integers"));
  EXPECT_THAT(std::string(file->Integers("large", 2).status().message()),
              HasSubstr("row 1: 9223372036854775808 is above"));
  EXPECT_THAT(std::string(file->Integers("large", 3).status().message()),
              HasSubstr("large: shape [2], but shape [3] is needed"));
  EXPECT_THAT(std::string(file->Integers("cube", 8).status().message()),
              HasSubstr("cube: shape [2, 2, 2], but shape [8] is needed"));
  EXPECT_EQ(*file->Text("text"), "abc");
  EXPECT_EQ((*file->Rows("empty"))->width(), 3);
}

TEST_F(NpzTest, ReadsEveryDTypeAndOrder) {
  for (const char* name : {"fortran_stored.npz", "fortran_deflated.npz"}) {
    SCOPED_TRACE(name);
    const auto file = NpzFile::Open(*inputs_ / name);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto wide = file->Rows("wide");
    ASSERT_TRUE(wide.ok()) << wide.status();
    EXPECT_EQ((*wide)->width(), 4);
    EXPECT_THAT(*ReadIntegers(**wide),
                ElementsAreArray({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_THAT((*wide)->Where(2), HasSubstr("wide: row 2"));
    EXPECT_THAT(*ReadIntegers(**file->Rows("mask")),
                ElementsAreArray({0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
    EXPECT_THAT(*ReadIntegers(**file->Edges("square")),
                ElementsAreArray({0, 5, 1, 6}));
  }
}

TEST_F(NpzTest, RowsOutliveTheirFile) {
  for (const char* name : {"fortran_stored.npz", "fortran_deflated.npz"}) {
    for (const char* key : {"wide", "square"}) {
      const auto rows = NpzFile::Open(*inputs_ / name)->Rows(key);
      ASSERT_TRUE(rows.ok()) << rows.status();
      const auto values = ReadIntegers(**rows);
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(values->at(1), 1) << name << key;
    }
  }
}

// Every cut and every flipped byte is detected or does no harm.
TEST_F(NpzTest, SurvivesDamagedFiles) {
  std::ifstream in(*inputs_ / "odd.npz", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const std::filesystem::path path = directory_ / "damaged.npz";
  const auto read = [&](const std::string& damaged) -> absl::Status {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    const auto file = NpzFile::Open(path);
    if (!file.ok()) return file.status();
    return file->Integers("large", 2).status();
  };
  for (size_t cut = 1; cut < bytes.size(); cut += 7) {
    EXPECT_FALSE(read(bytes.substr(0, cut)).ok()) << cut;
  }
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    EXPECT_FALSE(read(damaged).ok()) << i;  // `large` is refused anyway
  }
}

TEST_F(NpzTest, FindsWrongChecksums) {
  const std::filesystem::path folder = directory_ / "stored";
  std::filesystem::copy(*inputs_ / "stored", folder);
  const auto archive = ZipArchive::Open(folder / "reddit_data.npz");
  ASSERT_TRUE(archive.ok());
  const ZipArchive::Entry* entry = (*archive)->Find("label.npy");
  ASSERT_NE(entry, nullptr);
  std::fstream file(folder / "reddit_data.npz",
                    std::ios::binary | std::ios::in | std::ios::out);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const size_t at = bytes.find(std::string(entry->data));
  ASSERT_NE(at, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at + entry->data.size() - 1));
  file.put('\1');
  file.close();
  const auto store = Import(OpenReddit(folder, {}));
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr("entry label.npy: its checksum does not match"));
}

}  // namespace
}  // namespace millrace
