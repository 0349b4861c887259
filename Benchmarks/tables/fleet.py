#!/usr/bin/env python3
"""Works out the machines, network and money of a fleet from measured costs. Writes Benchmarks/results/fleet.md.

The CPU time of each image, and the size of its result, are read from Benchmarks/results/peers.md. Everything else is an
assumption, printed in the document, and an option here.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "results"
DAY = 86_400
#: Share of the images, name in peers.md, kilobytes of the file.
MIXES = {
    "web": [(0.5, "0.3mp-dog", 60), (0.4, "2mp-dog", 400), (0.1, "12mp-dog", 1500)],
    "phone": [(0.2, "2mp-dog", 400), (0.8, "12mp-dji", 3300)],
}


@dataclass(frozen=True)
class Costs:
    """What one image costs in the mean."""

    cpu_milliseconds: float
    input_kilobytes: float
    output_kilobytes: float


@dataclass(frozen=True)
class Fleet:
    """What a number of images a day needs."""

    images_per_day: int
    peak_per_second: float
    cores: float
    machines: int
    in_gigabits: float
    out_gigabits: float
    balancers: int
    euros_per_day: float
    euros_per_million: float


def measured(text: str, job: str) -> dict[str, tuple[float, float]]:
    """The CPU milliseconds over gRPC and the kilobytes of the result of each image, from the tables of one job."""
    section = re.search(rf"^## Job {job}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
    tables = section.split("\n\n")
    cpu = {name: float(value) for name, value in re.findall(r"^\| ([\w.-]+) \| ([\d.]+) \|", section, re.M)}
    sizes = {}
    for table in tables:
        for name, value in re.findall(r"^\| ([\w.-]+) \| \d+ \([+-]\d+\), ([\d.]+)", table, re.M):
            sizes[name] = float(value)
    return {name: (cpu[name], sizes[name]) for name in cpu if name in sizes}


def mean_costs(mix: list[tuple[float, str, float]], images: dict[str, tuple[float, float]]) -> Costs:
    assert abs(sum(share for share, _, _ in mix) - 1) < 1e-9, "the shares of a mix must add up to 1"
    return Costs(
        sum(share * images[name][0] for share, name, _ in mix), sum(share * size for share, _, size in mix),
        sum(share * images[name][1] for share, name, _ in mix))


def fleet(images_per_day: int, costs: Costs, options: argparse.Namespace) -> Fleet:
    peak = images_per_day / DAY * options.peak
    cores = peak * costs.cpu_milliseconds / 1000 / options.utilization
    machines = max(3, -(-int(cores * 1000) // (options.cores_per_machine * 1000)) + 1)
    incoming, outgoing = (peak * size * 8e-6 for size in (costs.input_kilobytes, costs.output_kilobytes))
    # Autoscaling follows the load of the day; without it the peak is paid for all day.
    core_hours = max(images_per_day * costs.cpu_milliseconds / 1000 / options.utilization / 3600,
                     3 * 24 * options.cores_per_machine)
    euros = core_hours * options.euros_per_core_hour
    return Fleet(
        images_per_day, peak, cores, machines, incoming, outgoing,
        max(2, -(-int((incoming + outgoing) * 1000) // int(options.balancer_gigabits * 1000)) + 1), euros,
        euros / images_per_day * 1e6)


def document(options: argparse.Namespace) -> str:
    text = (RESULTS / "peers.md").read_text()
    lines = [
        "# A fleet on paper", "",
        "Written by `Benchmarks/tables/fleet.py` from the CPU times and sizes in [peers.md](peers.md); not to be edited.", "",
        f"Job {options.job} of that page. Assumptions, each an option of the script: the peak is {options.peak:g} times the mean;",
        f"cores are used to {options.utilization:.0%}; machines of {options.cores_per_machine} cores, one of them to spare, and at",
        f"least three; {options.euros_per_core_hour:g} EUR for an hour of a core, paid as the load of the day demands it;",
        f"{options.balancer_gigabits:g} Gbit/s for a balancer, one of them to spare. Storage and traffic to the outside are not counted.", "",
        "| mix | images a day | a second, at peak | ms of CPU each | cores | machines | Gbit/s in | Gbit/s out | balancers | EUR a day | "
        "EUR a million |",
        "|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, mix in MIXES.items():
        costs = mean_costs(mix, measured(text, options.job))
        for count in options.images_per_day:
            it = fleet(count, costs, options)
            lines.append(
                f"| {name} | {count:,} | {it.peak_per_second:,.0f} | {costs.cpu_milliseconds:.1f} | {it.cores:,.1f} | {it.machines:,} | "
                f"{it.in_gigabits:,.2f} | {it.out_gigabits:,.2f} | {it.balancers} | {it.euros_per_day:,.0f} | "
                f"{it.euros_per_million:,.2f} |")
    lines += ["", "| mix | images |", "|---|---|"]
    lines += [
        f"| {name} | " + ", ".join(f"{share:.0%} {image} of {size} KB" for share, image, size in mix) + " |"
        for name, mix in MIXES.items()]
    return "\n".join(lines) + """

