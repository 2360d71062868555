// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pretend_streams.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/support/pretend_device.h"

namespace millrace {
namespace {

struct HostCopy {
  const std::byte* begin;
  const std::byte* end;
  StreamWork work;
};

struct Order {
  std::mutex mutex;
  // By stream: its own work so far, and that of others that it waited for.
  std::map<c10::StreamId, StreamTimes> streams;
  StreamTimes host;  // what the host has waited for
  std::vector<HostCopy> copies;
};

// Lives as long as the program, because tensors do.
Order& TheOrder() {
  static Order& order = *new Order;
  return order;
}

thread_local c10::StreamId current = 0;

bool Has(const StreamTimes& times, const StreamWork& work) {
  const auto found = times.find(work.stream);
  return work.number == 0 ||
         (found != times.end() && found->second >= work.number);
}

void Merge(const StreamTimes& from, StreamTimes& to) {
  for (const auto& [stream, number] : from) {
    to[stream] = std::max(to[stream], number);
  }
}

// Returns the current stream's next piece of work, which uses what `last`
// wrote.
StreamWork NextWork(Order& order, const StreamWork& last) {
  StreamTimes& own = order.streams[current];
  TORCH_CHECK(Has(own, last) || Has(order.host, last), "stream ", current,
              " uses memory that stream ", last.stream,
              " has written, but has not waited for that");
  return {current, ++own[current]};
}

}  // namespace

c10::StreamId CurrentPretendStream() { return current; }

c10::StreamId ExchangePretendStream(c10::StreamId stream) {
  return std::exchange(current, stream);
}

void ReadInPretendStream(const StreamWork& last) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  NextWork(order, last);
}

void WriteInPretendStream(StreamWork& last) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  last = NextWork(order, last);
}

StreamTimes PretendStreamTimes(c10::StreamId stream) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  return order.streams[stream];
}

void WaitInPretendStream(c10::StreamId stream, const StreamTimes& event) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  Merge(event, order.streams[stream]);
}

void WaitForPretendStreams(const StreamTimes& event) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  Merge(event, order.host);
  std::erase_if(order.copies, [&order](const HostCopy& copy) {
    return Has(order.host, copy.work);
  });
}

void NoteCopyOfHostMemory(const void* memory, size_t bytes) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  const auto* begin = static_cast<const std::byte*>(memory);
  order.copies.push_back({begin, begin + bytes, NextWork(order, {})});
}

bool PretendDeviceReads(const void* memory) {
  Order& order = TheOrder();
  const std::lock_guard lock(order.mutex);
  const auto* byte = static_cast<const std::byte*>(memory);
  return std::any_of(
      order.copies.begin(), order.copies.end(), [byte](const HostCopy& copy) {
        return !std::less()(byte, copy.begin) && std::less()(byte, copy.end);
      });
}

}  // namespace millrace
