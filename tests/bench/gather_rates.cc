// SPDX-License-Identifier: Apache-2.0
// How fast a GPU reads feature rows of node type 0 into pinned memory and into
// its own, beside the rate at which it copies to and from pinned memory,
// measured in the same run:
//
// gather_rates STORE ROWS CALLS -> a table
//
// Each call reads ROWS random rows. The rows are once in the GPU's memory and
// once in pinned memory, from where the GPU reads them over the bus.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/runtime/pinned_memory.h"
#include "common/cuda/sample/cuda_feature_rows.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

constexpr int kDevice = 0;

struct Arguments {
  std::string store;
  uint64_t rows = 0;
  int calls = 0;
};

// Calls `call` once to warm up, and then `calls` times; returns GB/s.
template <typename Call>
absl::StatusOr<double> Rate(uint64_t bytes, int calls, Call call) {
  MILLRACE_RETURN_IF_ERROR(call());
  const SteadyTime start = SteadyNow();
  for (int i = 0; i < calls; ++i) MILLRACE_RETURN_IF_ERROR(call());
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  return 1e-9 * static_cast<double>(bytes) * calls / seconds;
}

void Print(const char* what, double rate) {
  std::printf("%-44s %8.2f GB/s\n", what, rate);
}

absl::Status PrintCopyRates(uint64_t bytes, int calls) {
  MILLRACE_ASSIGN_OR_RETURN(
      Array host, cuda::AllocatePinnedArray(kDevice, DType::kUint8,
                                            {static_cast<int64_t>(bytes)}));
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceBlock device,
                            cuda::AllocateDevice(kDevice, bytes, "copies"));
  const auto copy = [bytes](void* to, const void* from) {
    return cuda::CudaStatus(cudaMemcpy(to, from, bytes, cudaMemcpyDefault),
                            "cannot copy");
  };
  MILLRACE_ASSIGN_OR_RETURN(const double to_host, Rate(bytes, calls, [&] {
                              return copy(host.mutable_data(), device.get());
                            }));
  Print("copy from the GPU to pinned memory", to_host);
  MILLRACE_ASSIGN_OR_RETURN(const double to_device, Rate(bytes, calls, [&] {
                              return copy(device.get(), host.data());
                            }));
  Print("copy from pinned memory to the GPU", to_device);
  return absl::OkStatus();
}

absl::Status PrintGatherRate(const char* what,
                             const std::shared_ptr<const Store>& store,
                             double ratio, ArrayMemory* memory,
                             const Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(
      const auto rows, cuda::CudaFeatureRows::Create(store, {kDevice}, ratio));
  const NodeType& type = store->schema().node_types[0];
  const uint64_t bytes = arguments.rows * type.feature.row_bytes();
  std::mt19937_64 random(1);
  std::vector<uint64_t> ids(arguments.rows);
  for (uint64_t& id : ids) id = random() % static_cast<uint64_t>(type.count);
  MILLRACE_ASSIGN_OR_RETURN(
      const double rate, Rate(bytes, arguments.calls, [&] {
        return rows->GatherNodes(/*type=*/0, ids, memory).status();
      }));
  Print(what, rate);
  return absl::OkStatus();
}

absl::Status Run(const Arguments& arguments) {
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceInfo info,
                            cuda::OpenDevice(kDevice));
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<Store> store,
                            Store::Open(arguments.store));
  const NodeType& type = store->schema().node_types[0];
  if (type.feature.row_bytes() == 0) {
    return absl::InvalidArgumentError("node type 0 has no features");
  }
  std::printf("%s, %lu rows of %zu bytes a call\n", info.name.c_str(),
              arguments.rows, type.feature.row_bytes());
  const cuda::ScopedDevice current(kDevice);
  MILLRACE_RETURN_IF_ERROR(current.status());
  MILLRACE_RETURN_IF_ERROR(PrintCopyRates(
      arguments.rows * type.feature.row_bytes(), arguments.calls));
  MILLRACE_RETURN_IF_ERROR(store->LoadIntoMemory(
      Store::Content::kFeatures, [](DType dtype, std::vector<int64_t> shape) {
        return cuda::AllocatePinnedArray(kDevice, dtype, std::move(shape));
      }));
  cuda::PinnedMemory memory(kDevice);
  MILLRACE_RETURN_IF_ERROR(
      PrintGatherRate("rows from the GPU's memory to pinned memory", store,
                      /*ratio=*/1, /*memory=*/nullptr, arguments));
  MILLRACE_RETURN_IF_ERROR(PrintGatherRate("rows from the GPU's memory to it",
                                           store, /*ratio=*/1, &memory,
                                           arguments));
  MILLRACE_RETURN_IF_ERROR(
      PrintGatherRate("rows from pinned memory to pinned memory", store,
                      /*ratio=*/0, /*memory=*/nullptr, arguments));
  return PrintGatherRate("rows from pinned memory to the GPU's", store,
                         /*ratio=*/0, &memory, arguments);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  millrace::Arguments arguments;
  if (argc != 4 || !absl::SimpleAtoi(argv[2], &arguments.rows) ||
      !absl::SimpleAtoi(argv[3], &arguments.calls) || arguments.rows == 0 ||
      arguments.calls <= 0) {
    std::fprintf(stderr, "usage: gather_rates STORE ROWS CALLS\n");
    return 2;
  }
  arguments.store = argv[1];
  const absl::Status status = millrace::Run(arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "gather_rates: %s\n",
               std::string(status.message()).c_str());
  return 1;
}
