// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pretend_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_embedding_bag.h>
#include <ATen/ops/_embedding_bag_backward.h>
#include <ATen/ops/_index_put_impl.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "common/base/array.h"
#include "tests/support/pretend_streams.h"

namespace millrace {
namespace {

std::atomic<int64_t> used_bytes = 0;
std::atomic<int64_t> event_queries = 0;
std::atomic<int64_t> events_left = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> list_reductions = 0;
std::atomic<int64_t> capacity_bytes = std::numeric_limits<int64_t>::max();

// All blocks, by the address that the program has.
class Block;
struct Blocks {
  std::mutex mutex;
  std::map<const void*, Block*> by_address;
};
Blocks blocks;

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
    const std::lock_guard lock(blocks.mutex);
    blocks.by_address[seen_] = this;
  }
  ~Block() {
    {
      const std::lock_guard lock(blocks.mutex);
      blocks.by_address.erase(seen_);
    }
    munmap(seen_, bytes_);
    munmap(used_, bytes_);
    used_bytes -= static_cast<int64_t>(bytes_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // The block that has this address of the program's; null if none has.
  static Block* Find(const void* seen);

  void* seen() const { return seen_; }
  // For the host, before any operator uses it.
  void Fill(const void* from, size_t bytes) { std::memcpy(used_, from, bytes); }
  // For an operator in the current stream.
  std::byte* Read() const {
    ReadInPretendStream(written_);
    return static_cast<std::byte*>(used_);
  }
  std::byte* Write() {
    WriteInPretendStream(written_);
    return static_cast<std::byte*>(used_);
  }

 private:
  void* Map(int file, int protection) const {
    void* memory = mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0);
    TORCH_CHECK(memory != MAP_FAILED, "no memory");
    return memory;
  }

  const size_t bytes_;
  void* seen_ = nullptr;
  void* used_ = nullptr;
  StreamWork written_;  // last
};

Block* Block::Find(const void* seen) {
  const std::lock_guard lock(blocks.mutex);
  const auto found = blocks.by_address.find(seen);
  return found == blocks.by_address.end() ? nullptr : found->second;
}

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

// The tensor as operators see it that read it or, with `writes`, change it.
at::Tensor OnHost(const at::Tensor& tensor, bool writes = false) {
  if (!tensor.is_privateuseone()) return tensor;
  Block* const block = Block::Find(tensor.storage().data());
  if (block == nullptr) {
    return at::empty_strided(tensor.sizes(), tensor.strides(),
                             tensor.options().device(at::kCPU));
  }
  return at::from_blob(
      (writes ? block->Write() : block->Read()) +
          tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize()),
      tensor.sizes(), tensor.strides(),
      at::TensorOptions().dtype(tensor.dtype()));
}

// While one is there, this thread runs an operator, whose copies to the host
// and back are none of the program's.
class Operator {
 public:
  Operator() { ++depth_; }
  ~Operator() { --depth_; }
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  static bool IsRunning() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};
thread_local int Operator::depth_ = 0;

// Does what a copy of the program's means for the host.
void EndCopy(const at::Tensor& from, bool non_blocking) {
  if (Operator::IsRunning()) return;
  if (!non_blocking) {
    return WaitForPretendStreams(PretendStreamTimes(CurrentPretendStream()));
  }
  if (from.is_cpu()) NoteCopyOfHostMemory(from.const_data_ptr(), from.nbytes());
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

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to,
                    bool non_blocking) {
  const at::Tensor source = OnHost(from);
  OnHost(to, /*writes=*/true).copy_(source);
  EndCopy(from, non_blocking || (!from.is_cpu() && !to.is_cpu()));
  return to;
}

at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return CopyFrom(from, to, /*non_blocking=*/false);
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

at::Scalar Item(const at::Tensor& tensor) {
  const at::Scalar item = OnHost(tensor).item();
  EndCopy(tensor, /*non_blocking=*/false);
  return item;
}

std::optional<at::Tensor> OnHost(const std::optional<at::Tensor>& tensor,
                                 bool writes = false) {
  return tensor.has_value() ? std::optional(OnHost(*tensor, writes))
                            : std::nullopt;
}

// Its schema does not say that it changes the running statistics, so that
// RunOnCpu() would lose the changes.
std::tuple<at::Tensor, at::Tensor, at::Tensor> BatchNorm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& mean,
    const std::optional<at::Tensor>& variance, bool training, double momentum,
    double epsilon) {
  const Operator running;
  const auto [rows, saved_mean, saved_inverse] = at::native_batch_norm(
      OnHost(input), OnHost(weight), OnHost(bias), OnHost(mean, training),
      OnHost(variance, training), training, momentum, epsilon);
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
  const Operator running;
  return at::index(OnHost(tensor), OnHost(indices)).to(PretendDevice());
}

at::Tensor& IndexPut(at::Tensor& tensor, const Indices& indices,
                     const at::Tensor& values, bool accumulate, bool unsafe) {
  at::Tensor view = OnHost(tensor, /*writes=*/true);
  at::_index_put_impl_(view, OnHost(indices), OnHost(values), accumulate,
                       unsafe);
  return tensor;
}

void RunOnCpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Operator running;
  at::native::cpu_fallback(op, stack);
}

// Codes of embedding_bag's modes, by those of operators::Reduction.
constexpr std::array<int64_t, 4> kBagModes = {0, 1, 2, 0};
constexpr int64_t kWeightedSum = 3;

