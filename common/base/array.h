// SPDX-License-Identifier: Apache-2.0
// A typed, shaped block of memory. Ids, topology and features all travel as
// arrays, from the store through frames to tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/array_memory.h"
#include "common/base/check.h"
#include "common/base/dtype.h"

namespace millrace {

// An array in C order. Copies share the memory: the batch, the tensors made
// from it and the frames that carry it all keep it alive (hence the
// shared_ptr).
// A default-constructed Array is absent: dtype kNone, no shape, no memory.
// The memory is the host's unless device() says otherwise.
// Threads: any number may read at once, after all writes have finished.
class Array {
 public:
  Array() = default;

  // Uninitialised memory of the host, 64-byte aligned, which `memory` provides
  // unless it is null.
  static Array Allocate(DType dtype, std::vector<int64_t> shape,
                        ArrayMemory* memory = nullptr);

  // Takes ownership of `values` without copying them. The array has one
  // dimension, or `shape`, which must have as many elements as `values`.
  template <typename T>
  static Array Adopt(std::vector<T> values) {
    auto size = static_cast<int64_t>(values.size());
    return Adopt(std::move(values), {size});
  }
  template <typename T>
  static Array Adopt(std::vector<T> values, std::vector<int64_t> shape) {
    auto owner = std::make_shared<std::vector<T>>(std::move(values));
    auto* data = reinterpret_cast<std::byte*>(owner->data());
    Array array(kDTypeOf<T>, std::move(shape), data, owner);
    MILLRACE_CHECK(array.element_count() ==
                   static_cast<int64_t>(owner->size()));
    return array;
  }

  // Refers to memory of `device` that `owner` keeps alive; if `owner` is null,
  // the caller must keep it alive.
  static Array Borrow(DType dtype, std::vector<int64_t> shape, const void* data,
                      std::shared_ptr<const void> owner, int device = kHost);

  bool present() const { return dtype_ != DType::kNone; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  // Size of the first dimension; 0 when absent.
  int64_t rows() const { return shape_.empty() ? 0 : shape_[0]; }
  int64_t element_count() const;
  // Bytes of one row, which spans all dimensions but the first.
  size_t row_bytes() const;
  size_t total_bytes() const;

  // kHost, or the GPU on which the elements are. There, the host cannot read or
  // write them.
  int device() const { return device_; }
  bool on_host() const { return device_ == kHost; }
  const std::byte* data() const { return data_; }
  // For filling an array made by Allocate(), or one that borrows memory which
  // its lender lets the caller fill (see RowRequest::target).
  std::byte* mutable_data() { return data_; }

  // The elements in C order; empty when absent. T must match the dtype, and
  // they must be on the host.
  template <typename T>
  std::span<const T> As() const {
    if (!present()) return {};
    MILLRACE_CHECK(kDTypeOf<T> == dtype_ && on_host());
    return {reinterpret_cast<const T*>(data_),
            static_cast<size_t>(element_count())};
  }
  template <typename T>
  std::span<T> MutableAs() {
    MILLRACE_CHECK(kDTypeOf<T> == dtype_ && on_host());
    return {reinterpret_cast<T*>(data_), static_cast<size_t>(element_count())};
  }

  // The value of element i of an array of any integer dtype; values of 2^63 and
  // above wrap to negative ones.
  int64_t IntegerAt(int64_t i) const;

 private:
  Array(DType dtype, std::vector<int64_t> shape, std::byte* data,
        std::shared_ptr<const void> owner, int device = kHost)
      : dtype_(dtype),
        device_(device),
        shape_(std::move(shape)),
        data_(data),
        owner_(std::move(owner)) {}

  DType dtype_ = DType::kNone;
  int device_ = kHost;
  std::vector<int64_t> shape_;
  std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;  // shared with copies and views
};

// Converts an array of uint8, int32, uint32 or uint64 to int64. An int64 or
// absent array is returned as it is.
Array ToInt64(const Array& integers);

}  // namespace millrace
