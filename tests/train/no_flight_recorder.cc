// SPDX-License-Identifier: Apache-2.0
// Switches c10d's flight recorder off before anything reads its size. There is
// one per process, and process groups report to it without a lock; but the
// ranks of these tests are threads, each with its own group. Linking this
// object is enough.
#include <cstdlib>

namespace {

[[maybe_unused]] const bool kNoFlightRecorder =
    setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1) == 0;

}  // namespace
