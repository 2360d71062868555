// SPDX-License-Identifier: Apache-2.0
// Baselines that the benchmarks compare with, measured in the same run:
//
//   loop    the simplest sampling and gathering loop over the same arrays,
//           on one thread, without a service
//   stream  the same bytes over one TCP connection on loopback, received into
//           a buffer of a batch's size; counts both ends
//
// baseline STORE FANOUTS BATCH_SIZE BATCHES -> one JSON object
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

double CpuSeconds(int who) {
  rusage usage;
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

// Sampling without replacement over CSR in-lists, with a dense map from nodes
// to local ids: everything that a batch needs, and nothing that a service
// needs.
class PlainLoop {
 public:
  explicit PlainLoop(const Store& store)
      : indptr_(store.partition(0)->edges[0].in.indptr.As<int64_t>()),
        indices_(store.partition(0)->edges[0].in.indices.As<uint32_t>()),
        feature_(store.partition(0)->nodes[0].feature),
        local_(indptr_.size(), kUnseen),
        rows_(feature_.row_bytes()) {}

  void Sample(const std::vector<uint32_t>& seeds,
              const std::vector<int>& fanouts) {
    for (const uint32_t node : nodes_) local_[node] = kUnseen;
    nodes_.clear();
    sources_.clear();
    targets_.clear();
    for (const uint32_t seed : seeds) Local(seed);
    size_t begin = 0;
    for (const int fanout : fanouts) {
      const size_t end = nodes_.size();
      for (size_t v = begin; v < end; ++v) Expand(v, fanout);
      begin = end;
    }
  }

  // Copies all rows into one buffer, which is reused.
  void Gather() {
    const size_t row = feature_.row_bytes();
    if (rows_.size() < nodes_.size() * row) rows_.resize(nodes_.size() * row);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      std::memcpy(rows_.data() + i * row, feature_.data() + nodes_[i] * row,
                  row);
    }
  }

  size_t nodes() const { return nodes_.size(); }
  size_t edges() const { return sources_.size(); }
  size_t bytes() const {
    return nodes_.size() * feature_.row_bytes() + 4 * sources_.size() +
           4 * nodes_.size();
  }

 private:
  static constexpr uint32_t kUnseen = UINT32_MAX;

  uint32_t Local(uint32_t node) {
    if (local_[node] == kUnseen) {
      local_[node] = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back(node);
    }
    return local_[node];
  }

  void Expand(size_t v, int fanout) {
    const int64_t begin = indptr_[nodes_[v]];
    const int64_t degree = indptr_[nodes_[v] + 1] - begin;
    picks_.clear();
    if (degree <= fanout) {
      for (int64_t i = 0; i < degree; ++i) picks_.push_back(i);
    } else {
      for (int64_t j = degree - fanout; j < degree; ++j) {
        const int64_t pick = static_cast<int64_t>(
            (random_() >> 32) * static_cast<uint64_t>(j + 1) >> 32);
        bool seen = false;
        for (const int64_t other : picks_) seen |= other == pick;
        picks_.push_back(seen ? j : pick);
      }
    }
    for (const int64_t pick : picks_) {
      sources_.push_back(Local(indices_[begin + pick]));
      targets_.push_back(static_cast<uint32_t>(v));
    }
  }

  const std::span<const int64_t> indptr_;
  const std::span<const uint32_t> indices_;
  const Array& feature_;
  std::mt19937_64 random_{7};
  std::vector<uint32_t> local_;
  std::vector<uint32_t> nodes_, sources_, targets_;
  std::vector<int64_t> picks_;
  std::vector<std::byte> rows_;
};

void WriteAll(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = write(fd, data, bytes);
    if (n <= 0) _exit(1);
    data += n;
    bytes -= static_cast<size_t>(n);
  }
}