## What breaks first

1. **The network of the balancers.** A core takes in up to a gigabit a second of large images, so a billion images a day is more a
   matter of bandwidth than of cores. Clients that balance by themselves need no balancer: the Python and Swift clients with all
   addresses. `round_robin` of gRPC with a headless Service is for workers that are equally fast: see below.
2. **The connections.** A client that balances connects to each worker: 1,000 clients and 100 workers are 100,000 connections, 1,000
   for each worker. Beyond that, give each client a part of the workers.
3. **The cache.** Each worker caches its own results, so a fleet of N finds a repeated image in 1 of N caches. If images repeat,
   balance by a hash of the image: see `deploy/proxies`, or `affinity` of the Python client.
4. **Cold starts.** A worker serves as soon as its process runs, but a new machine takes minutes to come. Keep one machine to spare,
   scale up fast and down slowly, as `deploy/helm` does; let batch jobs wait: the client retries with the delay that workers send.
5. **The store.** A billion images a day are 12,000 requests a second to read and as many to write, which is a matter of how keys are
   spread. Packing results of a task into one file, as the Spark job does, divides the writes by a thousand.

## What the simulation changed

[simulation.md](simulation.md) simulates the fleet of the second row: 43 workers with 8 threads.

1. **Cores used to 60 % are for losses, not for queues.** With the fewest open requests as the policy, p99 is the same at 60 and 90 %,
   30 ms: that of the images themselves. But the loss of a third of the machines leaves 60 % without a trace and turns 80 % into more
   than the rest can do: p99 grows from 30 to 400 ms in seconds, and on until machines come. A fleet that loses single machines
   only can run at 85 %: 31 machines instead of 43.
2. **Balance by open requests, not in turn.** With one worker at a quarter of its speed, a neighbor's doing, p99 is 3.7 s in turn and
   30 ms by open requests. Two workers drawn by chance, as Envoy does, are as good.
3. **A thousand clients that balance by themselves do about as well as chance** (p99 30 ms at 60 %, 46 at 90), as each sees few of
   the open requests. That is no reason for a proxy at 60 %.
4. **A hash of the image halves the work where images repeat** (72 instead of 39 % from caches in the example) and needs a bound, such
   as `hash-balance-factor 125` of HAProxy, above 60 %: at 90 % p99 is 232 ms without one and 32 with it.
5. **Killed workers cost retries only**: no image is lost, and 50 attempts are made again for a worker that ten balancers use. A machine that
   vanishes delays its images by the time of detection, so keepalive should be seconds, not minutes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images-per-day", type=int, nargs="+", default=[10_000_000, 1_000_000_000])
    parser.add_argument("--job", default="T", help="a job of peers.md")
    parser.add_argument("--peak", type=float, default=2.5, help="the load at peak, in means of the day")
    parser.add_argument("--utilization", type=float, default=0.6, help="the share of a core that is used at peak")
    parser.add_argument("--cores-per-machine", type=int, default=8)
    parser.add_argument("--euros-per-core-hour", type=float, default=0.03)
    parser.add_argument("--balancer-gigabits", type=float, default=10)
    parser.add_argument("--print", action="store_true", help="print the document instead of writing it")
    options = parser.parse_args()
    text = document(options)
    if options.print:
        print(text, end="")
    else:
        (RESULTS / "fleet.md").write_text(text)


if __name__ == "__main__":
    main()
