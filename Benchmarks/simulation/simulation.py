"""A discrete-event simulation of a fleet of workers: balancing, queues, caches, refusals, retries, drains and deaths.

The model, and what it leaves out:

- A worker has threads, each of which works on one image at a time, a first-in-first-out queue, and a cache of results.
  The real one prefers small images and is fair between connections, which matters for mixed loads above saturation only.
- Balancers (a proxy, or each client) see their own open requests, and of the workers only refusals and broken connections.
- A refused or lost request is sent again after a delay that doubles, to a worker that this balancer did not just avoid.
- The network is a delay. Its bandwidth is worked out in Benchmarks/tables/fleet.py.

Times are in seconds. The same seed gives the same result.
"""

import heapq
import itertools
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from policies import Policy


@dataclass(frozen=True)
class Settings:
    """A fleet and how it is called."""

    workers: int
    #: Images that a worker processes at the same time, each on a core of its own.
    threads: int
    policy: Callable[[int, random.Random], Policy]
    #: Seconds of a core for the image with this key.
    work: Callable[[object, random.Random], float]
    #: Keys of the images; equal keys are equal images.
    key: Callable[[random.Random], object] = lambda generator: None
    #: How much faster than usual each worker is; missing ones are 1.
    speeds: dict[int, float] = field(default_factory=dict)
    #: Balancers that do not know of each other.
    balancers: int = 1
    #: Results that a worker caches, and what a cached one costs.
    cached_results: int = 0
    cached_work: float = 0.0005
    #: Images that wait in a worker before it refuses further ones.
    max_waiting: int = 10_000
    #: From a client to a worker or back.
    network: float = 0.0005
    #: Until the loss of a worker is noticed: none for a killed process, a keepalive for a lost machine.
    detection: float = 0.0
    attempts: int = 8
    first_delay: float = 0.1
    max_delay: float = 2.0


@dataclass(frozen=True)
class Event:
    """What happens to a worker: `die`, `drain` or `start`."""

    at: float
    worker: int
    kind: str


@dataclass
class Outcome:
    """What became of the requests that arrived after the warm-up."""

    latencies: list[float] = field(default_factory=list)
    #: When each of them ended, in the same order.
    ends: list[float] = field(default_factory=list)
    failed: int = 0
    #: Attempts after the first one.
    retries: int = 0
    refusals: int = 0
    cache_hits: int = 0
    #: Seconds of cores whose results were lost.
    wasted: float = 0.0
    busy: list[float] = field(default_factory=list)
    duration: float = 0.0

    def percentile(self, share: float, since: float = 0, until: float = float("inf")) -> float:
        chosen = sorted(latency for latency, end in zip(self.latencies, self.ends, strict=True) if since <= end < until)
        return chosen[min(len(chosen) - 1, int(share * len(chosen)))] if chosen else float("nan")

    @property
    def throughput(self) -> float:
        return len(self.latencies) / self.duration

    @property
    def mean(self) -> float:
        return sum(self.latencies) / len(self.latencies)


@dataclass(eq=False)
class _Request:
    key: object
    work: float
    arrived: float
    balancer: int
    is_counted: bool
    attempt: int = 0
    began: float = 0.0


class _Worker:
    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.state = "up"
        self.waiting: deque[_Request] = deque()
        self.running: set[_Request] = set()
        self.cache: OrderedDict[object, None] = OrderedDict()
        self.busy = 0.0


class _Balancer:
    def __init__(self, policy: Policy, workers: int) -> None:
        self.choose = policy
        self.open = [0] * workers
        self.failures = [0] * workers
        self.avoided_until = [0.0] * workers


