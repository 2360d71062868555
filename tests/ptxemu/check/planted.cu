// SPDX-License-Identifier: Apache-2.0
// Makes the mistake that its argument names, or none, and prints whether it
// noticed: "right" or "wrong". planted_test.py runs it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void Fill(int* out, int count, int first) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = first + i;
}

__global__ void Reverse(int* values, bool synchronize) {
  __shared__ int shared[kCount];
  shared[threadIdx.x] = values[threadIdx.x];
  if (synchronize) __syncthreads();
  values[threadIdx.x] = shared[kCount - 1 - threadIdx.x];
}

__global__ void SumOfWarp(const int* values, int* sum) {
  int value = values[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(~0u, value, distance);
  }
  if (threadIdx.x == 0) *sum = value;
}

struct Buffers {
  int* device;
  int* source;  // pinned; 0, 1, 2, ...
  int* result;  // pinned
  cudaStream_t stream;
  cudaStream_t other;
};

Buffers MakeBuffers() {
  Buffers b;
  cudaMalloc(&b.device, kBytes);
  cudaMallocHost(&b.source, kBytes);
  cudaMallocHost(&b.result, kBytes);
  cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking);
  for (int i = 0; i < kCount; ++i) b.source[i] = i;
  return b;
}

void FillDevice(const Buffers& b) {
  Fill<<<1, kCount, 0, b.stream>>>(b.device, kCount, 5);
}

void CopyBack(const Buffers& b, cudaStream_t stream) {
  cudaMemcpyAsync(b.result, b.device, kBytes, cudaMemcpyDeviceToHost, stream);
}

void CopyIn(const Buffers& b) {
  cudaMemcpyAsync(b.device, b.source, kBytes, cudaMemcpyHostToDevice, b.stream);
}

bool ResultCountsFrom(const Buffers& b, int first) {
  for (int i = 0; i < kCount; ++i) {
    if (b.result[i] != first + i) return false;
  }
  return true;
}

bool ReverseAndCheck(const Buffers& b, bool synchronize) {
  CopyIn(b);
  Reverse<<<1, kCount, 0, b.stream>>>(b.device, synchronize);
  CopyBack(b, b.stream);
  cudaStreamSynchronize(b.stream);
  for (int i = 0; i < kCount; ++i) {
    if (b.result[i] != kCount - 1 - i) return false;
  }
  return true;
}

bool MakeNoMistake(const Buffers& b) { return ReverseAndCheck(b, true); }

bool OmitSyncthreads(const Buffers& b) { return ReverseAndCheck(b, false); }

bool OmitSynchronize(const Buffers& b) {
  FillDevice(b);
  CopyBack(b, b.stream);
  return ResultCountsFrom(b, 5);
}

bool ReadDeviceMemoryOnHost(const Buffers& b) {
  FillDevice(b);
  cudaStreamSynchronize(b.stream);
  return b.device[0] == 5;
}

bool ReusePinnedSourceEarly(const Buffers& b) {
  CopyIn(b);
  std::memset(b.source, 0, kBytes);
  CopyBack(b, b.stream);
  cudaStreamSynchronize(b.stream);
  return ResultCountsFrom(b, 0);
}

bool PassPageablePointer(const Buffers& b) {
  static int pageable[kCount];
  Fill<<<1, kCount, 0, b.stream>>>(pageable, kCount, 1);
  return cudaStreamSynchronize(b.stream) == cudaSuccess;
}

bool UseAfterFree(const Buffers& b) {
  int* freed = nullptr;
  cudaMallocAsync(&freed, kBytes, b.stream);
  cudaFreeAsync(freed, b.stream);
  Fill<<<1, kCount, 0, b.stream>>>(freed, kCount, 1);
  return cudaStreamSynchronize(b.stream) == cudaSuccess;
}

bool OmitEvent(const Buffers& b) {
  FillDevice(b);
  CopyBack(b, b.other);
  cudaStreamSynchronize(b.other);
  return ResultCountsFrom(b, 5);
}

bool UseOnOtherStream(const Buffers& b) {
  int* allocated = nullptr;
  cudaMallocAsync(&allocated, kBytes, b.stream);
  Fill<<<1, kCount, 0, b.other>>>(allocated, kCount, 1);
  return cudaStreamSynchronize(b.other) == cudaSuccess;
}

bool NameMissingLanes(const Buffers& b) {
  constexpr int kLanes = 24;
  CopyIn(b);
  SumOfWarp<<<1, kLanes, 0, b.stream>>>(b.device, b.device + kLanes);
  CopyBack(b, b.stream);
  return cudaStreamSynchronize(b.stream) == cudaSuccess &&
         b.result[kLanes] == kLanes * (kLanes - 1) / 2;
}

bool LaunchTooLargeBlock(const Buffers& b) {
  Fill<<<1, 2048, 0, b.stream>>>(b.device, kCount, 1);
  return cudaGetLastError() == cudaSuccess;
}

bool LaunchEmptyGrid(const Buffers& b) {
  Fill<<<0, 32, 0, b.stream>>>(b.device, 0, 1);
  return cudaGetLastError() == cudaSuccess;
}

bool WriteBeyondEnd(const Buffers& b) {
  Fill<<<2, kCount, 0, b.stream>>>(b.device, kCount + 1, 1);
  return cudaStreamSynchronize(b.stream) == cudaSuccess;
}

bool ReadMisaligned(const Buffers& b) {
  auto* const misaligned =
      reinterpret_cast<int*>(reinterpret_cast<char*>(b.device) + 1);
  Fill<<<1, 1, 0, b.stream>>>(misaligned, 1, 1);
  return cudaStreamSynchronize(b.stream) == cudaSuccess;
}

const std::map<std::string, bool (*)(const Buffers&)>& Mistakes() {
  static const std::map<std::string, bool (*)(const Buffers&)> kMistakes = {
      {"none", MakeNoMistake},
      {"no_syncthreads", OmitSyncthreads},
      {"no_synchronize", OmitSynchronize},
      {"device_memory_on_host", ReadDeviceMemoryOnHost},
      {"pinned_source_reused", ReusePinnedSourceEarly},
      {"pageable_pointer", PassPageablePointer},
      {"use_after_free", UseAfterFree},
      {"no_event", OmitEvent},
      {"other_stream", UseOnOtherStream},
      {"missing_lanes", NameMissingLanes},
      {"too_large_block", LaunchTooLargeBlock},
      {"empty_grid", LaunchEmptyGrid},
      {"beyond_end", WriteBeyondEnd},
      {"misaligned", ReadMisaligned}};
  return kMistakes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& [name, make] : Mistakes()) std::puts(name.c_str());
    return 0;
  }
  const bool right = Mistakes().at(argv[1])(MakeBuffers());
  std::puts(right ? "right" : "wrong");
  return 0;
}
