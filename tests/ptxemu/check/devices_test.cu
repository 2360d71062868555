// SPDX-License-Identifier: Apache-2.0
// Several devices, and the limits that the environment sets. Each test runs in
// a child process, because the environment is read once and faults stay.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Environment = std::map<std::string, std::string>;

constexpr int kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);
__device__ int variable = 7;

__global__ void Fill(int* out, int first) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kCount) out[i] = first + i;
}

__global__ void Increment() { ++variable; }

// Whether `run` succeeds in a child process with two devices and `environment`.
template <typename F>
bool SucceedsInChild(const Environment& environment, F run) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("PTXEMU_DEVICES", "2", 1);
    for (const auto& [name, value] : environment) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    const bool succeeded = run();
    std::fflush(stdout);
    _exit(succeeded && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void InChild(const Environment& environment, void (*run)()) {
  EXPECT_TRUE(SucceedsInChild(environment, [&] {
    run();
    return true;
  }));
}

void Launch(int* out, int first, cudaStream_t stream = nullptr) {
  Fill<<<(kCount + 127) / 128, 128, 0, stream>>>(out, first);
}

int* AllocateOn(int device) {
  int* allocated = nullptr;
  EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&allocated, kBytes), cudaSuccess);
  return allocated;
}

cudaStream_t StreamOn(int device) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
            cudaSuccess);
  return stream;
}

cudaEvent_t EventOn(int device) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
            cudaSuccess);
  return event;
}

bool CountsFrom(const int* device_memory, int first) {
  std::vector<int> values(kCount);
  if (cudaMemcpy(values.data(), device_memory, kBytes, cudaMemcpyDefault) !=
      cudaSuccess) {
    return false;
  }
  for (int i = 0; i < kCount; ++i) {
    if (values[i] != first + i) return false;
  }
  return true;
}

TEST(Devices, EachThreadHasACurrentDevice) {
  InChild({}, [] {
    int device = -1;
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 1);
    std::thread([&] { cudaGetDevice(&device); }).join();
    EXPECT_EQ(device, 0);
  });
}

TEST(Devices, VisibleDevicesAreChosenAndOrdered) {
  InChild({{"PTXEMU_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", "2,0,9,1"}}, [] {
    int count = 0;
    cudaDeviceProp properties;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.pciBusID, 3);
  });
}

TEST(Devices, HaveMemoryOfTheirOwn) {
  InChild({{"PTXEMU_MEMORY", "8388608"}}, [] {
    constexpr size_t kMost = 6 << 20;
    size_t free = 0;
    size_t total = 0;
    void* first = nullptr;
    void* second = nullptr;
    EXPECT_EQ(cudaMalloc(&first, kMost), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&second, kMost), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_EQ(free, total - kMost);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&second, kMost), cudaSuccess);
  });
}

TEST(Devices, HaveVariablesOfTheirOwn) {
  InChild({}, [] {
    int value = 0;
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    Increment<<<1, 1>>>();
    EXPECT_EQ(cudaMemcpyFromSymbol(&value, variable, sizeof value),
              cudaSuccess);
    EXPECT_EQ(value, 8);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyFromSymbol(&value, variable, sizeof value),
              cudaSuccess);
    EXPECT_EQ(value, 7);
  });
}

TEST(Peers, CopiesNeedNoAccess) {
  InChild({{"PTXEMU_PEER", "0"}}, [] {
    int* const from = AllocateOn(0);
    int* const to = AllocateOn(1);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
    Launch(from, 3);
    EXPECT_EQ(cudaMemcpyPeer(to, 1, from, 0, kBytes), cudaSuccess);
    EXPECT_TRUE(CountsFrom(to, 3));
    EXPECT_EQ(cudaMemcpyPeer(to, 0, from, 1, kBytes), cudaErrorInvalidValue);
  });
}

TEST(Peers, AccessIsEnabledInOneDirection) {
  InChild({}, [] {
    int* const first = AllocateOn(0);
    int* const second = AllocateOn(1);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0),
              cudaErrorPeerAccessAlreadyEnabled);
    Launch(second, 2);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(CountsFrom(second, 2));
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    Launch(first, 5);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  });
}

