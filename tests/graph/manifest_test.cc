// SPDX-License-Identifier: Apache-2.0
#include "common/graph/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/graph/manifest_checks.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

Manifest Example() {
  Manifest manifest;
  manifest.uuid = "01234567-89ab-4cde-8f01-23456789abcd";
  manifest.partitioning = {
      .method = "metis", .seed = ~uint64_t{0}, .hot = "degree", .cut_edges = 4};
  manifest.schema.node_types = {{.name = "author", .count = 4},
                                {.name = "paper",
                                 .count = 6,
                                 .feature = {DType::kBFloat16, {128}},
                                 .label = {DType::kInt64, {}},
                                 .has_time = true,
                                 .has_hotness = true}};
  manifest.schema.relations = {{.src = 0,
                                .name = "writes",
                                .dst = 1,
                                .edge_count = 9,
                                .max_edge_id = 20,
                                .has_in = true,
                                .has_out = true,
                                .has_weight = true,
                                .time = ListTime::kNeighbor,
                                .has_type = true,
                                .feature = {DType::kFloat16, {3}}},
                               {.src = 1,
                                .name = "cites",
                                .dst = 1,
                                .has_in = true,
                                .time = ListTime::kEdge}};
  manifest.books = {PartitionBook({0, 1, 4}), PartitionBook({0, 6, 6})};
  manifest.splits = {
      {.type = 1, .name = "checksum", .count = 3, .part_counts = {3, 0}}};
  manifest.edge_splits = {{.relation = 1,
                           .name = "pairs",
                           .count = 2,
                           .part_counts = {2, 0},
                           .has_time = true,
                           .label = {DType::kFloat32, {}},
                           .negatives = 3}};
  manifest.files = {{"a/b.npy", 128, 1},
                    {"c.npy", 192, ~uint64_t{0}},
                    {"splits/paper/checksum/id.npy", 76, 2},
                    {"splits/paper/checksum/original_id.npy", 88, 3},
                    {"splits/paper__cites__paper/pairs/time.npy", 80, 4}};
  SetFingerprints(manifest);
  manifest.dataset_fingerprint = ComputeFingerprint(std::vector<FileInfo>());
  return manifest;
}

// The text with its checksum recomputed, as a hostile writer would.
std::string Signed(Json root) {
  root["checksum"] = std::string(16, '0');
  std::string text = root.dump();
  const size_t at = text.rfind("\"checksum\":\"") + 12;
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  return text.replace(at, 16, absl::StrCat(absl::Hex(hash, absl::kZeroPad16)));
}

absl::StatusCode CodeOf(const std::string& text) {
  return ParseManifest(text, "store.json").status().code();
}

// Whatever a damaged file contains, the error must be one line of text.
void ExpectText(const absl::Status& status) {
  for (const char c : status.message()) {
    ASSERT_TRUE(c >= ' ' && c < '\x7f') << status;
  }
}