class Simulation:
    """One run. Call `run` once."""

    def __init__(self, settings: Settings, seed: int = 0) -> None:
        self.settings = settings
        self.now = 0.0
        self._generator = random.Random(seed)
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._order = itertools.count()
        self._workers = [_Worker(settings.speeds.get(number, 1.0)) for number in range(settings.workers)]
        self._balancers = [
            _Balancer(settings.policy(settings.workers, self._generator), settings.workers)
            for _ in range(settings.balancers)]
        self._all = range(settings.workers)
        self._has_failures = False
        self._outcome = Outcome()
        self._again: Callable[[], None] | None = None
        self._warm_up = 0.0

    def run(
        self, duration: float, *, rate: float | None = None, callers: int | None = None,
        trace: Iterable[tuple[float, object]] | None = None, warm_up: float = 0.0, events: Iterable[Event] = (),
    ) -> Outcome:
        """Requests arrive for `duration` seconds: by chance, `rate` each second; from `callers` that each send the next one
        when they have a result; or as a `trace` of times and keys. What arrives during the `warm_up` is not counted."""
        if sum(way is not None for way in (rate, callers, trace)) != 1:
            raise ValueError("one of rate, callers and trace must be set")
        self._warm_up = warm_up
        for event in events:
            self._at(event.at, self._change, event)
        if rate is not None:
            self._at(self._generator.expovariate(rate), self._arrive_by_chance, rate, duration)
        elif callers is not None:
            self._again = lambda: self._arrive() if self.now < duration else None
            for _ in range(callers):
                self._at(0.0, self._arrive)
        for time, key in trace or ():
            self._at(time, self._arrive, key)
        while self._events:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        outcome = self._outcome
        outcome.duration = (duration if callers is None else max(outcome.ends, default=duration)) - warm_up
        outcome.busy = [worker.busy for worker in self._workers]
        return outcome

    def _at(self, time: float, action: Callable[..., None], *arguments: object) -> None:
        heapq.heappush(self._events, (time, next(self._order), action, arguments))

    # Clients and balancers

    def _arrive_by_chance(self, rate: float, duration: float) -> None:
        if self.now >= duration:
            return
        self._arrive()
        self._at(self.now + self._generator.expovariate(rate), self._arrive_by_chance, rate, duration)

    def _arrive(self, key: object = None) -> None:
        settings, generator = self.settings, self._generator
        if key is None:
            key = settings.key(generator)
        balancer = generator.randrange(settings.balancers) if settings.balancers > 1 else 0
        self._send(_Request(key, settings.work(key, generator), self.now, balancer, self.now >= self._warm_up))

    def _send(self, request: _Request) -> None:
        balancer = self._balancers[request.balancer]
        usable = self._all
        if self._has_failures:
            usable = [worker for worker in self._all if balancer.avoided_until[worker] <= self.now] or self._all
        number = balancer.choose(request.key, usable, balancer.open)
        balancer.open[number] += 1
        request.attempt += 1
        if request.is_counted and request.attempt > 1:
            self._outcome.retries += 1
        self._at(self.now + self.settings.network, self._receive, request, number)

    def _fail(self, request: _Request, number: int) -> None:
        """The client learns that an attempt failed."""
        balancer, settings = self._balancers[request.balancer], self.settings
        balancer.open[number] -= 1
        balancer.failures[number] += 1
        delay = min(settings.max_delay, settings.first_delay * 2 ** min(30, balancer.failures[number] - 1))
        balancer.avoided_until[number] = self.now + delay * self._generator.uniform(0.8, 1.2)
        self._has_failures = True
        if request.attempt >= settings.attempts:
            self._outcome.failed += request.is_counted
            if self._again:
                self._again()
        elif any(until <= self.now for until in balancer.avoided_until):
            self._send(request)
        else:
            self._at(min(balancer.avoided_until), self._send, request)

    def _succeed(self, request: _Request, number: int) -> None:
        balancer = self._balancers[request.balancer]
        balancer.open[number] -= 1
        balancer.failures[number] = 0
        balancer.avoided_until[number] = 0.0
        if request.is_counted:
            self._outcome.latencies.append(self.now - request.arrived)
            self._outcome.ends.append(self.now)
        if self._again:
            self._again()

    # Workers

    def _receive(self, request: _Request, number: int) -> None:
        worker, settings = self._workers[number], self.settings
        if worker.state == "down":
            self._at(self.now + settings.detection + settings.network, self._fail, request, number)
        elif worker.state == "draining" or len(worker.waiting) >= settings.max_waiting:
            self._outcome.refusals += request.is_counted
            self._at(self.now + settings.network, self._fail, request, number)
        elif len(worker.running) < settings.threads:
            self._begin(request, number)
        else:
            worker.waiting.append(request)

    def _begin(self, request: _Request, number: int) -> None:
        worker, settings = self._workers[number], self.settings
        work = request.work
        if settings.cached_results and request.key in worker.cache:
            worker.cache.move_to_end(request.key)
            work = settings.cached_work
            self._outcome.cache_hits += request.is_counted
        worker.running.add(request)
        request.began = self.now
        self._at(self.now + work / worker.speed, self._end, request, number, request.attempt)

    def _end(self, request: _Request, number: int, attempt: int) -> None:
        worker, settings = self._workers[number], self.settings
        if request not in worker.running or request.attempt != attempt:
            return  # the worker died meanwhile
        worker.running.remove(request)
        if self.now >= self._warm_up:
            worker.busy += self.now - max(request.began, self._warm_up)
        if settings.cached_results and request.key is not None:
            worker.cache[request.key] = None
            if len(worker.cache) > settings.cached_results:
                worker.cache.popitem(last=False)
        if worker.waiting:
            self._begin(worker.waiting.popleft(), number)
        self._at(self.now + settings.network, self._succeed, request, number)

    def _change(self, event: Event) -> None:
        worker = self._workers[event.worker]
        if event.kind == "start":
            worker.state = "up"
            worker.cache.clear()
        elif event.kind == "drain":
            # It finishes what it has accepted.
            worker.state = "draining"
        elif event.kind == "die":
            worker.state = "down"
            self._outcome.wasted += sum(self.now - request.began for request in worker.running)
            lost = sorted([*worker.running, *worker.waiting], key=lambda request: request.arrived)
            worker.running.clear()
            worker.waiting.clear()
            for request in lost:
                self._at(self.now + self.settings.detection + self.settings.network, self._fail, request, event.worker)
        else:
            raise ValueError(f"the event is {event.kind!r}; it must be die, drain or start")
