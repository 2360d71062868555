// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/triples.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/ingest/formats/name_output.h"
#include "common/ingest/importer.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

using Triple = std::array<int64_t, 3>;  // head, relation, tail
using Triples = std::vector<Triple>;
using NamedTriples = std::vector<std::array<std::string, 3>>;

constexpr std::array<const char*, 3> kParts = {"train", "valid", "test"};

// The triples of each split.
const std::array<NamedTriples, 3> kNamed = {
    NamedTriples{{"b", "likes", "a"},
                 {"a", "likes", "c"},
                 {"c", "knows", "c"},
                 {"b", "likes", "a"}},
    NamedTriples{{"d", "knows", "b"}},
    NamedTriples{{"a", "fears", "e"}, {"e", "likes", "d"}}};
// The numbers of the names: b, a, c, d, e are nodes 0 to 4, and likes, knows,
// fears are relations 0 to 2.
const std::array<Triples, 3> kNumbered = {
    Triples{{0, 0, 1}, {1, 0, 2}, {2, 1, 2}, {0, 0, 1}}, Triples{{3, 1, 0}},
    Triples{{1, 2, 4}, {4, 0, 3}}};

void WriteGzip(const std::filesystem::path& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

// Lines with the columns `order`, which are positions in a triple.
template <typename Fields>
std::string Lines(const std::vector<Fields>& triples,
                  const std::string& separator,
                  const std::array<int, 3>& order = {0, 1, 2}) {
  std::string text;
  for (const Fields& triple : triples) {
    for (int i = 0; i < 3; ++i) {
      if constexpr (std::is_same_v<Fields, Triple>) {
        text += std::to_string(triple[order[i]]);
      } else {
        text += triple[order[i]];
      }
      text += i < 2 ? separator : "\n";
    }
  }
  return text;
}

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class TriplesTest : public testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    std::filesystem::create_directories(directory_ / "in");
    input_.directory = directory_ / "in";
  }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_ / "in" / name;
    std::filesystem::create_directories(path.parent_path());
    if (path.extension() == ".gz") {
      WriteGzip(path, text);
    } else {
      std::ofstream(path, std::ios::binary) << text;
    }
  }

  void WriteNamed() {
    for (size_t i = 0; i < 3; ++i) {
      Write(std::string(kParts[i]) + ".txt", Lines(kNamed[i], "\t"));
    }
  }
  void WriteNumbered() {
    Write("raw/num-node-list.csv.gz", "7\n");
    Write("raw/num-relation-list.csv", "4\n");
    for (size_t i = 0; i < 3; ++i) {
      Write("split/standard/" + std::string(kParts[i]) + ".csv.gz",
            Lines(kNumbered[i], ","));
    }
  }

  absl::StatusOr<std::unique_ptr<Store>> Import() {
    std::filesystem::remove_all(directory_ / "out");
    auto graph = OpenTriples(input_);
    if (!graph.ok()) return graph.status();
    graph_ = *std::move(graph);
    const auto manifest = ImportGraph(graph_, {}, directory_ / "out");
    if (!manifest.ok()) return manifest.status();
    const auto verified = VerifyStore(directory_ / "out");
    EXPECT_TRUE(verified.ok()) << verified;
    return Store::Open(directory_ / "out");
  }

  void ExpectRefusal(const char* what) {
    const auto store = Import();
    ASSERT_FALSE(store.ok()) << what;
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(what));
  }

  TriplesInput input_;
  RawGraph graph_;
};

// Expects the edges of the graph to be `edges`, in the order of their ids.
void ExpectGraph(const Store& store, const Triples& edges) {
  const NeighborLists& lists = store.partition(0)->edges[0].in;
  const auto indptr = lists.indptr.As<int64_t>();
  std::map<int64_t, Triple> found;
  for (size_t node = 0; node + 1 < indptr.size(); ++node) {
    for (int64_t i = indptr[node]; i < indptr[node + 1]; ++i) {
      found[lists.edge_id.As<int64_t>()[i]] = {lists.indices.IntegerAt(i),
                                               lists.type.As<int32_t>()[i],
                                               static_cast<int64_t>(node)};
    }
  }
  ASSERT_EQ(lists.edge_id.rows(), static_cast<int64_t>(edges.size()));
  for (size_t i = 0; i < edges.size(); ++i) {
    EXPECT_EQ(found[static_cast<int64_t>(i)], edges[i]) << i;
  }
}