TEST(Manifest, RoundTrips) {
  const Manifest manifest = Example();
  const auto parsed = ParseManifest(FormatManifest(manifest), "store.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->schema, manifest.schema);
  EXPECT_EQ(parsed->books, manifest.books);
  EXPECT_EQ(parsed->splits, manifest.splits);
  EXPECT_EQ(parsed->edge_splits, manifest.edge_splits);
  EXPECT_EQ(parsed->uuid, manifest.uuid);
  EXPECT_EQ(parsed->fingerprint, manifest.fingerprint);
  EXPECT_EQ(parsed->dataset_fingerprint, manifest.dataset_fingerprint);
  EXPECT_EQ(parsed->partitioning.method, "metis");
  EXPECT_EQ(parsed->partitioning.seed, ~uint64_t{0});
  EXPECT_EQ(parsed->partitioning.hot, "degree");
  EXPECT_EQ(parsed->partitioning.cut_edges, 4);
  EXPECT_EQ(parsed->partition_count(), 2);
  ASSERT_EQ(parsed->files.size(), 5u);
  EXPECT_EQ(parsed->files[1].path, "c.npy");
  EXPECT_EQ(parsed->files[1].xxh3, ~uint64_t{0});
}

TEST(Manifest, FingerprintIsTheSha256OfTheSortedList) {
  // printf 'a 1 0000000000000002\nb 3 00000000000000ff\n' | sha256sum
  EXPECT_EQ(ComputeFingerprint({{"b", 3, 255}, {"a", 1, 2}}),
            "4ffc6fbf8e8b05e9e321e35494dfd6991c61d8b315e09d7aae0f9e4313461734");
}

TEST(Manifest, SplitsHaveFingerprintsOfTheirOwn) {
  const Manifest before = Example();
  Manifest manifest = before;
  // printf 'splits/paper/checksum/original_id.npy 88 0000000000000003\n' |
  // sha256sum
  EXPECT_EQ(manifest.splits[0].identity.fingerprint,
            "354ab9986627c3fd7b7c274e5aeb8dcabf696277ac99639c94aba1e66b2f23a7");
  EXPECT_EQ(manifest.fingerprint,
            ComputeFingerprint({manifest.files[0], manifest.files[1]}));
  manifest.files[2].xxh3 = 20;  // ids, which partitioning assigns
  SetFingerprints(manifest);
  EXPECT_EQ(manifest.splits, before.splits);
  EXPECT_EQ(manifest.fingerprint, before.fingerprint);
  manifest.files[3].xxh3 = 30;  // other seeds
  SetFingerprints(manifest);
  EXPECT_NE(manifest.splits, before.splits);
  EXPECT_EQ(manifest.edge_splits, before.edge_splits);
  EXPECT_EQ(manifest.fingerprint, before.fingerprint);
  manifest.files[1].xxh3 = 10;
  SetFingerprints(manifest);
  EXPECT_NE(manifest.fingerprint, before.fingerprint);
}

// Stores used to be written like this: the fingerprint covers the files of
// splits too.
TEST(Manifest, FingerprintOfTheStoreCoversSplitsWithoutTheirOwn) {
  Json root = Json::parse(FormatManifest(Example()));
  root["version"] = 2;
  root["splits"][0].erase("fingerprint");
  root["edge_splits"][0].erase("fingerprint");
  root["fingerprint"] = ComputeFingerprint(Example().files);
  const auto parsed = ParseManifest(Signed(root), "store.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->fingerprint, ComputeFingerprint(Example().files));
  EXPECT_EQ(parsed->splits[0].identity.fingerprint,
            Example().splits[0].identity.fingerprint);
  EXPECT_EQ(parsed->edge_splits[0].identity.fingerprint,
            Example().edge_splits[0].identity.fingerprint);
  EXPECT_EQ(parsed->version, 2);
  // When written again, with other splits or none, it has today's version.
  const Json again = Json::parse(FormatManifest(*parsed));
  EXPECT_EQ(again["version"], kStoreVersion);
  EXPECT_EQ(again["splits"], root["splits"]);
}

TEST(Manifest, RefusesFingerprintsThatDoNotMatchTheFiles) {
  for (const char* pointer : {"/fingerprint", "/splits/0/fingerprint",
                              "/edge_splits/0/fingerprint"}) {
    Json root = Json::parse(FormatManifest(Example()));
    root[Json::json_pointer(pointer)] =
        ComputeFingerprint(std::vector<FileInfo>());
    EXPECT_EQ(CodeOf(Signed(root)), absl::StatusCode::kDataLoss) << pointer;
  }
}

TEST(Manifest, AnyDamagedByteIsAnError) {
  const std::string text = FormatManifest(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    constexpr char kFlips[] = {'\x01', '\x20', '\x80'};
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ kFlips[i % std::size(kFlips)]);
    const auto parsed = ParseManifest(damaged, "store.json");
    EXPECT_FALSE(parsed.ok()) << "byte " << i;
    ExpectText(parsed.status());
  }
}

TEST(Manifest, AnyTruncationIsDamage) {
  const std::string text = FormatManifest(Example());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(CodeOf(text.substr(0, size)), absl::StatusCode::kDataLoss);
  }
}