TEST(Peers, FaultStaysOnItsDevice) {
  InChild({}, [] {
    int* const second = AllocateOn(1);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    Launch(second, 1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    Launch(second, 1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(CountsFrom(second, 1));
  });
}

TEST(Peers, EnabledAccessDoesNotCountForPools) {
  InChild({}, [] {
    int* allocated = nullptr;
    const cudaStream_t stream = StreamOn(1);
    EXPECT_EQ(cudaMallocAsync(&allocated, kBytes, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    Launch(allocated, 6);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  });
}

TEST(Peers, PoolsHaveAListOfDevices) {
  InChild({}, [] {
    int* allocated = nullptr;
    cudaMemPool_t pool = nullptr;
    const cudaStream_t stream = StreamOn(1);
    EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, 1), cudaSuccess);
    EXPECT_EQ(cudaMallocAsync(&allocated, kBytes, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = 0;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    EXPECT_EQ(cudaMemPoolSetAccess(pool, &access, 1), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    Launch(allocated, 6);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(CountsFrom(allocated, 6));
  });
}

TEST(Streams, OfOtherDevicesAreRefused) {
  InChild({}, [] {
    int* const first = AllocateOn(0);
    const cudaStream_t stream = StreamOn(1);
    const cudaEvent_t event = EventOn(0);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    Launch(first, 1, stream);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  });
}

// Whether a copy on one device sees what a kernel on another has written.
bool CopySeesKernel(bool with_event) {
  int* const from = AllocateOn(0);
  int* const to = AllocateOn(1);
  const cudaStream_t first = StreamOn(0);
  const cudaStream_t second = StreamOn(1);
  const cudaEvent_t event = EventOn(0);
  Launch(from, 9, first);
  cudaEventRecord(event, first);
  cudaSetDevice(1);
  if (with_event) cudaStreamWaitEvent(second, event, 0);
  cudaMemcpyPeerAsync(to, 1, from, 0, kBytes, second);
  cudaStreamSynchronize(second);
  return CountsFrom(to, 9);
}

int SeedsThatSeeKernel(bool with_event) {
  int seeds = 0;
  for (int seed = 1; seed <= 16; ++seed) {
    seeds += SucceedsInChild({{"PTXEMU_SEED", std::to_string(seed)},
                              {"PTXEMU_SCHED", seed % 2 ? "random" : "lazy"}},
                             [&] { return CopySeesKernel(with_event); });
  }
  return seeds;
}

TEST(Streams, EventsOrderWorkOfSeveralDevices) {
  EXPECT_EQ(SeedsThatSeeKernel(true), 16);
}

TEST(Streams, MissingEventIsNoticed) {
  EXPECT_LT(SeedsThatSeeKernel(false), 16);
}

TEST(Calls, OfHostFunctionsAreRefused) {
  InChild({}, [] {
    cudaError_t error = cudaSuccess;
    const auto synchronize = [](void* result) {
      *static_cast<cudaError_t*>(result) = cudaDeviceSynchronize();
    };
    EXPECT_EQ(cudaLaunchHostFunc(nullptr, synchronize, &error), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(error, cudaErrorNotPermitted);
  });
}

TEST(Calls, FailAsAsked) {
  InChild({{"PTXEMU_FAIL", "cudaMalloc:2=2,*:4=700"}}, [] {
    void* allocated = nullptr;
    EXPECT_EQ(cudaMalloc(&allocated, 8), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&allocated, 8), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&allocated, 8), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  });
}

TEST(Calls, SayThatThereIsNoDriverOrDevice) {
  int count = 0;
  EXPECT_TRUE(SucceedsInChild({{"PTXEMU_DRIVER", "0"}}, [&] {
    return cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver;
  }));
  EXPECT_TRUE(SucceedsInChild({{"PTXEMU_DEVICES", "0"}}, [&] {
    return cudaGetDeviceCount(&count) == cudaErrorNoDevice;
  }));
}

}  // namespace
