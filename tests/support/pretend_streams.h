// SPDX-License-Identifier: Apache-2.0
// In which order the streams of the pretend device work. Their work is done
// when a call returns, but it counts as done, for another stream or the host,
// only once that has waited for it. What a program does without waiting, which
// goes wrong on a GPU now and then, thus always shows.
// Threads: any.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <map>

namespace millrace {

// The pieces of work of each stream that are known to be done.
using StreamTimes = std::map<c10::StreamId, int64_t>;

// A piece of work of a stream, numbered from 1; 0 means none.
struct StreamWork {
  c10::StreamId stream = 0;
  int64_t number = 0;
};

// The stream that this thread works in.
c10::StreamId CurrentPretendStream();
// Changes it, and returns the one before.
c10::StreamId ExchangePretendStream(c10::StreamId stream);

// Let the current stream read or write memory which `last` has written. Throw
// c10::Error if the stream has not waited for that. A write takes the place of
// `last`.
void ReadInPretendStream(const StreamWork& last);
void WriteInPretendStream(StreamWork& last);

// Returns what an event stands for that is recorded in `stream`.
StreamTimes PretendStreamTimes(c10::StreamId stream);
// Let a stream, or the host, wait for an event.
void WaitInPretendStream(c10::StreamId stream, const StreamTimes& event);
void WaitForPretendStreams(const StreamTimes& event);

// Notes that the current stream copies host memory, which must stay until the
// host has waited for that.
void NoteCopyOfHostMemory(const void* memory, size_t bytes);

}  // namespace millrace
