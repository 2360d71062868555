// SPDX-License-Identifier: Apache-2.0
// PTX instructions and functions after parsing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace millrace::ptxemu {

enum class Space : uint8_t {
  kGeneric,
  kGlobal,
  kShared,
  kLocal,
  kParam,
  kConst
};

// Generic addresses of these spaces carry a tag; those without one are global.
inline constexpr uint64_t kTagMask = uint64_t{0xff} << 56;
inline constexpr uint64_t kSharedTag = uint64_t{1} << 56;
inline constexpr uint64_t kLocalTag = uint64_t{2} << 56;
inline constexpr uint64_t kParamTag = uint64_t{3} << 56;
// In the param space: the parameters of calls that a function makes, as opposed
// to its own.
inline constexpr uint64_t kCallParamBit = uint64_t{1} << 32;
inline constexpr uint64_t kParamOffsetMask = kCallParamBit - 1;

// The type in an instruction's name.
struct ValueType {
  char kind = 'b';  // unsigned, signed, bits, float, predicate: u, s, b, f, p
  uint8_t bytes = 4;
  bool is_bfloat = false;
  bool is_packed = false;  // two floats of 16 bits

  bool IsFloat() const { return kind == 'f'; }
  bool IsSigned() const { return kind == 's'; }
  int bits() const { return 8 * bytes; }
};

enum class SpecialRegister : uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kBlockSizeX,
  kBlockSizeY,
  kBlockSizeZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kGridSizeX,
  kGridSizeY,
  kGridSizeZ,
  kLane,
  kWarp,
  kWarpCount,
  kLaneMaskEqual,
  kLaneMaskLess,
  kLaneMaskLessEqual,
  kLaneMaskGreater,
  kLaneMaskGreaterEqual,
  kClock,
  kMultiprocessor,
  kMultiprocessorCount,
  kDynamicSharedBytes,
  kSharedBytes,
  kZero,
};

struct Operand {
  enum class Kind : uint8_t {
    kNone,  // its value is 0
    kImmediate,
    kRegister,
    kSpecial,
    kDynamicShared,  // an offset into dynamic shared memory
    kLocal,          // an offset into the function's local memory
  };
  Kind kind = Kind::kNone;
  bool is_negated = false;  // of a predicate
  SpecialRegister special = SpecialRegister::kZero;
  uint32_t register_index = 0;
  // The value or the offset; of a register, the mask of its bits.
  uint64_t value = 0;
};

enum class Opcode : uint8_t {
  kCompute,  // calls Instruction::compute
  kMove,
  kSplit,  // moves a register into the registers of a vector
  kJoin,   // moves the registers of a vector into one
  kSetPredicate,
  kLoad,
  kStore,
  kAtomic,
  kConvertAddress,
  kIsSpace,
  kBranch,
  kBranchIndexed,
  kCall,
  kReturn,
  kExit,
  kTrap,
  kBarrier,
  kBarrierReduce,
  kWarpSync,
  kVote,
  kMatch,
  kShuffle,
  kWarpReduce,
  kActiveMask,
  kSleep,
  kNothing,
};

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLower,  // the next four compare without sign
  kLowerSame,
  kHigher,
  kHigherSame,
  kEqualOrNan,  // the next eight are those of floats with NaN
  kNotEqualOrNan,
  kLessOrNan,
  kLessEqualOrNan,
  kGreaterOrNan,
  kGreaterEqualOrNan,
  kNumbers,
  kNan,
};
enum class Combination : uint8_t { kNone, kAnd, kOr, kXor };
enum class AtomicOperation : uint8_t {
  kAdd,
  kMin,
  kMax,
  kExchange,
  kCompareAndSwap,
  kAnd,
  kOr,
  kXor,
  kIncrement,
  kDecrement
};
enum class ReduceOperation : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };
enum class VoteKind : uint8_t { kBallot, kAny, kAll, kUniform };
enum class BarrierReduction : uint8_t { kCount, kAnd, kOr };
enum class ShuffleKind : uint8_t { kUp, kDown, kButterfly, kIndex };
enum class Rounding : uint8_t { kDefault, kNearest, kZero, kDown, kUp };

struct Function;
struct Instruction;

// The values of an instruction's sources.
struct Sources {
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
  uint64_t d = 0;
  bool* carry = nullptr;  // the thread's carry flag
};
using Compute = uint64_t (*)(const Instruction& in, const Sources& sources);

struct CallTarget {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> results;
  const Function* function = nullptr;  // found at the first call
};

// What most instructions need comes first, in few cache lines.
struct alignas(64) Instruction {
  Opcode opcode = Opcode::kNothing;
  bool is_guard_negated = false;
  // The predicate that decides whether it is executed; -1 if there is none.
  int guard = -1;
  Compute compute = nullptr;
  Operand result;
  Operand sources[4];
  ValueType type;         // the last type in the name; of cvt, the first
  ValueType second_type;  // of cvt, that of the source; of set, the result's
  Space space = Space::kGeneric;

  // Modifiers.
  bool is_wide = false;
  bool is_high = false;
  bool is_left = false;          // shf
  bool is_clamped = false;       // shf, bmsk
  bool is_shift_amount = false;  // bfind
  bool is_match_all = false;
  bool to_generic = false;  // cvta
  bool reads_carry = false;
  bool writes_carry = false;
  bool saturates = false;
  bool propagates_nan = false;
  bool rounds_to_integer = false;
  Rounding rounding = Rounding::kDefault;
  uint8_t table = 0;  // lop3
  Comparison comparison = Comparison::kEqual;
  Combination combination = Combination::kNone;
  AtomicOperation atomic = AtomicOperation::kAdd;
  ReduceOperation reduce = ReduceOperation::kAdd;
  VoteKind vote = VoteKind::kBallot;
  BarrierReduction barrier_reduction = BarrierReduction::kCount;
  ShuffleKind shuffle = ShuffleKind::kIndex;

  int target = -1;  // of a branch
  Operand address;
  int64_t address_offset = 0;
  std::vector<Operand> vector;  // what is loaded, stored, split or joined
  Operand second_result;
  Operand member_mask;  // of warp operations
  int line = 0;
  std::vector<int> targets;  // of an indexed branch
  std::shared_ptr<CallTarget> call;
};

struct Parameter {
  std::string name;
  size_t offset;
  size_t bytes;
};

// What a name stands for in a function.
struct Symbol {
  Space space;
  uint64_t address;         // an offset except in the global space
  bool is_dynamic = false;  // the start of dynamic shared memory
  size_t bytes = 0;
};

class Module;

struct Function {
  Module* module = nullptr;
  std::string name;
  size_t body = 0;  // the token with which the body begins
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;
  size_t parameter_bytes = 0;  // of both
  int max_threads = 1024;

  // From here on: known after the body has been parsed.
  std::vector<Instruction> code;
  std::unordered_map<std::string, uint32_t> registers;
  std::vector<uint64_t> register_masks;
  std::unordered_map<std::string, Symbol> symbols;
  size_t shared_bytes = 0;
  size_t local_bytes = 0;
  size_t call_bytes = 0;  // parameters of the calls that it makes
};

}  // namespace millrace::ptxemu