void ExpectSplits(const Store& store) {
  ASSERT_EQ(store.manifest().edge_splits.size(), 3);
  for (size_t part = 0; part < 3; ++part) {
    SCOPED_TRACE(part);
    EXPECT_EQ(store.manifest().edge_splits[part].name, kParts[part]);
    const EdgeSplit& split = store.edge_split(part);
    ASSERT_EQ(split.src.rows(), static_cast<int64_t>(kNumbered[part].size()));
    EXPECT_EQ(split.edge_id.present(), part == 0);
    for (int64_t i = 0; i < split.src.rows(); ++i) {
      const Triple triple = {split.src_original_id.As<int64_t>()[i],
                             split.edge_type.As<int32_t>()[i],
                             split.dst_original_id.As<int64_t>()[i]};
      EXPECT_EQ(triple, kNumbered[part][i]);
      if (part == 0) {
        EXPECT_EQ(split.edge_id.As<int64_t>()[i], i);
      }
    }
  }
}

TEST_F(TriplesTest, ReadsNumbersInTheirRanges) {
  WriteNumbered();
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->schema().node_types[0].count, 7);
  EXPECT_EQ((*store)->schema().RelationName(0), "node__to__node");
  ExpectGraph(**store, kNumbered[0]);
  ExpectSplits(**store);
  EXPECT_THAT(std::string(CheckNames(graph_, directory_ / "names").message()),
              HasSubstr("names_out: this input has numbers"));
}

