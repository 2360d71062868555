// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks a function that a kernel may call too. It must not throw, allocate, or
// call functions that are not marked.
#if defined(__CUDACC__)
#define MILLRACE_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_HOST_DEVICE
#endif
