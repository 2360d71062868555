// SPDX-License-Identifier: Apache-2.0
#include "common/base/array.h"

#include "common/base/block.h"

namespace millrace {
namespace {

int64_t Product(const std::vector<int64_t>& shape, size_t first) {
  int64_t product = 1;
  for (size_t i = first; i < shape.size(); ++i) {
    MILLRACE_CHECK(shape[i] >= 0);
    MILLRACE_CHECK(!__builtin_mul_overflow(product, shape[i], &product));
  }
  return product;
}

template <typename T>
void Widen(const Array& from, std::span<int64_t> to) {
  const std::span<const T> values = from.As<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    to[i] = static_cast<int64_t>(values[i]);
  }
}

}  // namespace

Array Array::Allocate(DType dtype, std::vector<int64_t> shape,
                      ArrayMemory* memory) {
  MILLRACE_CHECK(dtype != DType::kNone);
  Array array(dtype, std::move(shape), nullptr, nullptr);
  const size_t bytes = array.total_bytes();
  const std::shared_ptr<std::byte> block =
      memory == nullptr ? AllocateBlock(bytes) : memory->Allocate(bytes);
  array.data_ = block.get();
  array.owner_ = block;
  return array;
}

Array Array::Borrow(DType dtype, std::vector<int64_t> shape, const void* data,
                    std::shared_ptr<const void> owner, int device) {
  MILLRACE_CHECK(dtype != DType::kNone);
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(data));
  return Array(dtype, std::move(shape), bytes, std::move(owner), device);
}

int64_t Array::element_count() const {
  return present() ? Product(shape_, 0) : 0;
}

size_t Array::row_bytes() const {
  if (!present()) return 0;
  return static_cast<size_t>(Product(shape_, 1)) * ItemBytes(dtype_);
}

size_t Array::total_bytes() const {
  return static_cast<size_t>(element_count()) * ItemBytes(dtype_);
}

int64_t Array::IntegerAt(int64_t i) const {
  MILLRACE_CHECK(i >= 0 && i < element_count());
  const auto at = static_cast<size_t>(i);
  switch (dtype_) {
    case DType::kUint8:
      return As<uint8_t>()[at];
    case DType::kInt8:
      return As<int8_t>()[at];
    case DType::kInt32:
      return As<int32_t>()[at];
    case DType::kUint32:
      return As<uint32_t>()[at];
    case DType::kInt64:
      return As<int64_t>()[at];
    case DType::kUint64:
      return static_cast<int64_t>(As<uint64_t>()[at]);
    default:
      MILLRACE_CHECK(false && "not an array of integers");
  }
}

Array ToInt64(const Array& integers) {
  if (!integers.present() || integers.dtype() == DType::kInt64) {
    return integers;
  }
  Array wide = Array::Allocate(DType::kInt64, integers.shape());
  const std::span<int64_t> to = wide.MutableAs<int64_t>();
  switch (integers.dtype()) {
    case DType::kUint8:
      Widen<uint8_t>(integers, to);
      break;
    case DType::kInt8:
      Widen<int8_t>(integers, to);
      break;
    case DType::kInt32:
      Widen<int32_t>(integers, to);
      break;
    case DType::kUint32:
      Widen<uint32_t>(integers, to);
      break;
    case DType::kUint64:
      Widen<uint64_t>(integers, to);
      break;
    default:
      MILLRACE_CHECK(false && "not an array of integers");
  }
  return wide;
}

}  // namespace millrace