TEST_F(TriplesTest, NumbersNamesByFirstAppearance) {
  WriteNamed();
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->schema().node_types[0].count, 5);
  ExpectGraph(**store, kNumbered[0]);
  ExpectSplits(**store);
  const std::filesystem::path names = directory_ / "names" / "here";
  ASSERT_TRUE(CheckNames(graph_, names).ok());
  ASSERT_TRUE(WriteNames(graph_, names).ok());
  EXPECT_EQ(Content(names / "entities.txt"), "b\na\nc\nd\ne\n");
  EXPECT_EQ(Content(names / "relations.txt"), "likes\nknows\nfears\n");
  EXPECT_EQ(WriteNames(graph_, names).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(TriplesTest, TakesAnySeparatorExtensionAndOrder) {
  struct Variant {
    const char *separator, *extension, *columns;
    std::array<int, 3> order;
  };
  for (const Variant& variant : {Variant{"\t", ".txt", "h,t,r", {0, 2, 1}},
                                 Variant{" ", ".txt.gz", "t,r,h", {2, 1, 0}},
                                 Variant{"   ", ".tsv", "r,h,t", {1, 0, 2}},
                                 Variant{", ", ".csv", "t,h,r", {2, 0, 1}}}) {
    SCOPED_TRACE(variant.columns);
    std::filesystem::remove_all(directory_ / "in");
    for (size_t i = 0; i < 3; ++i) {
      Write(std::string(kParts[i]) + variant.extension,
            Lines(kNamed[i], variant.separator, variant.order));
    }
    input_.columns = variant.columns;
    const auto store = Import();
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectGraph(**store, kNumbered[0]);
    ExpectSplits(**store);
  }
}

TEST_F(TriplesTest, KeepsBlanksAndCommasBetweenTabs) {
  Write("train.txt", "New York\tis, partly, in\tNew Jersey\r\n");
  Write("valid.txt", "");
  Write("test.txt", "New Jersey\tis, partly, in\tNew York");
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectGraph(**store, {{0, 0, 1}});
  EXPECT_EQ((*graph_.names[0].names)[1], "New Jersey");
  EXPECT_EQ((*graph_.names[1].names)[0], "is, partly, in");
  EXPECT_EQ((*store)->edge_split(1).src.rows(), 0);
  EXPECT_EQ((*store)->edge_split(2).src_original_id.As<int64_t>()[0], 1);
}

TEST_F(TriplesTest, AppendsReciprocalTriples) {
  for (const bool named : {true, false}) {
    SCOPED_TRACE(named);
    std::filesystem::remove_all(directory_ / "in");
    named ? WriteNamed() : WriteNumbered();
    input_.reciprocal = true;
    const auto store = Import();
    ASSERT_TRUE(store.ok()) << store.status();
    Triples edges = kNumbered[0];
    // Declared relations count, even if no triple uses them.
    for (const Triple& triple : kNumbered[0]) {
      edges.push_back({triple[2], triple[1] + (named ? 3 : 4), triple[0]});
    }
    ExpectGraph(**store, edges);
    ExpectSplits(**store);
  }
}

TEST_F(TriplesTest, TakesTheNamedSplit) {
  WriteNumbered();
  std::filesystem::rename(directory_ / "in/split/standard",
                          directory_ / "in/split/mine");
  std::filesystem::create_directories(directory_ / "in/split/other");
  ExpectRefusal("split is needed: ");
  ExpectRefusal("in/split has mine, other");
  input_.split = "third";
  ExpectRefusal("split third: there is no such split; ");
  ExpectRefusal("in/split has mine, other");
  input_.split = "mine";
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectSplits(**store);
}

TEST_F(TriplesTest, SaysWhereItLooksForSplits) {
  std::filesystem::create_directories(directory_ / "in/split");
  ExpectRefusal("in/split has no folders");
  std::filesystem::remove(directory_ / "in/split");
  ExpectRefusal(
      "in/train.txt: no such file (nor .tsv, .csv or .gz), and no folder "
      "split/ beside it");
  WriteNamed();
  input_.split = "mine";
  ExpectRefusal("split mine: ");
  ExpectRefusal("in has no folder split/");
}

TEST_F(TriplesTest, LimitsTheNumberOfRelations) {
  struct Case {
    const char* declared;
    bool reciprocal;
    const char* what;  // null: it is accepted
  };
  for (const Case& c :
       {Case{"2147483647", false, nullptr},
        Case{"2147483648", false,
             "2147483648 relations; edge types have 32 bits"},
        Case{"1073741823", true, nullptr},
        Case{"1073741824", true,
             "2147483648 relations; edge types have 32 bits"}}) {
    SCOPED_TRACE(c.declared);
    WriteNumbered();
    Write("raw/num-relation-list.csv", std::string(c.declared) + "\n");
    input_.reciprocal = c.reciprocal;
    if (c.what != nullptr) {
      ExpectRefusal(c.what);
      continue;
    }
    const auto graph = OpenTriples(input_);
    EXPECT_TRUE(graph.ok()) << graph.status();
  }
}

TEST_F(TriplesTest, NamesTheLineOfBadNumbers) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"0,0,1\n0,0,7\n",
       "valid.csv: line 2: field 3: entity 7 is out of range: "},
      {"-1,0,1\n", "valid.csv: line 1: field 1: entity -1 is out of range"},
      {"0,4,1\n", "valid.csv: line 1: field 2: relation 4 is out of range"},
      {"0,1\n", "valid.csv: line 1: 2 fields where every line must have 3"},
      {"0,1,2\n0,1,2,3\n", "valid.csv: line 2: 4 fields"},
      {"0,1,2\n\n", "valid.csv: line 2: 1 field where"},
      {"head,relation,tail\n", "line 1: field 1: \"head\" is not an integer"},
      {"0,,2\n", "valid.csv: line 1: field 2 is empty"}};
  WriteNumbered();
  std::filesystem::remove(directory_ / "in/split/standard/valid.csv.gz");
  ExpectRefusal("valid.csv.gz: no such file");
  for (const auto& [text, what] : cases) {
    Write("split/standard/valid.csv", text);
    ExpectRefusal(what);
  }
  WriteNumbered();
  Write("raw/num-relation-list.csv", "4\n5\n");
  ExpectRefusal("num-relation-list.csv: expected one line with a count");
  Write("raw/num-relation-list.csv", "4\n");
  Write("raw/num-node-list.csv.gz", "-1\n");
  ExpectRefusal("num-node-list.csv.gz: expected one line with a count");
}

TEST_F(TriplesTest, NamesTheLineOfBadNames) {
  WriteNamed();
  Write("test.txt", "a\tlikes\tb\na\tlikes b\n");
  ExpectRefusal("test.txt: line 2: 2 fields where every line must have 3");
  Write("test.txt", "a\tlikes\t\n");
  ExpectRefusal("test.txt: line 1: field 3 is empty");
  Write("test.txt", "only two\n");
  ExpectRefusal("test.txt: line 1: \"only two\" is not three fields");
  WriteNamed();
  Write("train.txt", "");
  ExpectRefusal("train.txt: no triples");
  std::filesystem::remove(directory_ / "in/train.txt");
  ExpectRefusal("train.txt: no such file");
  WriteNamed();
  for (const char* columns : {"h,r", "h,r,r", "h;r;t", "h,r,x", ""}) {
    input_.columns = columns;
    ExpectRefusal("columns");
  }
}

}  // namespace
}  // namespace millrace
