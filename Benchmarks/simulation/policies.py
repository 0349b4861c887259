"""Which worker the next request goes to: the ways in which proxies and clients balance."""

import bisect
import functools
import hashlib
import itertools
import random
from collections.abc import Callable, Sequence

#: Chooses one of the workers that may be used, by the requests that this balancer has open on each of all workers.
Policy = Callable[[object, Sequence[int], Sequence[int]], int]


def _hash(text: str) -> int:
    """The same in every process, unlike `hash`."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def round_robin(workers: int, generator: random.Random) -> Policy:
    """Each worker in turn, as `round_robin` of gRPC and `roundrobin` of HAProxy do."""
    turns = itertools.count(generator.randrange(workers))

    def choose(key: object, usable: Sequence[int], open_: Sequence[int]) -> int:
        return usable[next(turns) % len(usable)]

    return choose


def uniform(workers: int, generator: random.Random) -> Policy:
    """Any worker: what a balancer of connections comes to, with many clients."""
    return lambda key, usable, open_: usable[int(generator.random() * len(usable))]


def least_requests(workers: int, generator: random.Random) -> Policy:
    """The worker with the fewest open requests; in turn if several have: `leastconn`, and the clients of this project."""
    next_ = generator.randrange(workers)

    def choose(key: object, usable: Sequence[int], open_: Sequence[int]) -> int:
        nonlocal next_
        if len(usable) == workers:
            fewest = min(open_)
            try:
                chosen = open_.index(fewest, next_)
            except ValueError:
                chosen = open_.index(fewest)
        else:
            chosen = min(usable, key=lambda worker: (open_[worker], (worker - next_) % workers))
        next_ = (chosen + 1) % workers
        return chosen

    return choose


def power_of_two(workers: int, generator: random.Random) -> Policy:
    """The better one of two workers drawn by chance, as Envoy's `LEAST_REQUEST` does."""

    def choose(key: object, usable: Sequence[int], open_: Sequence[int]) -> int:
        one = usable[int(generator.random() * len(usable))]
        other = usable[int(generator.random() * len(usable))]
        return one if open_[one] <= open_[other] else other

    return choose


def consistent_hash(bound: float | None = None, points: int = 100) -> Callable[[int, random.Random], Policy]:
    """The worker that follows the key on a ring with `points` places for each worker.

    With a `bound`, a worker that has more than that many times the mean of open requests is passed over, as
    `hash-balance-factor` of HAProxy does.
    """

    @functools.cache
    def ring(workers: int) -> tuple[list[int], list[int]]:
        places = sorted((_hash(f"{worker}/{point}"), worker) for worker in range(workers) for point in range(points))
        return [place for place, _ in places], [worker for _, worker in places]

    def create(workers: int, generator: random.Random) -> Policy:
        places, owners = ring(workers)

        def choose(key: object, usable: Sequence[int], open_: Sequence[int]) -> int:
            start = bisect.bisect(places, _hash(str(key)))
            allowed = set(usable) if len(usable) < workers else None
            limit = None if bound is None else bound * (sum(open_) + 1) / len(usable)
            fallback = None
            for step in range(len(owners)):
                worker = owners[(start + step) % len(owners)]
                if allowed is not None and worker not in allowed:
                    continue
                if limit is None or open_[worker] < limit:
                    return worker
                fallback = worker if fallback is None else fallback
            return usable[0] if fallback is None else fallback

        return choose

    return create


POLICIES: dict[str, Callable[[int, random.Random], Policy]] = {
    "random": uniform,
    "round robin": round_robin,
    "power of two": power_of_two,
    "least requests": least_requests,
    "consistent hash": consistent_hash(),
    "consistent hash, bound 1.25": consistent_hash(1.25),
}
