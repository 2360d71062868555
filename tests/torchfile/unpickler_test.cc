// SPDX-License-Identifier: Apache-2.0
#include "common/torchfile/unpickler.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads a document, and keeps the bytes that it refers to.
absl::StatusOr<PickleDocument> Read(const std::string& bytes) {
  static std::vector<std::string>* kept = new std::vector<std::string>();
  kept->reserve(100000);
  kept->push_back(bytes);
  return Unpickle({"file", kept->back(), nullptr, nullptr});
}

std::string Refusal(const std::string& bytes) {
  const auto document = Read(bytes);
  EXPECT_FALSE(document.ok());
  return std::string(document.status().message());
}

std::string Bytes(std::string_view literal) { return std::string(literal); }
template <size_t N>
std::string Raw(const char (&literal)[N]) {
  return std::string(literal, N - 1);
}

int64_t IntegerOf(const std::string& bytes) {
  const auto document = Read(bytes);
  EXPECT_TRUE(document.ok()) << document.status();
  return document->root->integer;
}

TEST(UnpicklerTest, ReadsIntegersOfAllLengths) {
  EXPECT_EQ(IntegerOf(Raw("K\xff.")), 255);
  EXPECT_EQ(IntegerOf(Raw("M\x01\x02.")), 513);
  EXPECT_EQ(IntegerOf(Raw("J\xfe\xff\xff\xff.")), -2);
  EXPECT_EQ(IntegerOf(Raw("\x8a\x00.")), 0);
  EXPECT_EQ(IntegerOf(Raw("\x8a\x05\x00\x00\x00\x00\x01.")), int64_t{1} << 32);
  EXPECT_EQ(IntegerOf(Raw("\x8a\x01\xff.")), -1);
  EXPECT_EQ(IntegerOf(Raw("\x8a\x01\x7f.")), 127);
  EXPECT_EQ(IntegerOf(Raw("\x8a\x01\x80.")), -128);
  EXPECT_EQ(IntegerOf(Raw("\x8a\x08\0\0\0\0\0\0\0\x80.")),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(IntegerOf(Raw("\x8b\x02\0\0\0\xfe\xff.")), -2);
  EXPECT_EQ(
      Read(Raw("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."))->root->kind,
      PickleKind::kHuge);
}

// {"a": (1, None), ("x", "y"): [True]}, in protocol 4 with a memo.
TEST(UnpicklerTest, ReadsContainersAndMemo) {
  const auto document =
      Read(Raw("\x80\x04\x95\x20\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
               "a\x94K\x01N\x86\x94\x8c\x01x\x94\x8c\x01y\x94\x86]\x88"
               "auh\x02."));
  ASSERT_TRUE(document.ok()) << document.status();
  // The last instruction fetched the tuple again.
  EXPECT_EQ(document->root->kind, PickleKind::kTuple);
  const PickleValue* dict = &document->values.front();
  ASSERT_EQ(dict->kind, PickleKind::kDict);
  EXPECT_EQ(FindKey(*dict, "a"), document->root);
  EXPECT_EQ(document->root->items[0]->integer, 1);
  const std::vector<std::string> key = {"x", "y"};
  const PickleValue* list = FindKey(*dict, key);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->items[0]->kind, PickleKind::kBool);
  EXPECT_EQ(FindKey(*dict, "x"), nullptr);
}

TEST(UnpicklerTest, MakesDictionariesOfDefaultdict) {
  const auto document =
      Read(Bytes("ccollections\ndefaultdict\nc__builtin__\ndict\n\x85RX") +
           Raw("\x01\x00\x00\x00kK\x07s."));
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(FindKey(*document->root, "k")->integer, 7);
}

