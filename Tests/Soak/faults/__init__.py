"""The list of faults."""

from faults.clients import HalfOpen, SilentConnections, SlowReaders, SlowUploads, UnfinishedMessages, Vanishing
from faults.protocol import ControlFrames, GiantMetadata, HostileImages, ManyStreams, RapidReset, WrongBytes, WrongMessages
from faults.reload import Certificates, Configuration, RollingRestart
from faults.system import ClockJumps, CollectorGone, DescriptorLimit, DiskFull, HelpersKilled, ReadOnlyDisk

FAULTS = [
    Vanishing, HalfOpen, SilentConnections, SlowUploads, UnfinishedMessages, SlowReaders, WrongMessages, WrongBytes,
    GiantMetadata, ManyStreams, RapidReset, ControlFrames, HostileImages, HelpersKilled, DiskFull, ReadOnlyDisk,
    DescriptorLimit, CollectorGone, ClockJumps, Certificates, Configuration, RollingRestart,
]
