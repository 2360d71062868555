// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/instruction_parser.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/ptxemu/declarations.h"
#include "tests/ptxemu/operations.h"

namespace millrace::ptxemu {
namespace {

const std::map<std::string_view, SpecialRegister>& SpecialRegisters() {
  using S = SpecialRegister;
  static const std::map<std::string_view, SpecialRegister> kRegisters = {
      {"%tid.x", S::kThreadX},
      {"%tid.y", S::kThreadY},
      {"%tid.z", S::kThreadZ},
      {"%ntid.x", S::kBlockSizeX},
      {"%ntid.y", S::kBlockSizeY},
      {"%ntid.z", S::kBlockSizeZ},
      {"%ctaid.x", S::kBlockX},
      {"%ctaid.y", S::kBlockY},
      {"%ctaid.z", S::kBlockZ},
      {"%nctaid.x", S::kGridSizeX},
      {"%nctaid.y", S::kGridSizeY},
      {"%nctaid.z", S::kGridSizeZ},
      {"%laneid", S::kLane},
      {"%warpid", S::kWarp},
      {"%nwarpid", S::kWarpCount},
      {"%lanemask_eq", S::kLaneMaskEqual},
      {"%lanemask_lt", S::kLaneMaskLess},
      {"%lanemask_le", S::kLaneMaskLessEqual},
      {"%lanemask_gt", S::kLaneMaskGreater},
      {"%lanemask_ge", S::kLaneMaskGreaterEqual},
      {"%clock", S::kClock},
      {"%clock64", S::kClock},
      {"%globaltimer", S::kClock},
      {"%smid", S::kMultiprocessor},
      {"%nsmid", S::kMultiprocessorCount},
      {"%dynamic_smem_size", S::kDynamicSharedBytes},
      {"%total_smem_size", S::kSharedBytes},
      {"%gridid", S::kZero}};
  return kRegisters;
}

Operand Immediate(uint64_t value) {
  return {.kind = Operand::Kind::kImmediate, .value = value};
}

Operand SymbolOperand(const Symbol& symbol) {
  Operand operand = Immediate(symbol.address);
  if (symbol.is_dynamic) operand.kind = Operand::Kind::kDynamicShared;
  if (symbol.space == Space::kLocal) operand.kind = Operand::Kind::kLocal;
  if (symbol.space == Space::kParam) operand.value |= kParamTag;
  return operand;
}

// Instructions without effect here: all memory is sequentially consistent.
bool HasNoEffect(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "membar",  "fence",          "prefetch",   "prefetchu",
      "discard", "griddepcontrol", "setmaxnreg", "pmevent"};
  return std::find(std::begin(kNames), std::end(kNames), name) !=
         std::end(kNames);
}

}  // namespace

InstructionParser::InstructionParser(TokenCursor* cursor,
                                     const Function* function,
                                     FindSymbol find_outside)
    : cursor_(*cursor),
      function_(*function),
      find_outside_(std::move(find_outside)) {}

Instruction InstructionParser::Parse(std::string* label) {
  in_ = Instruction();
  in_.line = cursor_.line();
  if (cursor_.TakeIf("@")) {
    in_.is_guard_negated = cursor_.TakeIf("!");
    in_.guard = function_.registers.at(std::string(cursor_.Take()));
  }
  ParseName();
  ReadModifiers();
  ParseRest(label);
  cursor_.Expect(";");
  return std::move(in_);
}

void InstructionParser::ParseName() {
  name_ = cursor_.Take();
  while (cursor_.Is(":") && cursor_.Peek(1) == ":") {
    cursor_.Expect(":");
    cursor_.Expect(":");
    absl::StrAppend(&name_, "::", std::string(cursor_.Take()));
  }
  parts_ = absl::StrSplit(name_, '.');
}

bool InstructionParser::Has(std::string_view modifier) const {
  return std::find(parts_.begin() + 1, parts_.end(), modifier) != parts_.end();
}

int InstructionParser::IndexIn(
    std::initializer_list<std::string_view> names) const {
  for (const std::string& part : parts_) {
    const auto found = std::find(names.begin(), names.end(), part);
    if (found != names.end()) return static_cast<int>(found - names.begin());
  }
  return -1;
}