// Sends `count` batches of `bytes` bytes from a child process and receives
// them.
struct StreamResult {
  double seconds = 0, cpu_seconds = 0;
};
StreamResult RawStream(size_t bytes, int count) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) !=
          0) {
    std::perror("baseline: loopback socket");
    std::exit(1);
  }
  const double children_start = CpuSeconds(RUSAGE_CHILDREN);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      _exit(1);
    }
    const std::vector<char> data(bytes, 1);
    constexpr size_t kChunk = 256 << 10;
    for (int i = 0; i < count; ++i) {
      for (size_t at = 0; at < bytes; at += kChunk) {
        WriteAll(fd, data.data() + at, std::min(kChunk, bytes - at));
      }
    }
    _exit(0);
  }
  const int fd = accept(listener, nullptr, nullptr);
  std::vector<char> buffer(bytes);
  StreamResult result;
  const SteadyTime start = SteadyNow();
  const double self_start = CpuSeconds(RUSAGE_SELF);
  for (int i = 0; i < count; ++i) {
    for (size_t at = 0; at < bytes;) {
      const ssize_t n = read(fd, buffer.data() + at, bytes - at);
      if (n <= 0) {
        std::perror("baseline: read");
        std::exit(1);
      }
      at += static_cast<size_t>(n);
    }
  }
  result.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  result.cpu_seconds = CpuSeconds(RUSAGE_SELF) - self_start;
  waitpid(child, nullptr, 0);
  result.cpu_seconds += CpuSeconds(RUSAGE_CHILDREN) - children_start;
  close(fd);
  close(listener);
  return result;
}

int Run(const char* path, const std::vector<int>& fanouts, int batch_size,
        int batches) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  if (!store.ok()) {
    std::fprintf(stderr, "baseline: %s\n", store.status().ToString().c_str());
    return 1;
  }
  const absl::StatusOr<const Split*> split = (*store)->FindSplit(0, "train");
  if (!split.ok() || (*store)->partition_count() != 1) {
    std::fprintf(stderr, "baseline: needs a dataset with a train split\n");
    return 1;
  }
  PlainLoop loop(**store);
  std::mt19937_64 random(3);
  const int64_t seeds = (*split)->id.rows();
  double sample = 0, gather = 0;
  size_t nodes = 0, edges = 0, bytes = 0;
  for (int i = -5; i < batches; ++i) {  // five to warm up
    std::vector<uint32_t> batch;
    for (int s = 0; s < batch_size; ++s) {
      batch.push_back(static_cast<uint32_t>((*split)->id.IntegerAt(
          static_cast<int64_t>(random() % static_cast<uint64_t>(seeds)))));
    }
    const double t0 = CpuSeconds(RUSAGE_SELF);
    loop.Sample(batch, fanouts);
    const double t1 = CpuSeconds(RUSAGE_SELF);
    loop.Gather();
    const double t2 = CpuSeconds(RUSAGE_SELF);
    if (i < 0) continue;
    sample += t1 - t0;
    gather += t2 - t1;
    nodes += loop.nodes();
    edges += loop.edges();
    bytes += loop.bytes();
  }
  const size_t mean_bytes = bytes / static_cast<size_t>(batches);
  const StreamResult stream = RawStream(mean_bytes, batches);
  nlohmann::ordered_json json;
  json["sample_cpu_seconds"] = sample / batches;
  json["gather_cpu_seconds"] = gather / batches;
  json["loop_cpu_seconds"] = (sample + gather) / batches;
  json["stream_cpu_seconds"] = stream.cpu_seconds / batches;
  json["stream_seconds"] = stream.seconds / batches;
  json["nodes"] = nodes / static_cast<size_t>(batches);
  json["edges"] = edges / static_cast<size_t>(batches);
  json["bytes"] = mean_bytes;
  std::printf("%s\n", json.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  std::vector<int> fanouts;
  int batch_size = 0, batches = 0;
  bool ok = argc == 5 && absl::SimpleAtoi(argv[3], &batch_size) &&
            absl::SimpleAtoi(argv[4], &batches) && batch_size > 0 &&
            batches > 0;
  for (const absl::string_view field :
       ok ? absl::StrSplit(argv[2], ',') : absl::StrSplit("", ',')) {
    fanouts.push_back(0);
    ok = ok && absl::SimpleAtoi(field, &fanouts.back()) && fanouts.back() > 0;
  }
  if (!ok) {
    std::fprintf(stderr, "usage: baseline STORE FANOUTS BATCH_SIZE BATCHES\n");
    return 2;
  }
  return millrace::Run(argv[1], fanouts, batch_size, batches);
}