// OrderedDict(a=7) with an attribute, like that of a state_dict.
TEST(UnpicklerTest, LeavesOutTheAttributesOfDictionaries) {
  const auto document = Read(Bytes("ccollections\nOrderedDict\n)R") +
                             Raw("\x8c\x01"
                                 "aK\x07s") +
                             Raw("}\x8c\x09_metadata}sb."));
  ASSERT_TRUE(document.ok()) << document.status();
  ASSERT_EQ(document->root->kind, PickleKind::kDict);
  EXPECT_EQ(document->root->items.size(), 2u);
  EXPECT_EQ(FindKey(*document->root, "a")->integer, 7);
  EXPECT_THAT(Refusal(Raw("]}b.")), HasSubstr("attributes set on a list"));
  EXPECT_THAT(Refusal(Raw("}K\x01"
                          "b.")),
              HasSubstr("attributes set on a dictionary"));
  EXPECT_THAT(Refusal(Raw("}b.")), HasSubstr("a value is missing"));
}

TEST(UnpicklerTest, NamesGlobalsThatItRefuses) {
  EXPECT_THAT(Refusal("cos\nsystem\n."), HasSubstr("global os.system is not"));
  EXPECT_THAT(Refusal("cposix\nsystem\nX"), HasSubstr("file: pickle, byte 0"));
  EXPECT_THAT(Refusal(Raw("\x8c\x02os\x8c\x06system\x93.")),
              HasSubstr("byte 12: global os.system"));
  EXPECT_THAT(Refusal(Raw("ctorch\nLongStorage\n)R.")),
              HasSubstr("a call to torch LongStorage"));
}

// Every way to write a string, bytes, or a place in the memo.
TEST(UnpicklerTest, ReadsLengthsOfAllWidths) {
  struct Case {
    std::string bytes;
    PickleKind kind;
  };
  for (const Case& c :
       {Case{Raw("X\x02\0\0\0hi."), PickleKind::kText},
        Case{Raw("\x8c\x02hi."), PickleKind::kText},
        Case{Raw("\x8d\x02\0\0\0\0\0\0\0hi."), PickleKind::kText},
        Case{Raw("B\x02\0\0\0hi."), PickleKind::kBytes},
        Case{Raw("C\x02hi."), PickleKind::kBytes},
        Case{Raw("\x8e\x02\0\0\0\0\0\0\0hi."), PickleKind::kBytes},
        Case{Raw("C\x02hiq\x09N0h\x09."), PickleKind::kBytes},
        Case{Raw("\x8c\x02hir\1\2\3\4N0j\1\2\3\4."), PickleKind::kText},
        Case{Raw("N\x94\x8c\x02hi\x94h\x00h\x01."), PickleKind::kText}}) {
    const auto document = Read(c.bytes);
    ASSERT_TRUE(document.ok()) << document.status();
    EXPECT_EQ(document->root->kind, c.kind);
    EXPECT_EQ(document->root->bytes, "hi");
  }
}

TEST(UnpicklerTest, ReadsTheOtherValues) {
  EXPECT_EQ(Read("N.")->root->kind, PickleKind::kNone);
  EXPECT_EQ(IntegerOf(Raw("\x88.")), 1);
  EXPECT_EQ(IntegerOf(Raw("\x89.")), 0);
  EXPECT_EQ(Read(Raw("G\0\0\0\0\0\0\0\0."))->root->kind, PickleKind::kFloat);
  struct Case {
    std::string bytes;
    PickleKind kind;
    size_t items;
  };
  for (const Case& c :
       {Case{Raw(")."), PickleKind::kTuple, 0},
        Case{Raw("N\x85."), PickleKind::kTuple, 1},
        Case{Raw("NN\x86."), PickleKind::kTuple, 2},
        Case{Raw("NNN\x87."), PickleKind::kTuple, 3},
        Case{Raw("(NNNNt."), PickleKind::kTuple, 4},
        Case{Raw("]Na."), PickleKind::kList, 1},
        Case{Raw("](NNNe."), PickleKind::kList, 3},
        Case{Raw("}NNs."), PickleKind::kDict, 2},
        Case{Raw("}(NNNNu."), PickleKind::kDict, 4},
        Case{Raw("](NN1."), PickleKind::kList, 0},
        Case{Raw("ctorch\nSize\n(K\x01K\x02t\x85R."), PickleKind::kTuple, 2}}) {
    const auto document = Read(c.bytes);
    ASSERT_TRUE(document.ok()) << document.status();
    EXPECT_EQ(document->root->kind, c.kind);
    EXPECT_EQ(document->root->items.size(), c.items);
  }
  // Five is the newest protocol; the rest of the file is not read.
  const auto rest = Read(Raw("\x80\x05K\x07.and more"));
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(rest->bytes, 5u);
}

