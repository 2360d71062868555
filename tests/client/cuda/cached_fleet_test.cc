// SPDX-License-Identifier: Apache-2.0
// Batches of a fleet with a feature cache on a CUDA device.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/cuda/cuda_device_cache.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/pinned_memory.h"
#include "tests/client/remote/citation_fleet.h"

namespace millrace::testing {
namespace {

using cuda::CudaDeviceCache;
using cuda::PinnedMemory;

// The array on the host.
Array OnHost(const Array& array) {
  if (!array.present() || array.on_host()) return array;
  Array copy = Array::Allocate(array.dtype(), array.shape());
  const cuda::ScopedDevice current(array.device());
  EXPECT_EQ(cudaMemcpy(copy.mutable_data(), array.data(), array.total_bytes(),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  return copy;
}

TEST(CachedFleetTest, BatchesAreThoseWithoutCache) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  const int device = devices - 1;
  ASSERT_TRUE(cuda::OpenDevice(device).ok());
  const FleetHarness fleet(CitationGraph(), /*parts=*/2);
  RemoteOptions options;
  options.servers = "@" + fleet.list();
  const auto plain = Connect(options);
  for (const DType cast : {DType::kNone, DType::kFloat16}) {
    const std::vector<Batch> want = Epoch(*plain, cast);
    for (const double ratio : {0.3, 1.0}) {
      options.cache_ratio = ratio;
      options.device_cache = std::make_shared<CudaDeviceCache>(device);
      const auto source = Connect(options);
      std::vector<Batch> got =
          Epoch(*source, cast, std::make_shared<PinnedMemory>(device));
      for (Batch& batch : got) {
        EXPECT_EQ(batch.nodes[kPapersType].feature.device(), device);
        for (NodeBlock& block : batch.nodes) {
          block.feature = OnHost(block.feature);
        }
      }
      ExpectEqualEpochs(got, want, fleet.store()->schema());
      ExpectEqualEpochs(Epoch(*source, cast), want, fleet.store()->schema());
    }
  }
}

}  // namespace
}  // namespace millrace::testing