struct Bags {
  at::Tensor rows, offset_to_bag, sizes, largest;
};

// Reduces lists as Aggregate() does on the CPU.
Bags ReduceBags(const at::Tensor& source, const at::Tensor& indptr,
                const at::Tensor& index, const at::Tensor& weight,
                int64_t how) {
  std::optional<at::Tensor> weights;
  if (how == kWeightedSum) weights = weight;
  auto [rows, offset_to_bag, sizes, largest] = at::_embedding_bag(
      source, index, indptr, /*scale_grad_by_freq=*/false, kBagModes[how],
      /*sparse=*/false, weights, /*include_last_offset=*/true);
  return {rows, offset_to_bag, sizes, largest};
}

// The second result is only for the backward pass.
std::tuple<at::Tensor, at::Tensor> ReduceLists(const at::Tensor& source,
                                               const at::Tensor& indptr,
                                               const at::Tensor& index,
                                               const at::Tensor& weight,
                                               int64_t how) {
  const Operator running;
  ++list_reductions;
  const at::Device device = PretendDevice();
  if (index.numel() == 0) {
    return {at::zeros({indptr.size(0) - 1, source.size(1)}, source.options()),
            at::zeros({0}, index.options())};
  }
  const Bags bags = ReduceBags(OnHost(source), OnHost(indptr), OnHost(index),
                               OnHost(weight), how);
  return {bags.rows.to(device), bags.largest.to(device)};
}

at::Tensor ReduceListsBackward(const at::Tensor& grad, int64_t sources,
                               const at::Tensor& indptr,
                               const at::Tensor& index,
                               const at::Tensor& weight,
                               const at::Tensor& largest, int64_t how) {
  const Operator running;
  if (index.numel() == 0) {
    return at::zeros({sources, grad.size(1)}, grad.options());
  }
  const at::Tensor values = OnHost(grad), ends = OnHost(indptr),
                   edges = OnHost(index), factors = OnHost(weight);
  const Bags bags =
      ReduceBags(at::zeros({sources, grad.size(1)}), ends, edges, factors, how);
  std::optional<at::Tensor> weights;
  if (how == kWeightedSum) weights = factors;
  return at::_embedding_bag_backward(values, edges, ends, bags.offset_to_bag,
                                     bags.sizes, OnHost(largest), sources,
                                     /*scale_grad_by_freq=*/false,
                                     kBagModes[how], /*sparse=*/false, weights)
      .to(PretendDevice());
}

TORCH_LIBRARY_IMPL(millrace, PrivateUse1, library) {
  library.impl("reduce_lists", TORCH_FN(ReduceLists));
  library.impl("reduce_lists_backward", TORCH_FN(ReduceListsBackward));
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

c10::Stream StreamOf(c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, PretendDevice(), id);
}

// Its work is done when a call returns.
class Guard final
    : public c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
 public:
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return PretendDevice(); }
  c10::Device exchangeDevice(c10::Device) const override {
    return PretendDevice();
  }
  c10::Stream getStream(c10::Device) const noexcept override {
    return StreamOf(CurrentPretendStream());
  }
  c10::Stream getDefaultStream(c10::Device) const override {
    return StreamOf(0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    static std::atomic<c10::StreamId> made = 0;
    return StreamOf(made++ % kPooledStreams + 1);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return StreamOf(ExchangePretendStream(stream.id()));
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    TORCH_CHECK(events_left-- > 0, "pretend error: the device is lost");
    if (*event == nullptr) *event = new Event;
    *Of(*event) = {std::chrono::steady_clock::now(),
                   PretendStreamTimes(stream.id())};
  }
  double elapsedTime(void* from, void* to,
                     const c10::DeviceIndex) const override {
    return std::chrono::duration<double, std::milli>(Of(to)->recorded -
                                                     Of(from)->recorded)
        .count();
  }
  void block(void* event, const c10::Stream& stream) const override {
    WaitInPretendStream(stream.id(), Of(event)->done);
  }
  bool queryEvent(void*) const override {
    ++event_queries;
    return true;
  }
  void destroyEvent(void* event,
                    const c10::DeviceIndex) const noexcept override {
    delete Of(event);
  }
  void synchronizeEvent(void* event) const override {
    WaitForPretendStreams(Of(event)->done);
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream& stream) const override {
    WaitForPretendStreams(PretendStreamTimes(stream.id()));
  }

 private:
  static constexpr c10::StreamId kPooledStreams = 32;  // as on a GPU

  struct Event {
    std::chrono::steady_clock::time_point recorded;
    StreamTimes done;
  };
  static Event* Of(void* event) { return static_cast<Event*>(event); }
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

Array CopyToPretendDevice(const Array& array) {
  if (!array.present()) return array;
  const auto block = std::make_shared<Block>(array.total_bytes());
  block->Fill(array.data(), array.total_bytes());
  return Array::Borrow(array.dtype(), array.shape(), block->seen(), block,
                       PretendDevice().index());
}

int64_t BytesOfPretendDevice() { return used_bytes; }

void SetPretendMemory(int64_t bytes) { capacity_bytes = bytes; }

void LimitPretendEvents(int64_t events) { events_left = events; }

int64_t EventQueriesOfPretendDevice() { return event_queries; }

int64_t ListReductionsOfPretendDevice() { return list_reductions; }

}  // namespace millrace