TEST(UnpicklerTest, RefusesCallsThatMakeNoTensor) {
  struct Case {
    std::string bytes;
    const char* what;
  };
  const std::string rebuild = Raw("ctorch._utils\n_rebuild_tensor_v2\n");
  for (const Case& c :
       {Case{Raw("N)R."), "a call to None"},
        Case{Raw("ccollections\nOrderedDict\nNR."), "a call to a name"},
        Case{Raw("ccollections\nOrderedDict\nN\x85R."),
             "a call to collections OrderedDict with 1 unsupported arguments"},
        Case{Raw("ccollections\ndefaultdict\nK\x01\x85R."),
             "a call to collections defaultdict with 1 unsupported"},
        Case{Raw("ctorch\nSize\nN\x85R."), "a call to torch Size with 1"},
        Case{Raw("K\x01K\x02\x93."), "a global whose name is not a string"},
        Case{Raw("\x8c\x01xK\x02\x93."), "a global whose name is not a"},
        Case{rebuild + Raw(")R."),
             "a tensor without storage, offset, sizes and strides"},
        Case{rebuild + Raw("(NK\0))\x89}tR."),
             "a tensor without storage, offset, sizes and strides"},
        Case{Raw("ctorch._utils\n_rebuild_parameter\nNNN\x87R."),
             "a call to torch._utils _rebuild_parameter with 3 unsupported"},
        Case{Raw("ctorch.storage\n_load_from_bytes\nC\x01x\x85R."),
             "a call to torch.storage _load_from_bytes with 1 unsupported"}}) {
    EXPECT_THAT(Refusal(c.bytes), HasSubstr(c.what));
    EXPECT_THAT(Refusal(c.bytes),
                HasSubstr("\nload the file with torch.load and save its "
                          "tensors, dictionaries and numbers again"));
  }
}

TEST(UnpicklerTest, RefusesOtherInstructions) {
  // INST, OBJ, NEWOBJ, EXT1, INT, STRING, EMPTY_SET, NEXT_BUFFER.
  for (const std::string code :
       {"i", "o", "\x81", "\x82", "I", "S", "\x8f", "\x97"}) {
    EXPECT_THAT(Refusal("N" + code), HasSubstr("is not one of those"));
  }
  EXPECT_THAT(Refusal(Raw("\x80\x06N.")),
              HasSubstr("protocol 6 is not supported"));
  EXPECT_THAT(Refusal(Raw("K\x01Q.")), HasSubstr("persistent ids have no"));
}

TEST(UnpicklerTest, RefusesDamagedPickles) {
  EXPECT_THAT(Refusal("(N"), HasSubstr("the pickle ends"));
  EXPECT_THAT(Refusal("."), HasSubstr("a value is missing"));
  EXPECT_THAT(Refusal("N(."), HasSubstr("a value is missing"));
  EXPECT_THAT(Refusal("Nt."), HasSubstr("a mark is missing"));
  EXPECT_THAT(Refusal("}N\x85s."), HasSubstr("a value is missing"));
  EXPECT_THAT(Refusal("NNa."), HasSubstr("items added to None"));
  EXPECT_THAT(Refusal("}(Nu."), HasSubstr("items added to a dictionary"));
  EXPECT_THAT(Refusal(Raw("h\x05.")), HasSubstr("value 5 was never stored"));
  EXPECT_THAT(Refusal("cos"), HasSubstr("unterminated line"));
  EXPECT_THAT(Refusal(Raw("\x8e\xff\xff\xff\xff\xff\xff\xff\xffx")),
              HasSubstr("18446744073709551615 more bytes"));
}

