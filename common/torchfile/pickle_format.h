// SPDX-License-Identifier: Apache-2.0
// The instructions and names that a pickle may use here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace millrace::pickle_internal {

// Python's pickletools.py describes these instructions.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinBytes8 = 0x8e,
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kBuild = 'b',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kBinPersId = 'Q',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kMemoize = 0x94,
  kProto = 0x80,
  kFrame = 0x95,
};

inline constexpr std::string_view kRebuildTensor =
    "torch._utils _rebuild_tensor_v2";
inline constexpr std::string_view kRebuildFromType =
    "torch._tensor _rebuild_from_type_v2";
inline constexpr std::string_view kRebuildParameter =
    "torch._utils _rebuild_parameter";
inline constexpr std::string_view kLoadFromBytes =
    "torch.storage _load_from_bytes";
inline constexpr std::string_view kTorchSize = "torch Size";
inline constexpr std::string_view kDefaultDict = "collections defaultdict";

// All names, as "module name", that a pickle may use. Storage types occur in
// persistent ids, and list as the default of a defaultdict.
inline constexpr std::array<std::string_view, 22> kGlobals = {
    kRebuildTensor,        kRebuildFromType,
    kRebuildParameter,     "graphlearn_torch.partition.base GLTPartitionBook",
    kLoadFromBytes,        kTorchSize,
    kDefaultDict,          "collections OrderedDict",
    "__builtin__ dict",    "builtins dict",
    "__builtin__ list",    "builtins list",
    "torch DoubleStorage", "torch FloatStorage",
    "torch HalfStorage",   "torch BFloat16Storage",
    "torch LongStorage",   "torch IntStorage",
    "torch ShortStorage",  "torch CharStorage",
    "torch ByteStorage",   "torch BoolStorage",
};

}  // namespace millrace::pickle_internal