TEST(Manifest, AcceptsOtherSpacingAndOrder) {
  const Json root = Json::parse(FormatManifest(Example()));
  EXPECT_EQ(CodeOf(Signed(root)), absl::StatusCode::kOk);
  Json reversed;
  for (auto member = root.rbegin(); member != root.rend(); ++member) {
    reversed[member.key()] = member.value();
  }
  EXPECT_EQ(CodeOf(Signed(reversed)), absl::StatusCode::kOk);
}

TEST(Manifest, RefusesOtherVersions) {
  for (const auto& [member, other] :
       {std::pair("version", 1), std::pair("version", kStoreVersion + 1),
        std::pair("sampling_version", kSamplingVersion + 1)}) {
    Json root = Json::parse(FormatManifest(Example()));
    root[member] = other;
    const absl::Status status =
        ParseManifest(Signed(root), "DIR/store.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("DIR/store.json"),
                      HasSubstr("version " + std::to_string(other))));
  }
}

// Replaces every value by values of every kind: this must give an error or a
// consistent manifest, and never a crash.
TEST(Manifest, SurvivesHostileValues) {
  const Json root = Json::parse(FormatManifest(Example()));
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1e300,
                                    ~uint64_t{0},
                                    "",
                                    "../../../x",
                                    "\n",
                                    "\x1b[2J\u00fc",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({-1}),
                                    Json::array({~uint64_t{0}, 1}),
                                    INT64_MAX,
                                    "float32"};
  const Json flat = root.flatten();
  std::set<std::string> places;
  for (const auto& [pointer, unused] : flat.items()) {
    const Json::json_pointer whole(pointer);
    for (Json::json_pointer at = whole; !at.empty(); at = at.parent_pointer()) {
      places.insert(at.to_string());
    }
  }
  for (const std::string& place : places) {
    for (const Json& value : values) {
      Json changed = root;
      changed[Json::json_pointer(place)] = value;
      const auto parsed = ParseManifest(Signed(changed), "store.json");
      if (!parsed.ok()) {
        EXPECT_THAT(parsed.status().code(),
                    ::testing::AnyOf(absl::StatusCode::kDataLoss,
                                     absl::StatusCode::kFailedPrecondition));
        ExpectText(parsed.status());
        continue;
      }
      EXPECT_TRUE(ParseManifest(FormatManifest(*parsed), "again").ok());
    }
  }
}

