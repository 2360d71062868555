// SPDX-License-Identifier: Apache-2.0
// Switches c10d's flight recorder off before anything reads its size. There is
// one for a process, and it is told of process groups without a lock; but ranks
// of these tests are threads, each with a group of its own. A program that
// links this object need not refer to it.
#include <cstdlib>

namespace {

[[maybe_unused]] const bool kNoFlightRecorder =
    setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1) == 0;

}  // namespace
