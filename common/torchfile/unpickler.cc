// SPDX-License-Identifier: Apache-2.0
#include "common/torchfile/unpickler.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/torchfile/pickle_format.h"

namespace millrace {
namespace pickle_internal {
namespace {

// Number of instructions that every pickle may have. One takes at most about
// 200 bytes of memory, for its value and for pointers to it on the stack and in
// the memo.
constexpr size_t kAlwaysAllowed = size_t{1} << 20;
// Large files of tensors have more instructions: about 30 per tensor, with 3
// bytes each on average.
constexpr size_t kLeastBytesEach = 2;
constexpr int kMaxProtocol = 5;
// Messages cut longer names of tensors.
constexpr size_t kMaxNameBytes = 200;

bool MakesDict(std::string_view global) {
  return global == kDefaultDict || global == "collections OrderedDict" ||
         global == "__builtin__ dict" || global == "builtins dict";
}

class Machine {
 public:
  explicit Machine(const PickleSource& source) : source_(source) {}

  absl::StatusOr<PickleDocument> Run() {
    const size_t most =
        std::max(kAlwaysAllowed, source_.bytes.size() / kLeastBytesEach);
    for (size_t i = 0; i < most; ++i) {
      start_ = next_;
      MILLRACE_ASSIGN_OR_RETURN(const std::string_view code, Take(1));
      const auto opcode = static_cast<uint8_t>(code[0]);
      if (opcode == kStop) {
        MILLRACE_ASSIGN_OR_RETURN(document_.root, Pop());
        document_.bytes = next_;
        return std::move(document_);
      }
      MILLRACE_RETURN_IF_ERROR(Execute(opcode));
    }
    return Refused(StrCat("it has more than ", most,
                          " instructions, so this is not a file of tensors"));
  }

 private:
  using Value = const PickleValue*;

  absl::Status Execute(uint8_t opcode);
  absl::Status ExecuteScalar(uint8_t opcode);
  absl::Status ExecuteContainer(uint8_t opcode);
  absl::Status ExecuteMemo(uint8_t opcode);
  absl::Status ExecuteCall(uint8_t opcode);

  std::string Place() const {
    return StrCat(source_.name, ": pickle, byte ", start_);
  }
  // Place() and the key of the tensor being made, which is on the stack below
  // the functions that make the tensor.
  std::string PlaceOfTensor() const {
    auto below = stack_.rbegin();
    while (below != stack_.rend() && (*below)->kind == PickleKind::kGlobal) {
      ++below;
    }
    if (below == stack_.rend() || (*below)->kind != PickleKind::kText) {
      return Place();
    }
    return StrCat(Place(), ", tensor ", Quoted((*below)->bytes, kMaxNameBytes));
  }
  absl::Status Refused(std::string_view what) const {
    return RefusedAt(Place(), what);
  }
  static absl::Status RefusedAt(const std::string& place,
                                std::string_view what) {
    return absl::InvalidArgumentError(
        StrCat(place, ": ", what,
               "\nload the file with torch.load and save its tensors, "
               "dictionaries and numbers again with torch.save"));
  }
  absl::Status Damaged(std::string_view what) const {
    return absl::DataLossError(StrCat(Place(), ": ", what));
  }

