// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Sets the time of day, in a program compiled with set_clock.c, to
// `nanoseconds` ahead of the machine's. Any thread.
void SetClockAhead(int64_t nanoseconds);

#ifdef __cplusplus
}
#endif
