"""Tests of the simulation of a fleet: against closed forms of queueing theory, and what must hold of any run."""

import math
import random
import sys

import pytest
from python_client import ROOT

sys.path.insert(0, str(ROOT / "Benchmarks/simulation"))

from policies import POLICIES, consistent_hash, least_requests, power_of_two, round_robin, uniform  # noqa: E402
from simulation import Event, Settings, Simulation  # noqa: E402


def fixed(seconds):
    return lambda key, generator: seconds


def exponential(mean):
    return lambda key, generator: generator.expovariate(1 / mean)


def outcome(settings, seed=1, duration=20_000.0, **load):
    return Simulation(settings, seed).run(duration, warm_up=duration / 50, **load)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_thread_with_exponential_work_is_the_queue_m_m_1(load):
    run = outcome(Settings(1, 1, uniform, exponential(1), network=0), duration=150_000.0, rate=load)
    assert run.mean == pytest.approx(1 / (1 - load), rel=0.05)
    # The time in such a queue is exponential.
    for share in (0.5, 0.99):
        assert run.percentile(share) == pytest.approx(-math.log(1 - share) / (1 - load), rel=0.08)
    assert sum(run.busy) / run.duration == pytest.approx(load, rel=0.02)


def test_one_thread_with_equal_work_is_the_queue_m_d_1():
    run = outcome(Settings(1, 1, uniform, fixed(1), network=0), duration=80_000.0, rate=0.8)
    assert run.mean == pytest.approx(1 + 0.8 / (2 * (1 - 0.8)), rel=0.04)


def test_several_threads_are_the_queue_m_m_c():
    threads, load = 8, 0.85
    run = outcome(Settings(1, threads, uniform, exponential(1), network=0), rate=threads * load)
    offered = threads * load
    waiting = offered**threads / math.factorial(threads) / (1 - load)
    probability = waiting / (sum(offered**count / math.factorial(count) for count in range(threads)) + waiting)
    assert run.mean == pytest.approx(1 + probability / (threads * (1 - load)), rel=0.05)


def test_by_chance_over_several_workers_is_as_many_queues():
    run = outcome(Settings(5, 1, uniform, exponential(1), network=0.25), rate=5 * 0.7)
    assert run.mean == pytest.approx(1 / (1 - 0.7) + 2 * 0.25, rel=0.05)


def test_callers_that_wait_for_results_saturate_the_workers():
    run = outcome(Settings(3, 2, least_requests, fixed(0.01), network=0), duration=100.0, callers=30)
    assert run.throughput == pytest.approx(3 * 2 / 0.01, rel=0.02)
    # The law of Little: callers = throughput * latency.
    assert run.mean * run.throughput == pytest.approx(30, rel=0.02)


def test_the_seed_determines_the_run():
    settings = Settings(4, 2, power_of_two, exponential(0.01), balancers=3, key=lambda generator: generator.randrange(100),
                        cached_results=20)
    events = [Event(5, 0, "die"), Event(9, 0, "start"), Event(12, 1, "drain")]
    runs = [Simulation(settings, seed).run(20.0, rate=400, events=events) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] and runs[0].latencies != runs[2].latencies


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("detection", [0, 3])
def test_each_image_has_one_end_whatever_happens_to_workers(name, detection):
    settings = Settings(5, 2, POLICIES[name], exponential(0.01), key=lambda generator: generator.randrange(1000), balancers=4,
                        detection=detection, max_waiting=50, attempts=100)
    trace = [(number / 700, number) for number in range(14_000)]
    events = [Event(4, 0, "die"), Event(8, 1, "drain"), Event(12, 0, "start"), Event(14, 1, "start"), Event(14, 2, "die")]
    simulation = Simulation(settings, 3)
    run = simulation.run(20.0, trace=trace, events=events)
    assert len(run.latencies) + run.failed == len(trace) and run.failed == 0
    assert run.retries > 0 and run.wasted > 0 and run.refusals > 0
    assert all(count == 0 for balancer in simulation._balancers for count in balancer.open)
    assert not any(worker.running or worker.waiting for worker in simulation._workers)


def test_a_full_fleet_refuses_and_gives_up():
    run = Simulation(Settings(1, 1, uniform, fixed(1), max_waiting=2, attempts=3), 1).run(60.0, rate=10)
    assert run.failed > 400 and run.refusals > 2 * run.failed and len(run.latencies) == pytest.approx(66, abs=6)


def test_who_balances_better_waits_less():
    def wait(policy, **fields):
        return outcome(Settings(10, 1, policy, exponential(1), network=0, **fields), duration=2500.0, rate=8).percentile(0.99)

    waits = {policy: wait(policy) for policy in (uniform, round_robin, power_of_two, least_requests)}
    assert waits[least_requests] < waits[power_of_two] < waits[round_robin] < waits[uniform]
    # A client that sees few of the open requests is hardly better than chance.
    assert waits[least_requests] * 1.5 < wait(least_requests, balancers=500)


def test_a_slow_worker_delays_those_who_do_not_look():
    def slow(policy):
        return outcome(Settings(10, 2, policy, fixed(1), speeds={3: 0.25}, network=0), duration=2000.0, rate=12).percentile(0.99)

    assert slow(least_requests) < 5 < 20 < slow(round_robin)


def test_a_hash_of_the_image_shares_the_caches():
    def hits(policy):
        run = Simulation(
            Settings(8, 2, policy, fixed(0.01), key=lambda generator: generator.randrange(4000), cached_results=500), 1,
        ).run(100.0, rate=500, warm_up=40)
        return run.cache_hits / (len(run.latencies) + run.failed)

    assert hits(round_robin) == pytest.approx(500 / 4000, abs=0.02)
    assert hits(consistent_hash()) > 0.85


def test_the_loss_of_a_worker_moves_only_its_keys():
    choose = consistent_hash()(10, random.Random(1))
    everyone, rest, open_ = list(range(10)), [0, 1, 2, 4, 5, 6, 7, 8, 9], [0] * 10
    before = {key: choose(key, everyone, open_) for key in range(20_000)}
    after = {key: choose(key, rest, open_) for key in range(20_000)}
    assert {before[key] for key in before if before[key] != after[key]} == {3}
    shares = [sum(worker == number for worker in before.values()) / 20_000 for number in everyone]
    assert 0.06 < min(shares) and max(shares) < 0.15
    # Those of the lost worker are spread over the others.
    assert len({after[key] for key in before if before[key] == 3}) == 9


def test_a_bound_passes_over_a_busy_worker():
    choose = consistent_hash(1.25)(4, random.Random(1))
    usual = choose("a", range(4), [0, 0, 0, 0])
    busy = [8 if worker == usual else 1 for worker in range(4)]
    assert choose("a", range(4), busy) != usual
    assert choose("a", [usual], busy) == usual


def test_an_unknown_event_or_load_is_an_error():
    with pytest.raises(ValueError, match="die, drain or start"):
        Simulation(Settings(1, 1, uniform, fixed(1))).run(1.0, rate=1, events=[Event(0, 0, "stop")])
    with pytest.raises(ValueError, match="one of"):
        Simulation(Settings(1, 1, uniform, fixed(1))).run(1.0)