TEST(Manifest, DatasetDefaultsToTheFingerprint) {
  Json root = Json::parse(FormatManifest(Example()));
  root.erase("dataset_fingerprint");
  const auto parsed = ParseManifest(Signed(root), "store.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->dataset_fingerprint, parsed->fingerprint);
}

TEST(Manifest, RefusesMissingMembers) {
  const Json root = Json::parse(FormatManifest(Example()));
  for (const auto& [key, unused] : root.items()) {
    if (key == "checksum" || key == "dataset_fingerprint" ||
        key == "edge_splits") {
      continue;
    }
    Json changed = root;
    changed.erase(key);
    EXPECT_EQ(CodeOf(Signed(changed)), absl::StatusCode::kDataLoss) << key;
  }
  for (const char* list : {"node_types", "relations", "splits", "files"}) {
    for (const auto& [key, unused] : root[list][0].items()) {
      if (key == "fingerprint") continue;
      Json changed = root;
      changed[list][0].erase(key);
      EXPECT_EQ(CodeOf(Signed(changed)), absl::StatusCode::kDataLoss)
          << list << " " << key;
    }
  }
}

TEST(Manifest, RefusesPathsOutsideTheStore) {
  for (const char* path :
       {"/etc/passwd", "../x", "a/../b", "a//b", "", "a/.", "c.npy", "a\nb"}) {
    Manifest manifest = Example();
    manifest.files[0].path = path;
    SetFingerprints(manifest);
    EXPECT_EQ(CodeOf(FormatManifest(manifest)), absl::StatusCode::kDataLoss)
        << path;
  }
}

TEST(Manifest, RefusesBooksThatDisagree) {
  const std::vector<std::vector<uint64_t>> books = {
      {0, 4}, {0, 1, 3}, {1, 2, 4}, {0, 5, 4}, {0, 1, 2, 4}, {}, {0}};
  for (const auto& offsets : books) {
    Json root = Json::parse(FormatManifest(Example()));
    root["node_types"][0]["offsets"] = offsets;
    EXPECT_EQ(CodeOf(Signed(root)), absl::StatusCode::kDataLoss);
  }
}

// The split has 3 of the 6 papers, which partition 0 owns.
TEST(Manifest, RefusesPartCountsThatDisagree) {
  const auto code_with = [](const std::vector<int64_t>& counts) {
    Json root = Json::parse(FormatManifest(Example()));
    root["splits"][0]["part_counts"] = counts;
    return CodeOf(Signed(root));
  };
  EXPECT_EQ(code_with({3, 0}), absl::StatusCode::kOk);
  const std::vector<std::vector<int64_t>> others = {
      {2, 1}, {0, 3}, {2, 0}, {4, 0}, {4, -1}, {3}, {3, 0, 0}, {}};
  for (const auto& counts : others) {
    EXPECT_EQ(code_with(counts), absl::StatusCode::kDataLoss)
        << ::testing::PrintToString(counts);
  }
}

// The split has 2 pairs, whose destinations partition 0 owns.
TEST(Manifest, RefusesPartCountsOfPairsThatDisagree) {
  const auto valid_with = [](const std::vector<int64_t>& counts) {
    Manifest manifest = Example();
    manifest.edge_splits[0].part_counts = counts;
    return ValidateManifest(manifest).ok();
  };
  for (const auto& counts :
       std::vector<std::vector<int64_t>>{{2, 0}, {1, 1}, {0, 2}}) {
    EXPECT_TRUE(valid_with(counts)) << ::testing::PrintToString(counts);
  }
  for (const auto& counts : std::vector<std::vector<int64_t>>{
           {2, 1}, {1, 0}, {-1, 3}, {3, -1}, {2}, {2, 0, 0}, {}}) {
    EXPECT_FALSE(valid_with(counts)) << ::testing::PrintToString(counts);
  }
}

// The ids of nodes depend on the partitions.
TEST(Manifest, SplitFingerprintsDoNotCoverIds) {
  const auto fingerprint_of = [](const std::string& column, uint64_t xxh3) {
    const auto all = ComputeSplitFingerprints(
        {{"splits/a__to__b/train/src_original_id.npy", 80, 1},
         {"splits/a__to__b/train/" + column, 80, xxh3}});
    return all.at("splits/a__to__b/train/");
  };
  for (const char* column : {"id.npy", "src.npy", "dst.npy", "negative.npy"}) {
    EXPECT_EQ(fingerprint_of(column, 2), fingerprint_of(column, 3)) << column;
  }
  for (const char* column :
       {"original_id.npy", "dst_original_id.npy", "negative_original_id.npy",
        "edge_id.npy", "time.npy", "label.npy", "edge_type.npy"}) {
    EXPECT_NE(fingerprint_of(column, 2), fingerprint_of(column, 3)) << column;
  }
}

TEST(Manifest, SurvivesDeepNesting) {
  EXPECT_EQ(CodeOf(std::string(1 << 20, '[')), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(std::string(1 << 18, '[') + std::string(1 << 18, ']')),
            absl::StatusCode::kDataLoss);
}

// What a reader says about a value of store.json that it refuses.
TEST(Manifest, NamesTheValueThatItRefuses) {
  const Json root = Json::parse(FormatManifest(Example()));
  const std::string split =
      "the fingerprint of splits/paper/checksum/ is not "
      "that of its files";
  struct Case {
    const char* pointer;
    Json value;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"/format", "x\n", "'format' is 'x\\n', not 'millrace-store'"},
      {"/format", 1, "'format': expected a string"},
      {"/version", 1,
       "store version 1; this program reads versions 2 to 3, import and "
       "partition again"},
      {"/version", 4,
       "store version 4; this program reads versions 2 to 3, use a newer one"},
      {"/sampling_version", 2,
       "sampling version 2; this program has 1, import and partition again"},
      {"/parts", 3, "'parts' is 3, but the offsets describe 2 partitions"},
      {"/parts", "2", "'parts': expected a whole number"},
      {"/parts", 2.0, "'parts': expected a whole number"},
      {"/parts", uint64_t{1} << 63, "'parts': a number exceeds 63 bits"},
      {"/parts", (uint64_t{1} << 63) - 1,
       "'parts' is 9223372036854775807, but the offsets describe 2 partitions"},
      {"/partitioning/seed", -1, "'seed': expected a whole number >= 0"},
      {"/partitioning/method", 1, "'method': expected a string"},
      {"/partitioning/hot", 1, "'hot': expected a string"},
      {"/partitioning/cut_edges", "", "'cut_edges': expected a whole number"},
      {"/partitioning", 1, "expected an object"},
      {"/node_types", 1, "'node_types' is not a list"},
      {"/node_types/1", 1, "'node_types'[1]: expected an object"},
      {"/node_types/1/time", 1,
       "'node_types'[1]: 'time': expected true or false"},
      {"/node_types/1/hotness", nullptr,
       "'node_types'[1]: 'hotness': expected true or false"},
      {"/node_types/1/feature/dtype", "none",
       "'node_types'[1]: 'feature': dtype none"},
      {"/node_types/1/feature/shape", 3,
       "'node_types'[1]: 'feature': 'shape': expected a list"},
      {"/node_types/1/label", 3,
       "'node_types'[1]: 'label': expected an object"},
      {"/node_types/0/id_dtype", "uint64",
       "'node_types'[0]: id_dtype 'uint64' does not fit 4 nodes"},
      {"/node_types/0/offsets",
       {4},
       "'node_types'[0]: 'offsets' has fewer than two numbers"},
      {"/node_types/0/offsets",
       {0, -1, 4},
       "'node_types'[0]: 'offsets': expected a whole number >= 0"},
      {"/node_types/0/offsets",
       {0, 1, 3},
       "the offsets of 'author' are not 3 ascending numbers from 0 to 4"},
      {"/node_types/0/offsets",
       {1, 2, 4},
       "the offsets of 'author' are not 3 ascending numbers from 0 to 4"},
      {"/node_types/1/offsets",
       {0, 7, 6},
       "the offsets of 'paper' are not 3 ascending numbers from 0 to 6"},
      {"/node_types/1/offsets",
       {0, 6},
       "the offsets of 'paper' are not 3 ascending numbers from 0 to 6"},
      {"/relations/0/src", "x",
       "'relations'[0]: no node type 'x'; the node types are 'author', "
       "'paper'"},
      {"/relations/1/dst", "x",
       "'relations'[1]: no node type 'x'; the node types are 'author', "
       "'paper'"},
      {"/relations/1/time", "x",
       "'relations'[1]: 'time': expected \"edge\", \"neighbor\" or null"},
      {"/splits/0/type", "x",
       "'splits'[0]: no node type 'x'; the node types are 'author', 'paper'"},
      {"/splits/0/name", ".x",
       "'.x' cannot name a node type, relation or split: 1 to 80 ASCII "
       "characters, without spaces or slashes, not starting with '.'"},
      {"/splits/0/part_counts",
       {2, 0},
       "'part_counts' of split 'checksum' are not 2 numbers that add up to 3"},
      {"/splits/0/part_counts",
       {2, 1},
       "'part_counts' of split 'checksum' are not 2 numbers that add up to 3"},
      {"/splits/0/fingerprint", "x", split},
      {"/splits/0/fingerprint", 1,
       "'splits'[0]: 'fingerprint': expected a string"},
      {"/edge_splits/0/relation", "x",
       "'edge_splits'[0]: no relation 'x'; the relations are "
       "'author__writes__paper', 'paper__cites__paper'"},
      {"/edge_splits/0/count", 3,
       "the counts of edge split 'pairs' are inconsistent"},
      {"/edge_splits/0/negatives", 1048577,
       "the counts of edge split 'pairs' are inconsistent"},
      {"/edge_splits/0/negatives", -1,
       "the counts of edge split 'pairs' are inconsistent"},
      {"/edge_splits/0/label/shape",
       {2},
       "the counts of edge split 'pairs' are inconsistent"},
      {"/edge_splits/0/edge_type", 1,
       "'edge_splits'[0]: 'edge_type': expected true or false"},
      {"/edge_splits/0/fingerprint", "x",
       "the fingerprint of splits/paper__cites__paper/pairs/ is not that of "
       "its files"},
      {"/fingerprint", "x", "the fingerprint is not that of the list of files"},
      {"/dataset_fingerprint", 1, "'dataset_fingerprint': expected a string"},
      {"/neighbor_original_ids", 1,
       "'neighbor_original_ids': expected true or false"},
      {"/files/0/path", 1, "'files'[0]: 'path': expected a string"},
      {"/files/0/path", "a\nb", "'a\\nb' is not a path inside a store"},
      {"/files/0/path", "..", "'..' is not a path inside a store"},
      {"/files/0/path", "c.npy", "file 'c.npy' is listed twice"},
      {"/files/0/bytes", -1,
       "'files'[0]: 'bytes': expected a whole number >= 0"},
      {"/files/0/xxh3", std::string(15, '0'),
       "'files'[0]: expected 16 hex digits"},
      {"/files/0/xxh3", std::string(15, '0') + "g",
       "'files'[0]: expected 16 hex digits"},
      {"/files/0/xxh3", std::string(15, '0') + "A",
       "'files'[0]: expected 16 hex digits"},
      {"/files/4/path", "splits/paper__cites__paper/other/time.npy",
       "no file of splits/paper__cites__paper/pairs/ is listed"},
  };
  for (const Case& example : cases) {
    Json changed = root;
    changed[Json::json_pointer(example.pointer)] = example.value;
    const absl::Status status =
        ParseManifest(Signed(changed), "DIR/store.json").status();
    EXPECT_EQ(status.message(), "DIR/store.json: " + example.message)
        << example.pointer;
  }
}

