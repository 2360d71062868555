// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/nccl/sum.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <type_traits>

#include "common/base/float16.h"

namespace millrace::ncclemu {
namespace {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

BFloat16 Add(BFloat16 a, BFloat16 b) {
  return {ToBFloat16(FromBFloat16(a.bits) + FromBFloat16(b.bits))};
}

Float16 Add(Float16 a, Float16 b) {
  return {ToFloat16(FromFloat16(a.bits) + FromFloat16(b.bits))};
}

template <typename T>
T AddInOrder(const T* values, size_t count) {
  T sum = values[0];
  for (size_t i = 1; i < count; ++i) sum = Add(sum, values[i]);
  return sum;
}

template <typename T>
T AddPairs(const T* values, size_t count) {
  if (count == 1) return values[0];
  const size_t half = (count + 1) / 2;
  return Add(AddPairs(values, half), AddPairs(values + half, count - half));
}

template <typename T>
void AddUpAs(const SumJob& job, uint8_t* out) {
  const size_t ranks = job.inputs.size();
  std::vector<size_t> turn(ranks);
  std::iota(turn.begin(), turn.end(), size_t{0});
  if (job.order == AdditionOrder::kRandom) {
    std::mt19937_64 random(job.seed);
    std::shuffle(turn.begin(), turn.end(), random);
  }
  std::vector<T> values(ranks);
  for (size_t i = 0; i < job.count; ++i) {
    const size_t first =
        job.order == AdditionOrder::kRing ? i * ranks / job.count + 1 : 0;
    for (size_t r = 0; r < ranks; ++r) {
      std::memcpy(&values[r],
                  job.inputs[turn[(first + r) % ranks]] + i * sizeof(T),
                  sizeof(T));
    }
    const T sum = job.order == AdditionOrder::kTree
                      ? AddPairs(values.data(), ranks)
                      : AddInOrder(values.data(), ranks);
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

}  // namespace

size_t SizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

const char* NameOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return "float16";
    case ncclBfloat16:
      return "bfloat16";
    case ncclInt32:
      return "int32";
    case ncclFloat32:
      return "float32";
    case ncclInt64:
      return "int64";
    case ncclFloat64:
      return "float64";
    default:
      return "unknown";
  }
}

void AddUp(const SumJob& job, uint8_t* out) {
  switch (job.type) {
    case ncclFloat16:
      return AddUpAs<Float16>(job, out);
    case ncclBfloat16:
      return AddUpAs<BFloat16>(job, out);
    case ncclInt32:
      return AddUpAs<int32_t>(job, out);
    case ncclFloat32:
      return AddUpAs<float>(job, out);
    case ncclInt64:
      return AddUpAs<int64_t>(job, out);
    case ncclFloat64:
      return AddUpAs<double>(job, out);
    default:
      return;
  }
}

}  // namespace millrace::ncclemu