void InstructionParser::ReadModifiers() {
  static const std::map<std::string_view, Space> kSpaces = {
      {"global", Space::kGlobal},      {"shared", Space::kShared},
      {"shared::cta", Space::kShared}, {"local", Space::kLocal},
      {"param", Space::kParam},        {"param::entry", Space::kParam},
      {"param::func", Space::kParam},  {"const", Space::kConst}};
  static const std::map<std::string_view, std::pair<Rounding, bool>>
      kRoundings = {
          {"rn", {Rounding::kNearest, false}}, {"rz", {Rounding::kZero, false}},
          {"rm", {Rounding::kDown, false}},    {"rp", {Rounding::kUp, false}},
          {"rni", {Rounding::kNearest, true}}, {"rzi", {Rounding::kZero, true}},
          {"rmi", {Rounding::kDown, true}},    {"rpi", {Rounding::kUp, true}}};
  types_.clear();
  for (const std::string& part : parts_) {
    ValueType type;
    if (ParseValueType(part, &type)) types_.push_back(type);
    const auto space = kSpaces.find(part);
    if (space != kSpaces.end()) in_.space = space->second;
    const auto rounding = kRoundings.find(part);
    if (rounding != kRoundings.end()) {
      std::tie(in_.rounding, in_.rounds_to_integer) = rounding->second;
    }
  }
  if (!types_.empty()) in_.type = types_.back();
  in_.saturates = Has("sat");
  in_.propagates_nan = Has("NaN");
  in_.is_wide = Has("wide");
  in_.is_high = Has("hi");
  in_.is_left = Has("l");
  in_.is_clamped = Has("clamp");
  in_.is_shift_amount = Has("shiftamt");
  in_.writes_carry = Has("cc");
  in_.reads_carry =
      parts_[0] == "addc" || parts_[0] == "subc" || parts_[0] == "madc";
}

void InstructionParser::ParseRest(std::string* label) {
  if (FindOperation(parts_[0]) != nullptr) {
    ParseOperation();
  } else if (HasNoEffect(parts_[0])) {
    while (!cursor_.Is(";")) cursor_.Take();
  } else if (!ParseControl(label) && !ParseMemory() && !ParseData() &&
             !ParseBarrier() && !ParseWarpOperation()) {
    cursor_.Fail(absl::StrCat("unknown instruction ", name_));
  }
}