  absl::StatusOr<std::string_view> Take(uint64_t count) {
    if (count > source_.bytes.size() - next_) {
      return Damaged(
          StrCat("the pickle ends where ", count, " more bytes are needed"));
    }
    const std::string_view taken = source_.bytes.substr(next_, count);
    next_ += count;
    return taken;
  }
  template <typename T>
  absl::StatusOr<T> TakeNumber() {
    MILLRACE_ASSIGN_OR_RETURN(const std::string_view bytes, Take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  template <typename T>
  absl::StatusOr<std::string_view> TakeCounted() {
    MILLRACE_ASSIGN_OR_RETURN(const T count, TakeNumber<T>());
    return Take(count);
  }
  absl::StatusOr<std::string_view> TakeLine() {
    const size_t end = source_.bytes.find('\n', next_);
    if (end == std::string_view::npos) return Damaged("unterminated line");
    const std::string_view line = source_.bytes.substr(next_, end - next_);
    next_ = end + 1;
    return line;
  }

  void Push(Value value) { stack_.push_back(value); }
  PickleValue* Add(PickleValue value) {
    document_.values.push_back(std::move(value));
    return &document_.values.back();
  }
  absl::Status PushNew(PickleValue value) {
    Push(Add(std::move(value)));
    return absl::OkStatus();
  }
  absl::Status PushBytes(PickleKind kind,
                         const absl::StatusOr<std::string_view>& bytes) {
    if (!bytes.ok()) return bytes.status();
    return PushNew({.kind = kind, .bytes = *bytes});
  }
  template <typename T>
  absl::Status PushNumber(PickleKind kind, const absl::StatusOr<T>& number) {
    if (!number.ok()) return number.status();
    return PushNew({.kind = kind, .integer = *number});
  }
  absl::Status PushLong(const absl::StatusOr<std::string_view>& bytes);

  // The size of the stack at the newest mark; values above it belong to the
  // mark.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }
  absl::StatusOr<Value> Pop() {
    if (stack_.size() <= Floor()) return Damaged("a value is missing");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  absl::StatusOr<std::vector<Value>> PopMany(size_t count) {
    if (stack_.size() - Floor() < count) return Damaged("a value is missing");
    std::vector<Value> values(stack_.end() - static_cast<int64_t>(count),
                              stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  absl::StatusOr<std::vector<Value>> PopToMark() {
    if (marks_.empty()) return Damaged("a mark is missing");
    auto values = PopMany(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  absl::Status PushTuple(absl::StatusOr<std::vector<Value>> items) {
    if (!items.ok()) return items.status();
    return PushNew({.kind = PickleKind::kTuple, .items = *std::move(items)});
  }
  absl::Status Extend(PickleKind kind,
                      const absl::StatusOr<std::vector<Value>>& items);
  absl::Status DropAttributes();

  absl::Status PushGlobal(std::string_view module, std::string_view name);
  absl::StatusOr<PickleValue> Call(std::string_view global,
                                   const std::vector<Value>& arguments);
  absl::StatusOr<PickleValue> RebuildTensor(
      const std::vector<Value>& arguments);
  absl::StatusOr<std::vector<int64_t>> Integers(const PickleValue& tuple);
  absl::Status Store(uint32_t place);
  absl::Status Recall(uint32_t place);

  const PickleSource& source_;
  PickleDocument document_;
  size_t start_ = 0;  // start of the current instruction
  size_t next_ = 0;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // sizes of the stack at each mark
  std::unordered_map<uint32_t, Value> memo_;
};

absl::Status Machine::Execute(uint8_t opcode) {
  switch (opcode) {
    case kProto: {
      MILLRACE_ASSIGN_OR_RETURN(const uint8_t protocol, TakeNumber<uint8_t>());
      if (protocol <= kMaxProtocol) return absl::OkStatus();
      return Refused(StrCat("protocol ", static_cast<int>(protocol),
                            " is not supported; the newest supported one is ",
                            kMaxProtocol));
    }
    case kFrame:
      return TakeNumber<uint64_t>().status();
    case kMark:
      marks_.push_back(stack_.size());
      return absl::OkStatus();
    case kPop:
      return Pop().status();
    case kPopMark:
      return PopToMark().status();
    case kGlobal:
    case kStackGlobal:
    case kReduce:
    case kBinPersId:
      return ExecuteCall(opcode);
    case kBinPut:
    case kLongBinPut:
    case kBinGet:
    case kLongBinGet:
    case kMemoize:
      return ExecuteMemo(opcode);
    case kEmptyTuple:
    case kTuple:
    case kTuple1:
    case kTuple2:
    case kTuple3:
    case kEmptyList:
    case kAppend:
    case kAppends:
    case kEmptyDict:
    case kSetItem:
    case kSetItems:
    case kBuild:
      return ExecuteContainer(opcode);
    default:
      return ExecuteScalar(opcode);
  }
}

absl::Status Machine::ExecuteScalar(uint8_t opcode) {
  switch (opcode) {
    case kNone:
      return PushNew({});
    case kNewTrue:
    case kNewFalse:
      return PushNew(
          {.kind = PickleKind::kBool, .integer = opcode == kNewTrue ? 1 : 0});
    case kBinInt:
      return PushNumber(PickleKind::kInteger, TakeNumber<int32_t>());
    case kBinInt1:
      return PushNumber(PickleKind::kInteger, TakeNumber<uint8_t>());
    case kBinInt2:
      return PushNumber(PickleKind::kInteger, TakeNumber<uint16_t>());
    case kLong1:
      return PushLong(TakeCounted<uint8_t>());
    case kLong4:
      return PushLong(TakeCounted<uint32_t>());
    case kBinFloat:
      MILLRACE_RETURN_IF_ERROR(Take(sizeof(double)).status());
      return PushNew({.kind = PickleKind::kFloat});
    case kBinUnicode:
      return PushBytes(PickleKind::kText, TakeCounted<uint32_t>());
    case kShortBinUnicode:
      return PushBytes(PickleKind::kText, TakeCounted<uint8_t>());
    case kBinUnicode8:
      return PushBytes(PickleKind::kText, TakeCounted<uint64_t>());
    case kBinBytes:
      return PushBytes(PickleKind::kBytes, TakeCounted<uint32_t>());
    case kShortBinBytes:
      return PushBytes(PickleKind::kBytes, TakeCounted<uint8_t>());
    case kBinBytes8:
      return PushBytes(PickleKind::kBytes, TakeCounted<uint64_t>());
    default:
      return Refused(absl::StrFormat(
          "instruction 0x%02x is not one of those that files of tensors have",
          opcode));
  }
}

// Pushes a little-endian two's complement number of any length.
absl::Status Machine::PushLong(const absl::StatusOr<std::string_view>& bytes) {
  if (!bytes.ok()) return bytes.status();
  if (bytes->size() > sizeof(int64_t)) {
    return PushNew({.kind = PickleKind::kHuge, .bytes = *bytes});
  }
  const bool negative =
      !bytes->empty() && (static_cast<uint8_t>(bytes->back()) & 0x80) != 0;
  int64_t value = negative ? -1 : 0;
  std::memcpy(&value, bytes->data(), bytes->size());
  return PushNew({.kind = PickleKind::kInteger, .integer = value});
}

absl::Status Machine::ExecuteContainer(uint8_t opcode) {
  switch (opcode) {
    case kEmptyTuple:
      return PushNew({.kind = PickleKind::kTuple});
    case kTuple1:
      return PushTuple(PopMany(1));
    case kTuple2:
      return PushTuple(PopMany(2));
    case kTuple3:
      return PushTuple(PopMany(3));
    case kTuple:
      return PushTuple(PopToMark());
    case kEmptyList:
      return PushNew({.kind = PickleKind::kList});
    case kAppend:
      return Extend(PickleKind::kList, PopMany(1));
    case kAppends:
      return Extend(PickleKind::kList, PopToMark());
    case kEmptyDict:
      return PushNew({.kind = PickleKind::kDict});
    case kSetItem:
      return Extend(PickleKind::kDict, PopMany(2));
    case kBuild:
      return DropAttributes();
    default:
      return Extend(PickleKind::kDict, PopToMark());
  }
}

// Adds items to the list or dictionary on top of the stack.
absl::Status Machine::Extend(PickleKind kind,
                             const absl::StatusOr<std::vector<Value>>& items) {
  if (!items.ok()) return items.status();
  if (stack_.size() <= Floor()) return Damaged("a value is missing");
  // The values belong to document_, which is not const.
  auto* container = const_cast<PickleValue*>(stack_.back());
  if (container->kind != kind ||
      (kind == PickleKind::kDict && items->size() % 2 != 0)) {
    return Refused(StrCat("items added to ", PickleKindName(container->kind)));
  }
  container->items.insert(container->items.end(), items->begin(), items->end());
  return absl::OkStatus();
}

// Ignores the attributes of a dictionary, which are not its items. Those of a
// state_dict are the versions of its modules.
absl::Status Machine::DropAttributes() {
  MILLRACE_ASSIGN_OR_RETURN(const Value attributes, Pop());
  if (stack_.size() <= Floor()) return Damaged("a value is missing");
  if (stack_.back()->kind == PickleKind::kDict &&
      attributes->kind == PickleKind::kDict) {
    return absl::OkStatus();
  }
  return Refused(
      StrCat("attributes set on ", PickleKindName(stack_.back()->kind)));
}

absl::Status Machine::ExecuteMemo(uint8_t opcode) {
  uint32_t place = static_cast<uint32_t>(memo_.size());
  if (opcode == kBinPut || opcode == kBinGet) {
    MILLRACE_ASSIGN_OR_RETURN(place, TakeNumber<uint8_t>());
  } else if (opcode != kMemoize) {
    MILLRACE_ASSIGN_OR_RETURN(place, TakeNumber<uint32_t>());
  }
  const bool get = opcode == kBinGet || opcode == kLongBinGet;
  return get ? Recall(place) : Store(place);
}

absl::Status Machine::Store(uint32_t place) {
  if (stack_.size() <= Floor()) return Damaged("a value is missing");
  memo_[place] = stack_.back();
  return absl::OkStatus();
}

absl::Status Machine::Recall(uint32_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) {
    return Damaged(StrCat("value ", place, " was never stored"));
  }
  Push(found->second);
  return absl::OkStatus();
}

absl::Status Machine::ExecuteCall(uint8_t opcode) {
  if (opcode == kGlobal) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string_view module, TakeLine());
    MILLRACE_ASSIGN_OR_RETURN(const std::string_view name, TakeLine());
    return PushGlobal(module, name);
  }
  MILLRACE_ASSIGN_OR_RETURN(const Value last, Pop());
  if (opcode == kBinPersId) {
    if (!source_.storage) return Refused("persistent ids have no meaning here");
    MILLRACE_ASSIGN_OR_RETURN(StoredTensor storage,
                              source_.storage(PlaceOfTensor(), *last));
    return PushNew(
        {.kind = PickleKind::kStorage, .tensor = std::move(storage)});
  }
  MILLRACE_ASSIGN_OR_RETURN(const Value first, Pop());
  if (opcode == kStackGlobal) {
    if (first->kind != PickleKind::kText || last->kind != PickleKind::kText) {
      return Refused("a global whose name is not a string");
    }
    return PushGlobal(first->bytes, last->bytes);
  }
  if (first->kind != PickleKind::kGlobal || last->kind != PickleKind::kTuple) {
    return Refused(StrCat("a call to ", PickleKindName(first->kind)));
  }
  if (first->bytes == kTorchSize && last->items.size() == 1 &&
      last->items[0]->kind == PickleKind::kTuple) {
    Push(last->items[0]);
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(PickleValue result,
                            Call(first->bytes, last->items));
  return PushNew(std::move(result));
}

absl::Status Machine::PushGlobal(std::string_view module,
                                 std::string_view name) {
  const std::string global = StrCat(module, " ", name);
  for (const std::string_view known : kGlobals) {
    if (known == global) {
      return PushNew({.kind = PickleKind::kGlobal, .bytes = known});
    }
  }
  return Refused(StrCat(
      "global ",
      absl::CHexEscape(StrCat(module.substr(0, 80), ".", name.substr(0, 80))),
      " is not supported: it is a class or function of a program, not a "
      "tensor"));
}

absl::StatusOr<PickleValue> Machine::Call(std::string_view global,
                                          const std::vector<Value>& arguments) {
  if (global == kRebuildTensor) return RebuildTensor(arguments);
  // Makes a subclass of Tensor. Arguments: function, type, arguments of the
  // function, state.
  if (global == kRebuildFromType && arguments.size() == 4 &&
      arguments[0]->bytes == kRebuildTensor &&
      arguments[2]->kind == PickleKind::kTuple) {
    return RebuildTensor(arguments[2]->items);
  }
  // Arguments: tensor, requires_grad, hooks.
  if (global == kRebuildParameter && arguments.size() == 3 &&
      arguments[0]->kind == PickleKind::kTensor) {
    return *arguments[0];
  }
  if (global == kLoadFromBytes && arguments.size() == 1 &&
      arguments[0]->kind == PickleKind::kBytes && source_.load_bytes) {
    PickleValue storage{.kind = PickleKind::kStorage};
    MILLRACE_ASSIGN_OR_RETURN(storage.tensor,
                              source_.load_bytes(arguments[0]->bytes));
    return storage;
  }
  // The argument of defaultdict would make values for missing keys, which are
  // never looked up here.
  const bool makes_default = global == kDefaultDict && arguments.size() == 1 &&
                             (arguments[0]->kind == PickleKind::kGlobal ||
                              arguments[0]->kind == PickleKind::kNone);
  if (MakesDict(global) && (arguments.empty() || makes_default)) {
    return PickleValue{.kind = PickleKind::kDict};
  }
  return Refused(StrCat("a call to ", global, " with ", arguments.size(),
                        " unsupported arguments"));
}

absl::StatusOr<std::vector<int64_t>> Machine::Integers(
    const PickleValue& tuple) {
  std::vector<int64_t> integers;
  for (const Value item : tuple.items) {
    if (item->kind != PickleKind::kInteger) {
      return RefusedAt(PlaceOfTensor(), "its shape is not a tuple of integers");
    }
    integers.push_back(item->integer);
  }
  return integers;
}

// Arguments: storage, offset, sizes, strides, requires_grad, hooks[, metadata].
absl::StatusOr<PickleValue> Machine::RebuildTensor(
    const std::vector<Value>& arguments) {
  if (arguments.size() < 6 || arguments.size() > 7 ||
      arguments[0]->kind != PickleKind::kStorage ||
      arguments[1]->kind != PickleKind::kInteger ||
      arguments[2]->kind != PickleKind::kTuple ||
      arguments[3]->kind != PickleKind::kTuple) {
    return RefusedAt(PlaceOfTensor(),
                     "a tensor without storage, offset, sizes and strides");
  }
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                            Integers(*arguments[2]));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> strides,
                            Integers(*arguments[3]));
  PickleValue value{.kind = PickleKind::kTensor};
  MILLRACE_ASSIGN_OR_RETURN(
      value.tensor, ViewOfStorage(PlaceOfTensor(), arguments[0]->tensor,
                                  arguments[1]->integer, std::move(sizes),
                                  std::move(strides)));
  return value;
}

}  // namespace
}  // namespace pickle_internal

absl::StatusOr<PickleDocument> Unpickle(const PickleSource& source) {
  return pickle_internal::Machine(source).Run();
}

}  // namespace millrace
