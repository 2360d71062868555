// SPDX-License-Identifier: Apache-2.0
// A device for LibTorch that is none: what a program does wrong with the
// tensors of a GPU shows without one. Its tensors lie in memory that the host
// cannot touch, so a raw pointer crashes; operators run on the CPU, by way of a
// second mapping of that memory; tensors of different devices do not mix; work
// in a stream that should have waited for another one, and has not, throws (see
// pretend_streams.h). Results have the CPU's bits.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "common/base/array.h"

namespace millrace {

// The device, kPrivateUse1 number 0, which exists in programs that link this.
// LibTorch prints it as "pretend:0".
c10::Device PretendDevice();

// Returns a copy of an array of the host in the memory of the device; an absent
// array stays absent.
Array CopyToPretendDevice(const Array& array);

// Bytes of the tensors and arrays that it has now.
int64_t BytesOfPretendDevice();

// Lets allocations fail, as a GPU's do, that would make its tensors take more
// than so many bytes together.
void SetPretendMemory(int64_t bytes);

// Lets the recording of events throw, as when a GPU is lost, after so many
// more.
void LimitPretendEvents(int64_t events);

// Number of times that it has been asked whether an event is over.
int64_t EventQueriesOfPretendDevice();

// Whether a copy that does not block, as out of pinned memory, may still read
// this byte of the host's memory: the host has not waited for it.
bool PretendDeviceReads(const void* memory);

// Number of times that it has reduced lists with the operators of
// client/nn/list_reduction.h, for which it has kernels of its own.
int64_t ListReductionsOfPretendDevice();

}  // namespace millrace