TEST(Manifest, NamesMissingMembersAndTheirPlace) {
  const Json root = Json::parse(FormatManifest(Example()));
  Json changed = root;
  changed.erase("uuid");
  EXPECT_EQ(ParseManifest(Signed(changed), "F").status().message(),
            "F: 'uuid' is missing");
  changed = root;
  changed["relations"][1].erase("edges");
  EXPECT_EQ(ParseManifest(Signed(changed), "F").status().message(),
            "F: 'relations'[1]: 'edges' is missing");
  EXPECT_EQ(ParseManifest("{", "F").status().message(), "F: not JSON");
  EXPECT_EQ(ParseManifest("[]", "F").status().message(),
            "F: expected an object");
  changed = root;
  changed.erase("checksum");
  EXPECT_EQ(ParseManifest(changed.dump(), "F").status().message(),
            "F: the checksum is missing");
  changed["checksum"] = "0123456789abcdef";
  EXPECT_THAT(
      std::string(ParseManifest(changed.dump(), "F").status().message()),
      ::testing::MatchesRegex("F: the checksum is 0123456789abcdef, "
                              "but the content has [0-9a-f]{16}"));
}

TEST(Manifest, RefusesTwoSplitsOfTheSameName) {
  Manifest manifest = Example();
  manifest.splits.push_back(manifest.splits[0]);
  manifest.splits.back().type = 0;
  manifest.splits.back().count = 0;
  manifest.splits.back().part_counts = {0, 0};
  EXPECT_EQ(ValidateManifest(manifest), absl::OkStatus());
  manifest.splits.push_back(manifest.splits[0]);
  EXPECT_EQ(ValidateManifest(manifest).message(),
            "split 'checksum' occurs twice");
  manifest = Example();
  manifest.edge_splits.push_back(manifest.edge_splits[0]);
  EXPECT_EQ(ValidateManifest(manifest).message(),
            "edge split 'pairs' occurs twice");
  manifest.edge_splits[1].relation = 0;
  EXPECT_EQ(ValidateManifest(manifest), absl::OkStatus());
}