void InstructionParser::ParseOperation() {
  const Operation& operation = *FindOperation(parts_[0]);
  const bool is_permutation_mode =
      parts_[0] == "prmt" &&
      IndexIn({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) >= 0;
  if (is_permutation_mode || types_.empty()) {
    cursor_.Fail(absl::StrCat("unknown instruction ", name_));
  }
  in_.opcode = Opcode::kCompute;
  in_.compute = operation.compute;
  ParseOperands(operation.source_count);
}

bool InstructionParser::ParseControl(std::string* label) {
  const std::string& name = parts_[0];
  if (name == "bra") {
    in_.opcode = Opcode::kBranch;
    *label = cursor_.Take();
  } else if (name == "brx") {
    in_.opcode = Opcode::kBranchIndexed;
    in_.sources[0] = ParseOperand();
    cursor_.Expect(",");
    *label = cursor_.Take();
  } else if (name == "call") {
    ParseCall();
  } else if (name == "ret") {
    in_.opcode = Opcode::kReturn;
  } else if (name == "exit") {
    in_.opcode = Opcode::kExit;
  } else if (name == "trap" || name == "brkpt") {
    in_.opcode = Opcode::kTrap;
  } else if (name == "nanosleep") {
    in_.opcode = Opcode::kSleep;
    ParseOperand();
  } else {
    return false;
  }
  return true;
}

void InstructionParser::ParseCall() {
  in_.opcode = Opcode::kCall;
  in_.call = std::make_shared<CallTarget>();
  if (cursor_.Is("(")) {
    in_.call->results = ParseNames();
    cursor_.Expect(",");
  }
  in_.call->name = cursor_.Take();
  if (cursor_.TakeIf(",")) in_.call->arguments = ParseNames();
  if (cursor_.Is(",")) cursor_.Fail("an indirect call");
}

std::vector<std::string> InstructionParser::ParseNames() {
  std::vector<std::string> names;
  cursor_.Expect("(");
  while (!cursor_.TakeIf(")")) {
    names.emplace_back(cursor_.Take());
    cursor_.TakeIf(",");
  }
  return names;
}

bool InstructionParser::ParseMemory() {
  const std::string& name = parts_[0];
  if (name == "ld" || name == "ldu") {
    in_.opcode = Opcode::kLoad;
    ParseVectorOrOperand();
    cursor_.Expect(",");
    ParseAddress();
  } else if (name == "st") {
    in_.opcode = Opcode::kStore;
    ParseAddress();
    cursor_.Expect(",");
    ParseVectorOrOperand();
  } else if (name == "atom" || name == "red") {
    in_.opcode = Opcode::kAtomic;
    const int operation = IndexIn(
        {"add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"});
    if (operation < 0) cursor_.Fail(absl::StrCat("unknown atomic ", name_));
    in_.atomic = static_cast<AtomicOperation>(operation);
    if (name == "atom") {
      ParseResult();
      cursor_.Expect(",");
    }
    ParseAddress();
    ParseSource(0);
    if (cursor_.Is(",")) ParseSource(1);
  } else {
    return false;
  }
  // A cache policy may follow.
  while (!cursor_.Is(";")) cursor_.Take();
  return true;
}

bool InstructionParser::ParseData() {
  const std::string& name = parts_[0];
  if (name == "mov") {
    ParseMove();
  } else if (name == "cvta") {
    in_.opcode = Opcode::kConvertAddress;
    in_.to_generic = !Has("to");
    ParseOperands(1);
  } else if (name == "isspacep") {
    in_.opcode = Opcode::kIsSpace;
    ParseOperands(1);
  } else if (name == "lop3") {
    in_.opcode = Opcode::kCompute;
    in_.compute = LookUpBits;
    ParseOperands(3);
    cursor_.Expect(",");
    in_.table = static_cast<uint8_t>(ParseNumber(cursor_.Take()));
  } else if (name == "setp" || name == "set") {
    ParseComparison();
  } else if (name == "cvt") {
    in_.opcode = Opcode::kCompute;
    in_.compute = Convert;
    in_.type = types_.at(0);
    in_.second_type = types_.back();
    ParseOperands(1);
    if (cursor_.Is(",")) ParseSource(1);
  } else {
    return false;
  }
  return true;
}

void InstructionParser::ParseMove() {
  in_.opcode = Opcode::kMove;
  if (cursor_.Is("{")) {
    in_.opcode = Opcode::kSplit;
    ParseVector();
    ParseSource(0);
    return;
  }
  ParseResult();
  cursor_.Expect(",");
  if (cursor_.Is("{")) {
    in_.opcode = Opcode::kJoin;
    ParseVector();
  } else {
    in_.sources[0] = ParseOperand();
  }
}

void InstructionParser::ParseComparison() {
  const int comparison =
      IndexIn({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
               "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  if (comparison < 0 || types_.empty() || in_.type.is_packed) {
    cursor_.Fail(absl::StrCat("unknown comparison ", name_));
  }
  in_.comparison = static_cast<Comparison>(comparison);
  const bool is_set = parts_[0] == "set";
  in_.combination = static_cast<Combination>(IndexIn({"and", "or", "xor"}) + 1);
  if (is_set && in_.combination != Combination::kNone) {
    cursor_.Fail("set with a predicate");
  }
  in_.opcode = is_set ? Opcode::kCompute : Opcode::kSetPredicate;
  in_.compute = is_set ? Set : nullptr;
  in_.second_type = types_.front();
  ParseOperands(2);
  if (in_.combination != Combination::kNone) ParseSource(2);
}

bool InstructionParser::ParseBarrier() {
  if (parts_[0] != "bar" && parts_[0] != "barrier") return false;
  if (Has("warp")) {
    in_.opcode = Opcode::kWarpSync;
    in_.member_mask = ParseOperand();
  } else if (Has("red")) {
    ParseBarrierReduction();
  } else if (Has("arrive")) {
    return false;
  } else {
    in_.opcode = Opcode::kBarrier;
    in_.sources[0] = ParseOperand();
    if (cursor_.Is(",")) ParseSource(1);
  }
  return true;
}

// The sources become: the barrier, the number of threads if it is given, and
// the predicate.
void InstructionParser::ParseBarrierReduction() {
  in_.opcode = Opcode::kBarrierReduce;
  in_.barrier_reduction =
      static_cast<BarrierReduction>(IndexIn({"popc", "and", "or"}));
  ParseOperands(2);
  if (cursor_.Is(",")) {
    ParseSource(2);
  } else {
    in_.sources[2] = std::exchange(in_.sources[1], Operand());
  }
}

bool InstructionParser::ParseWarpOperation() {
  const std::string& name = parts_[0];
  int source_count = 1;
  if (name == "vote") {
    in_.opcode = Opcode::kVote;
    in_.vote = static_cast<VoteKind>(IndexIn({"ballot", "any", "all", "uni"}));
  } else if (name == "match") {
    in_.opcode = Opcode::kMatch;
    in_.is_match_all = Has("all");
  } else if (name == "shfl") {
    in_.opcode = Opcode::kShuffle;
    in_.shuffle =
        static_cast<ShuffleKind>(IndexIn({"up", "down", "bfly", "idx"}));
    source_count = 3;
  } else if (name == "redux") {
    in_.opcode = Opcode::kWarpReduce;
    in_.reduce = static_cast<ReduceOperation>(
        IndexIn({"add", "min", "max", "and", "or", "xor"}));
  } else if (name == "activemask") {
    in_.opcode = Opcode::kActiveMask;
    ParseResult();
    return true;
  } else {
    return false;
  }
  if (!Has("sync")) cursor_.Fail("a warp operation without sync");
  ParseOperands(source_count);
  cursor_.Expect(",");
  in_.member_mask = ParseOperand();
  return true;
}

Operand InstructionParser::ParseOperand() {
  if (cursor_.TakeIf("!")) {
    Operand operand = ParseOperand();
    operand.is_negated = !operand.is_negated;
    return operand;
  }
  if (cursor_.TakeIf("-")) return Immediate(0 - ParseNumber(cursor_.Take()));
  const std::string token(cursor_.Take());
  if (token == "_") return Operand();
  if (IsNumber(token)) return Immediate(ParseNumber(token));
  if (token == "WARP_SZ") return Immediate(32);
  if (token == "true") return Immediate(1);
  if (token == "false") return Immediate(0);
  const auto found = function_.registers.find(token);
  if (found != function_.registers.end()) {
    return {.kind = Operand::Kind::kRegister,
            .register_index = found->second,
            .value = function_.register_masks[found->second]};
  }
  const auto special = SpecialRegisters().find(token);
  if (special != SpecialRegisters().end()) {
    return {.kind = Operand::Kind::kSpecial, .special = special->second};
  }
  return ParseSymbol(token);
}

Operand InstructionParser::ParseSymbol(const std::string& name) {
  const auto found = function_.symbols.find(name);
  const Symbol* const symbol =
      found != function_.symbols.end() ? &found->second : find_outside_(name);
  if (symbol == nullptr) {
    cursor_.Fail(absl::StrCat("unknown operand ", name));
  }
  Operand operand = SymbolOperand(*symbol);
  if (cursor_.TakeIf("+")) operand.value += ParseNumber(cursor_.Take());
  return operand;
}

void InstructionParser::ParseResult() {
  in_.result = ParseOperand();
  if (cursor_.TakeIf("|")) in_.second_result = ParseOperand();
}

void InstructionParser::ParseOperands(int source_count) {
  ParseResult();
  for (int index = 0; index < source_count; ++index) ParseSource(index);
}

void InstructionParser::ParseSource(int index) {
  cursor_.Expect(",");
  in_.sources[index] = ParseOperand();
}

void InstructionParser::ParseVector() {
  cursor_.Expect("{");
  while (!cursor_.TakeIf("}")) {
    in_.vector.push_back(ParseOperand());
    cursor_.TakeIf(",");
  }
}

void InstructionParser::ParseVectorOrOperand() {
  if (cursor_.Is("{")) {
    ParseVector();
  } else {
    in_.vector.push_back(ParseOperand());
  }
}

void InstructionParser::ParseAddress() {
  cursor_.Expect("[");
  in_.address = ParseOperand();
  while (!cursor_.TakeIf("]")) {
    bool is_negative = cursor_.TakeIf("-");
    if (!is_negative) {
      cursor_.Expect("+");
      is_negative = cursor_.TakeIf("-");
    }
    const auto offset = static_cast<int64_t>(ParseNumber(cursor_.Take()));
    in_.address_offset += is_negative ? -offset : offset;
  }
}

}  // namespace millrace::ptxemu
