// SPDX-License-Identifier: Apache-2.0
// Counts the batches and seeds of one epoch: count_seeds STORE
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>

#include "client/loader.h"
#include "client/open_source.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: count_seeds STORE\n";
    return 2;
  }
  millrace::SourceOptions options;
  options.store = argv[1];
  auto source = millrace::OpenSource(options);
  if (!source.ok()) {
    std::cerr << source.status() << "\n";
    return 1;
  }
  millrace::JobSpec job;
  job.fanouts = {5, 5};
  job.batch_size = 64;
  auto loader = millrace::Loader::Create(*source, job, {.epochs = 1});
  if (!loader.ok()) {
    std::cerr << loader.status() << "\n";
    return 1;
  }
  int64_t batches = 0;
  int64_t seeds = 0;
  while (true) {
    auto step = (*loader)->Next();
    if (!step.ok()) {
      std::cerr << step.status() << "\n";
      return 1;
    }
    if (!step->has_value()) break;
    ++batches;
    seeds += (*step)->batch->seed_count();
  }
  std::cout << batches << " batches, " << seeds << " seeds\n";
  return 0;
}
