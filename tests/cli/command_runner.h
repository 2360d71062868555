// SPDX-License-Identifier: Apache-2.0
// Runs commands of `millrace` in this process. A test must add the sources of
// the commands to its SOURCES.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/millrace_program.h"
#include "common/file/npy.h"
#include "tests/support/captured_output.h"
#include "tests/support/test_directory.h"
#include "tests/support/test_store.h"

namespace millrace::testing {

class CommandTest : public DirectoryTest {
 protected:
  // Runs `millrace ARGS`, keeps its output and returns its exit status.
  int Run(std::vector<std::string> args) {
    args.insert(args.begin(), "millrace");
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    CapturedOutput out(STDOUT_FILENO);
    CapturedOutput err(STDERR_FILENO);
    const int status =
        RunMillraceProgram(static_cast<int>(argv.size()), argv.data());
    out_ = out.Stop();
    err_ = err.Stop();
    return status;
  }

  // The JSON that `millrace ARGS` prints.
  nlohmann::ordered_json JsonOf(std::vector<std::string> args) {
    EXPECT_EQ(Run(std::move(args)), 0) << err_;
    return nlohmann::ordered_json::parse(out_, nullptr,
                                         /*allow_exceptions=*/false);
  }

  // Writes an array to a file and returns the file's name.
  template <typename T>
  std::string Npy(const std::string& name, std::vector<T> values,
                  std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
    const std::string file = Path(name + ".npy");
    std::filesystem::remove(file);
    EXPECT_TRUE(
        WriteNpy(file, Array::Adopt(std::move(values), std::move(shape))).ok());
    return file;
  }
  std::string Path(const std::string& name) const {
    return (directory_ / name).string();
  }
  // Writes a graph as a dataset, or as a store of `parts` partitions.
  std::string Stored(const TestGraph& graph, int parts = 0,
                     const std::string& name = "graph") {
    EXPECT_TRUE(WriteGraph(graph, parts, directory_ / name).ok());
    return Path(name);
  }

  std::string out_;
  std::string err_;
};

}  // namespace millrace::testing