TEST(Manifest, RefusesSplitsOfNothing) {
  for (const TypeIndex type : {-1, 2}) {
    Manifest manifest = Example();
    manifest.splits[0].type = type;
    EXPECT_EQ(ValidateManifest(manifest).message(),
              "split 'checksum' belongs to a node type that does not exist");
  }
  for (const RelationIndex relation : {-1, 2}) {
    Manifest manifest = Example();
    manifest.edge_splits[0].relation = relation;
    EXPECT_EQ(ValidateManifest(manifest).message(),
              "the counts of edge split 'pairs' are inconsistent");
  }
}

TEST(Manifest, LimitsNumbers) {
  Manifest manifest = Example();
  manifest.edge_splits[0].negatives = 1 << 20;
  manifest.edge_splits[0].count = int64_t{1} << 48;
  manifest.edge_splits[0].part_counts = {0, int64_t{1} << 48};
  EXPECT_EQ(ValidateManifest(manifest), absl::OkStatus());
  ++manifest.edge_splits[0].count;
  ++manifest.edge_splits[0].part_counts[1];
  EXPECT_EQ(ValidateManifest(manifest).message(),
            "the counts of edge split 'pairs' are inconsistent");
  manifest = Manifest();
  manifest.schema.node_types = {{.name = "node", .count = 0}};
  manifest.books = {PartitionBook(std::vector<uint64_t>(65536, 0))};
  EXPECT_EQ(ValidateManifest(manifest), absl::OkStatus());
  manifest.books = {PartitionBook(std::vector<uint64_t>(65537, 0))};
  EXPECT_EQ(ValidateManifest(manifest).message(),
            "65536 partitions; there may be 1 to 65535");
  manifest.books.clear();
  EXPECT_EQ(ValidateManifest(manifest).message(),
            "a node type has no partition book");
}