// Nothing is allocated for lengths beyond the file's size.
TEST(UnpicklerTest, RefusesLengthsBeyondTheFile) {
  const std::string longs[] = {
      Raw("\x8b\xff\xff\xff\x7f."),    // LONG4 of 2 GiB
      Raw("\x8b\xff\xff\xff\xff."),    // and of -1 bytes
      Raw("B\xff\xff\xff\xff."),       // BINBYTES of 4 GiB
      Raw("X\xff\xff\xff\xff."),       // BINUNICODE of 4 GiB
      Raw("\x8d\0\0\0\0\0\0\0\x80."),  // BINUNICODE8 of 2^63
  };
  for (const std::string& pickle : longs) {
    EXPECT_NE(Refusal(pickle), "") << ::testing::PrintToString(pickle);
  }
  EXPECT_THAT(Refusal(std::string(5'000'000, '(')),
              HasSubstr("more than 2500000 instructions"));
}

TEST(UnpicklerTest, BoundsTheInstructions) {
  EXPECT_THAT(Refusal(std::string(2'000'000, 'N')),
              HasSubstr("more than 1048576 instructions"));
  EXPECT_THAT(Refusal(std::string(4'000'000, 'N')),
              HasSubstr("more than 2000000 instructions"));
}

// {"k": tensor of a storage}, in the form of torch.save.
TEST(UnpicklerTest, NamesTensorsThatItRefuses) {
  const std::string pickle =
      Bytes("}\x8c\x01kctorch._utils\n_rebuild_tensor_v2\n(K\x07QK\x02K\x03") +
      Raw("\x85K\x01\x85\x89}tRs.");
  const char bytes[16] = {};
  absl::StatusOr<StoredTensor> storage =
      StoredTensor{{ElementType::kInt32}, {4}, {1}, bytes, nullptr};
  const auto refusal = [&] {
    const auto document =
        Unpickle({"file", pickle,
                  [&](const std::string& where,
                      const PickleValue&) -> absl::StatusOr<StoredTensor> {
                    if (storage.ok()) return storage;
                    return absl::DataLossError(where + ": short");
                  },
                  nullptr});
    return std::string(document.status().message());
  };
  EXPECT_THAT(refusal(), HasSubstr("file: pickle, byte 52, tensor \"k\": a "
                                   "tensor of shape [3], strides [1] and "
                                   "offset 2 does not fit its storage of 4"));
  storage = absl::DataLossError("");
  EXPECT_EQ(refusal(), "file: pickle, byte 40, tensor \"k\": short");
}

// Messages do not print lists of arbitrary length.
TEST(UnpicklerTest, RefusesManyDimensions) {
  const StoredTensor storage{{ElementType::kInt32}, {1}, {1}, "1234", nullptr};
  const std::vector<int64_t> ones(100000, 1);
  const absl::Status refused =
      ViewOfStorage("t", storage, 0, ones, ones).status();
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("t: a tensor with 100000 sizes and 100000 strides"));
  EXPECT_LT(refused.message().size(), 200u);
}

TEST(UnpicklerTest, ChecksViewsAgainstTheirStorage) {
  const char bytes[40] = {};
  const StoredTensor storage{{ElementType::kInt32}, {10}, {1}, bytes, nullptr};
  const auto view = ViewOfStorage("t", storage, 1, {3, 2}, {2, 1});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->data, bytes + 4);
  EXPECT_THAT(view->sizes, ElementsAre(3, 2));
  EXPECT_TRUE(ViewOfStorage("t", storage, 10, {0}, {1}).ok());
  const int64_t large = int64_t{1} << 62;
  for (const auto& [offset, sizes, strides] : std::vector<
           std::tuple<int64_t, std::vector<int64_t>, std::vector<int64_t>>>{
           {0, {11}, {1}},
           {8, {3}, {1}},
           {-1, {1}, {1}},
           {0, {-1}, {1}},
           {9, {2}, {-1}},
           {0, {4, 4}, {1, 1}},                // more elements than there are
           {0, {1000000}, {0}},                // expanded
           {0, {large, large}, {0, 0}},        // beyond 63 bits
           {0, {0, large, large}, {0, 0, 0}},  // empty, sizes beyond 63 bits
           {0, {2}, {large - 1 + large}},
           {0, {2, 2}, {1}}}) {
    EXPECT_FALSE(ViewOfStorage("t", storage, offset, sizes, strides).ok());
  }
}

}  // namespace
}  // namespace millrace
