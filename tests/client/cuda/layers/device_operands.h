// SPDX-License-Identifier: Apache-2.0
// Moves operands of client/cuda/layers/ to a device, and compares results.
#pragma once

#include <ATen/Functions.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "client/cuda/layers/layers.h"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {

namespace layers = cuda::layers;

inline void Expect(cudaError_t status) {
  EXPECT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
}

inline at::Tensor IntTensor(const std::vector<int32_t>& numbers) {
  return at::from_blob(const_cast<int32_t*>(numbers.data()),
                       {static_cast<int64_t>(numbers.size())}, at::kInt)
      .clone();
}

// The lists' entries of `index`, without what follows them.
inline at::Tensor Index(const TestLists& lists) {
  return IntTensor(lists.index).narrow(0, 0, lists.edges());
}

inline at::Tensor Random(at::IntArrayRef sizes, unsigned seed) {
  const std::vector<float> numbers =
      RandomFloats(c10::multiply_integers(sizes), seed);
  return at::from_blob(const_cast<float*>(numbers.data()), sizes, at::kFloat)
      .clone();
}

// A stream, and copies of tensors in the device's memory, which is the stream's
// too: work that uses it before or after its time fails.
class DeviceOperands {
 public:
  DeviceOperands() {
    Expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    work_ = {stream_, [this](size_t bytes) { return Workspace(bytes); }};
  }
  ~DeviceOperands() {
    Release();
    for (void* data : memory_) Expect(cudaFreeAsync(data, stream_));
    Expect(cudaStreamSynchronize(stream_));
    Expect(cudaStreamDestroy(stream_));
  }
  DeviceOperands(const DeviceOperands&) = delete;
  DeviceOperands& operator=(const DeviceOperands&) = delete;

  template <typename T>
  T* Upload(const at::Tensor& tensor) {
    if (tensor.numel() == 0) return nullptr;
    void* data = Allocate(memory_, tensor.nbytes());
    Expect(cudaMemcpyAsync(data, tensor.const_data_ptr(), tensor.nbytes(),
                           cudaMemcpyHostToDevice, stream_));
    return static_cast<T*>(data);
  }
  layers::LayerLists Upload(const TestLists& lists) {
    const layers::LayerLists host = lists.view();
    return {Upload<int32_t>(IntTensor(lists.indptr)),
            Upload<int32_t>(IntTensor(lists.index)), host.rows, host.edges};
  }
  // Room for a result like `tensor`.
  template <typename T>
  T* Room(const at::Tensor& tensor) {
    return static_cast<T*>(
        Allocate(memory_, std::max<size_t>(tensor.nbytes(), 1)));
  }
  // The result as a tensor on the CPU.
  at::Tensor Download(const void* data, const at::Tensor& like) {
    const at::Tensor tensor = at::empty(like.sizes(), like.options());
    if (like.numel() == 0) return tensor;
    Expect(cudaMemcpyAsync(tensor.mutable_data_ptr(), data, like.nbytes(),
                           cudaMemcpyDeviceToHost, stream_));
    Expect(cudaStreamSynchronize(stream_));
    return tensor;
  }

  std::vector<at::Tensor> Download(const std::vector<float*>& data,
                                   const std::vector<at::Tensor>& like) {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < data.size(); ++i) {
      tensors.push_back(Download(data[i], like[i]));
    }
    return tensors;
  }

  // For one call. Memory for its work goes back to the stream afterwards.
  const layers::WorkStream& work() {
    Release();
    return work_;
  }
  // The n-th allocation from now on, counted from 0, returns null.
  void FailAllocation(int n) { until_failure_ = n; }
  bool allocation_failed() const { return until_failure_ < 0; }

 private:
  void* Allocate(std::vector<void*>& owner, size_t bytes) {
    void* data = nullptr;
    Expect(cudaMallocAsync(&data, bytes, stream_));
    owner.push_back(data);
    return data;
  }
  void* Workspace(size_t bytes) {
    EXPECT_GT(bytes, 0u);
    if (until_failure_-- == 0) return nullptr;
    return Allocate(workspace_, bytes);
  }
  void Release() {
    for (void* data : workspace_) Expect(cudaFreeAsync(data, stream_));
    workspace_.clear();
  }

  cudaStream_t stream_ = nullptr;
  layers::WorkStream work_;
  std::vector<void*> memory_, workspace_;
  int until_failure_ = 1 << 30;
};

inline void ExpectSame(const at::Tensor& actual, const at::Tensor& expected,
                       const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  EXPECT_EQ(std::memcmp(actual.const_data_ptr(), expected.const_data_ptr(),
                        actual.nbytes()),
            0)
      << what << ": the largest difference is "
      << actual.sub(expected).abs().max().item();
}

// Allows what ExpectNear() does.
inline void ExpectClose(const at::Tensor& actual, const at::Tensor& expected,
                        const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (actual.numel() == 0) return;
  const auto largest = expected.abs().max().item<float>();
  EXPECT_LE(actual.sub(expected).abs().max().item<float>(),
            1e-5f * std::max(1.0f, largest))
      << what;
}

}  // namespace millrace::testing
