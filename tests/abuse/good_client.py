# SPDX-License-Identifier: Apache-2.0
"""A well-behaved client that fetches one batch after another and checks each.
It is a separate process, so that attackers in this process cannot slow it
down."""
import multiprocessing
import time

from http2 import Connection
from sampler_requests import ALL_COLUMNS, SAMPLE, batch_digest, job, sample

SOURCE = "127.0.0.1"
BATCHES = 20
PAUSE = 0.02  # seconds
RESOURCE_EXHAUSTED = 8
JOB = job(seed=7, split="train", fanouts=[10, 5], batch_size=256, shuffle=True)


class _Asker:
    def __init__(self, connection, partition):
        self.connection, self.partition = connection, partition
        self.refusals = 0  # calls refused for lack of memory

    def fetch(self, batch):
        """Returns the digest of a batch. While calls being ended for others
        hold as much memory as the limit, it retries, as a loader does."""
        message = sample(JOB, batch=batch, columns=ALL_COLUMNS,
                         partition=self.partition)
        while True:
            call = self.connection.call(SAMPLE, message, "120S")
            if call.status == 0:
                return batch_digest(call)
            if (call.status != RESOURCE_EXHAUSTED or
                    "bytes are in use" not in call.message):
                raise AssertionError(f"batch {batch} was refused: status "
                                     f"{call.status} {call.message}")
            self.refusals += 1
            time.sleep(PAUSE)


def _run(target, stop, results):
    digests, seconds, refusals, problem = {}, [], 0, None
    try:
        with Connection(target, SOURCE) as connection:
            asker = _Asker(connection, target.partition)
            for batch in range(BATCHES):  # before any attack
                digests[batch] = asker.fetch(batch)
            results.put("calm")
            batch = 0
            while not stop.is_set():
                start = time.monotonic()
                digest = asker.fetch(batch)
                seconds.append(time.monotonic() - start)
                refusals = asker.refusals
                if digest != digests[batch]:
                    raise AssertionError(f"batch {batch} changed")
                batch = (batch + 1) % BATCHES
                stop.wait(PAUSE)
    except (OSError, AssertionError) as error:
        problem = f"the good client: {type(error).__name__} {error}"
    results.put((seconds, refusals, problem))


class GoodClient:
    """The constructor returns after all batches have been fetched once."""

    def __init__(self, target):
        self.stop = multiprocessing.Event()
        self.results = multiprocessing.SimpleQueue()
        self.process = multiprocessing.Process(
            target=_run, args=(target, self.stop, self.results), daemon=True)
        self.process.start()
        if (first := self.results.get()) != "calm":
            raise AssertionError(first[2])

    def end(self):
        """Returns seconds for each batch, number of retries, and error or None."""
        self.stop.set()
        result = self.results.get()
        self.process.join()
        return result