TEST(Manifest, FindsSplitsAndNamesThoseThereAre) {
  Manifest manifest = Example();
  for (const TypeIndex type : {1, 0}) {
    SplitInfo& split = manifest.splits.emplace_back();
    split.type = type;
    split.name = "valid";
  }
  EXPECT_EQ(manifest.FindSplit(1, "valid").value(), 1u);
  EXPECT_EQ(manifest.FindSplit(0, "valid").value(), 2u);
  EXPECT_EQ(manifest.FindEdgeSplit(1, "pairs").value(), 0u);
  EXPECT_EQ(manifest.EdgeSplit(1, "pairs"), &manifest.edge_splits[0]);
  EXPECT_EQ(manifest.EdgeSplit(0, "pairs"), nullptr);
  const absl::Status nodes = manifest.FindSplit(1, "test").status();
  EXPECT_EQ(nodes.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(nodes.message(),
            "node type paper has no split \"test\"; it has: checksum, valid");
  EXPECT_EQ(GetFieldError(nodes)->field, "split");
  EXPECT_EQ(GetFieldError(nodes)->value, "test");
  const absl::Status edges = manifest.FindEdgeSplit(1, "test").status();
  EXPECT_EQ(edges.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(edges.message(),
            "relation paper__cites__paper has no split \"test\" of edges; it "
            "has: pairs");
  EXPECT_EQ(manifest.FindEdgeSplit(0, "test").status().message(),
            "relation author__writes__paper has no split \"test\" of edges; it "
            "has: none");
  manifest.splits[1].identity.conflict = "servers disagree";
  EXPECT_EQ(manifest.FindSplit(1, "valid").status(),
            absl::FailedPreconditionError("servers disagree"));
}

}  // namespace
}  // namespace millrace
