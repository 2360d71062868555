// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pretend_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_index_put_impl.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>

namespace millrace {
namespace {

std::atomic<int64_t> used_bytes = 0;
std::atomic<int64_t> capacity_bytes = std::numeric_limits<int64_t>::max();

// Memory that is mapped twice: the program has the address of `seen`, which
// cannot be read or written, and the operators use `used`.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(std::max<size_t>(bytes, 1)) {
    const auto size = static_cast<int64_t>(bytes_);
    const int64_t total = used_bytes += size;
    if (total > capacity_bytes) {
      used_bytes -= size;
      TORCH_CHECK_WITH(OutOfMemoryError, false,
                       "pretend out of memory. Tried to allocate ", bytes,
                       " bytes");
    }
    const int file = memfd_create("pretend", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, size) == 0, "no memory");
    seen_ = Map(file, PROT_NONE);
    used_ = Map(file, PROT_READ | PROT_WRITE);
    close(file);
  }
  ~Block() {
    munmap(seen_, bytes_);
    munmap(used_, bytes_);
    used_bytes -= static_cast<int64_t>(bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* seen() const { return seen_; }
  std::byte* used() const { return static_cast<std::byte*>(used_); }

 private:
  void* Map(int file, int protection) const {
    void* memory = mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0);
    TORCH_CHECK(memory != MAP_FAILED, "no memory");
    return memory;
  }

  const size_t bytes_;
  void* seen_ = nullptr;
  void* used_ = nullptr;
};

class PretendAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto block = std::make_unique<Block>(bytes);
    void* seen = block->seen();
    return {seen, block.release(), &Free, PretendDevice()};
  }
  // Blocks cannot be found by their address alone.
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "the pretend device copies tensors only");
  }

 private:
  static void Free(void* block) { delete static_cast<Block*>(block); }
};

PretendAllocator allocator;
REGISTER_ALLOCATOR(c10::kPrivateUse1, &allocator);

// The tensor as operators see it.
at::Tensor OnHost(const at::Tensor& tensor) {
  if (!tensor.is_privateuseone()) return tensor;
  const auto* block =
      static_cast<const Block*>(tensor.storage().data_ptr().get_context());
  if (block == nullptr) {
    return at::empty_strided(tensor.sizes(), tensor.strides(),
                             tensor.options().device(at::kCPU));
  }
  return at::from_blob(
      block->used() +
          tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize()),
      tensor.sizes(), tensor.strides(),
      at::TensorOptions().dtype(tensor.dtype()));
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor Empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>,
                 std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, kKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                        std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout>, std::optional<at::Device>,
                        std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator, kKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool) {
  OnHost(to).copy_(OnHost(from));
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  OnHost(to).copy_(OnHost(from));
  return to;
}

const at::Tensor& Resize(const at::Tensor& tensor, at::IntArrayRef size,
                         std::optional<at::MemoryFormat>) {
  const auto elements = static_cast<size_t>(tensor.storage_offset() +
                                            c10::multiply_integers(size));
  const size_t bytes = elements * tensor.itemsize();
  const at::Storage& storage = tensor.storage();
  if (storage.nbytes() < bytes) {
    storage.set_data_ptr_noswap(allocator.allocate(bytes));
    storage.set_nbytes(bytes);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return tensor;
}

at::Scalar Item(const at::Tensor& tensor) { return OnHost(tensor).item(); }

std::optional<at::Tensor> OnHost(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? std::optional(OnHost(*tensor)) : std::nullopt;
}

// Its schema does not say that it changes the running statistics, so that
// RunOnCpu() would lose the changes.
std::tuple<at::Tensor, at::Tensor, at::Tensor> BatchNorm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& mean,
    const std::optional<at::Tensor>& variance, bool training, double momentum,
    double epsilon) {
  const auto [rows, saved_mean, saved_inverse] = at::native_batch_norm(
      OnHost(input), OnHost(weight), OnHost(bias), OnHost(mean),
      OnHost(variance), training, momentum, epsilon);
  return {rows.to(PretendDevice()), saved_mean.to(PretendDevice()),
          saved_inverse.to(PretendDevice())};
}

// RunOnCpu() moves no lists of optional tensors.
using Indices = c10::List<std::optional<at::Tensor>>;

Indices OnHost(const Indices& indices) {
  Indices moved;
  for (const std::optional<at::Tensor> index : indices) {
    moved.push_back(OnHost(index));
  }
  return moved;
}

at::Tensor Index(const at::Tensor& tensor, const Indices& indices) {
  return at::index(OnHost(tensor), OnHost(indices)).to(PretendDevice());
}

at::Tensor& IndexPut(at::Tensor& tensor, const Indices& indices,
                     const at::Tensor& values, bool accumulate, bool unsafe) {
  at::Tensor view = OnHost(tensor);
  at::_index_put_impl_(view, OnHost(indices), OnHost(values), accumulate,
                       unsafe);
  return tensor;
}

void RunOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(Empty));
  library.impl("empty_strided", TORCH_FN(EmptyStrided));
  library.impl("_copy_from", TORCH_FN(CopyFrom));
  library.impl("_copy_from_and_resize", TORCH_FN(CopyFromAndResize));
  library.impl("resize_", TORCH_FN(Resize));
  library.impl("_local_scalar_dense", TORCH_FN(Item));
  // LibTorch would compose it of others, in another order of additions.
  library.impl("native_layer_norm",
               torch::CppFunction::makeFromBoxedFunction<&RunOnCpu>());
  library.impl("native_batch_norm", TORCH_FN(BatchNorm));
  library.impl("index.Tensor", TORCH_FN(Index));
  library.impl("_index_put_impl_", TORCH_FN(IndexPut));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&RunOnCpu>());
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

// Streams and events do nothing, since work is done when a call returns.
class Guard final
    : public c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
 public:
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return PretendDevice(); }
  c10::Device exchangeDevice(c10::Device) const override {
    return PretendDevice();
  }
  c10::Stream getStream(c10::Device) const noexcept override {
    return OnlyStream();
  }
  c10::Stream getDefaultStream(c10::Device) const override {
    return OnlyStream();
  }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return OnlyStream();
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override {
    return OnlyStream();
  }
  // An event is the time of its recording, in nanoseconds.
  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    *event = reinterpret_cast<void*>(std::chrono::nanoseconds(now).count());
  }
  double elapsedTime(void* from, void* to,
                     const c10::DeviceIndex) const override {
    return 1e-6 * static_cast<double>(reinterpret_cast<intptr_t>(to) -
                                      reinterpret_cast<intptr_t>(from));
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}

 private:
  static c10::Stream OnlyStream() {
    return c10::Stream(c10::Stream::DEFAULT, PretendDevice());
  }
};

// Before anything prints the name of the device.
const bool registered = [] {
  c10::register_privateuse1_backend("pretend");
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace

c10::Device PretendDevice() { return {c10::kPrivateUse1, 0}; }

int64_t BytesOfPretendDevice() { return used_bytes; }

void SetPretendMemory(int64_t bytes) { capacity_bytes = bytes; }

}  // namespace millrace
