// SPDX-License-Identifier: Apache-2.0
// What tests of NCCL share: ranks, their gradients and the right sums.
#pragma once

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cuda/nccl_group.h"
#include "client/cuda/nccl_reducer.h"
#include "common/base/steady_time.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/test_directory.h"

namespace millrace::testing {

inline constexpr const char* kSchedules[] = {"random", "eager", "lazy"};
// Far more than a loss takes to be noticed, and far less than the minute after
// which ranks that hang are killed.
inline constexpr absl::Duration kSoon = absl::Seconds(20);

inline constexpr size_t kCounts[] = {1000, 1, 300,
                                     77};  // floats of each bucket
inline constexpr size_t kBuckets = std::size(kCounts);

inline absl::Status LossOf(const ForkedRank& rank) {
  if (rank.lost() < 0) return absl::OkStatus();
  return absl::UnavailableError("rank " + std::to_string(rank.lost()) +
                                " is lost");
}

// Longer than any silence after which a rank is lost.
inline constexpr absl::Duration kLongestSilence = absl::Milliseconds(900);

inline cuda::NcclGroup GroupOf(ForkedRank& rank,
                               absl::Duration patience = kLongestSilence) {
  return {.rank = rank.rank(),
          .world = rank.world(),
          .device = rank.rank(),
          .start_timeout = kSoon,
          .share =
              [&rank](const std::string& bytes) -> absl::StatusOr<std::string> {
            std::string shared = rank.Share(bytes);
            if (shared.empty()) return LossOf(rank);
            return shared;
          },
          .gather = [&rank](const std::string& bytes)
              -> absl::StatusOr<std::vector<std::string>> {
            std::vector<std::string> all = rank.Gather(bytes);
            if (all.empty()) return LossOf(rank);
            return all;
          },
          .loss = [&rank] { return LossOf(rank); },
          .wait_for_loss =
              [&rank, patience] {
                const SteadyTime deadline = SteadyNow() + patience;
                while (LossOf(rank).ok() && SteadyNow() < deadline) {
                  absl::SleepFor(absl::Milliseconds(5));
                }
                return LossOf(rank);
              }};
}

inline std::unique_ptr<cuda::NcclReducer> Connect(ForkedRank& rank) {
  auto reducer = cuda::NcclReducer::Connect(GroupOf(rank));
  EXPECT_TRUE(reducer.ok()) << reducer.status();
  return reducer.ok() ? *std::move(reducer) : nullptr;
}

// Gradients of a rank: pinned memory, from which copies are really late, and
// that of its device.
class Gradients {
 public:
  explicit Gradients(int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking),
              cudaSuccess);
    for (size_t b = 0; b < kBuckets; ++b) {
      const size_t bytes = kCounts[b] * sizeof(float);
      void* host = nullptr;
      void* device_memory = nullptr;
      EXPECT_EQ(cudaMallocHost(&host, bytes), cudaSuccess);
      EXPECT_EQ(cudaMalloc(&device_memory, bytes), cudaSuccess);
      host_[b] = static_cast<float*>(host);
      device_[b] = static_cast<float*>(device_memory);
    }
  }

  cudaStream_t compute() const { return compute_; }
  float* on_device(size_t bucket) const { return device_[bucket]; }

  // Lets the stream of computations make a bucket.
  void Compute(size_t bucket, const std::function<float(size_t)>& value) {
    for (size_t i = 0; i < kCounts[bucket]; ++i) host_[bucket][i] = value(i);
    Copy(device_[bucket], host_[bucket], bucket);
  }
  std::vector<float> Read(size_t bucket) {
    Copy(host_[bucket], device_[bucket], bucket);
    EXPECT_EQ(cudaStreamSynchronize(compute_), cudaSuccess);
    return {host_[bucket], host_[bucket] + kCounts[bucket]};
  }

 private:
  void Copy(float* to, const float* from, size_t bucket) {
    EXPECT_EQ(cudaMemcpyAsync(to, from, kCounts[bucket] * sizeof(float),
                              cudaMemcpyDefault, compute_),
              cudaSuccess);
  }

  cudaStream_t compute_ = nullptr;
  float* host_[kBuckets] = {};
  float* device_[kBuckets] = {};
};

// Small integers, so that sums are exact in any order.
inline float GradientOf(int rank, int step, size_t bucket, size_t i) {
  return static_cast<float>((rank + 1) * ((step + 3 * bucket + i) % 97));
}

inline std::vector<float> SumOf(const std::vector<int>& ranks, int step,
                                size_t bucket) {
  std::vector<float> sums(kCounts[bucket]);
  for (size_t i = 0; i < sums.size(); ++i) {
    for (const int rank : ranks) sums[i] += GradientOf(rank, step, bucket, i);
  }
  return sums;
}

inline absl::Status TakeStep(cuda::NcclReducer& reducer, Gradients& gradients,
                             int rank, int step) {
  for (size_t b = 0; b < kBuckets; ++b) {
    gradients.Compute(b,
                      [&](size_t i) { return GradientOf(rank, step, b, i); });
    const absl::Status added =
        reducer.Add(gradients.on_device(b), kCounts[b], gradients.compute());
    if (!added.ok()) return added;
  }
  return reducer.Finish();
}

// Takes steps until one fails, which must be soon.
inline absl::Status StepsUntilFailure(cuda::NcclReducer& reducer,
                                      ForkedRank& rank) {
  Gradients gradients(rank.rank());
  const SteadyTime start = SteadyNow();
  absl::Status status;
  for (int step = 0; status.ok() && SteadyNow() - start < kSoon; ++step) {
    status = TakeStep(reducer, gradients, rank.rank(), step);
  }
  EXPECT_LT(SteadyNow() - start, kSoon);
  EXPECT_EQ(reducer.Add(nullptr, 1, nullptr), status);
  EXPECT_EQ(reducer.Finish(), status);
  return status;
}

// A fixture that runs ranks whose GPUs and NCCL are those of tests/ptxemu.
class NcclRanksTest : public DirectoryTest {
 protected:
  std::vector<int> Run(int world,
                       std::map<std::string, std::string> environment,
                       const std::function<void(ForkedRank&)>& run,
                       absl::Duration silence = absl::Milliseconds(50)) {
    environment["NCCLEMU_DIR"] = directory_.string();
    environment["PTXEMU_DEVICES"] = std::to_string(world);
    return RunRanks(
        {.world = world, .silence = silence, .environment = environment}, run);
  }
  // With each schedule of the streams.
  void RunAll(int world, const std::function<void(ForkedRank&)>& run) {
    for (const char* schedule : kSchedules) {
      for (const char* seed : {"1", "2", "3"}) {
        SCOPED_TRACE(schedule);
        EXPECT_THAT(
            Run(world, {{"PTXEMU_SCHED", schedule}, {"PTXEMU_SEED", seed}},
                run),
            ::testing::Each(0));
      }
    }
  }
};

}  // namespace millrace::testing
