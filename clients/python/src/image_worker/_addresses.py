"""The addresses of workers, as users write them."""

from __future__ import annotations

import ipaddress

#: What gRPC resolves in ways of its own.
_SCHEMES = ("ipv4:", "ipv6:", "unix:", "unix-abstract:", "vsock:", "xds:")


def check(address: str) -> None:
    """Raises `ValueError` for what is no address: gRPC would only fail to connect."""
    if not isinstance(address, str):
        raise TypeError(f"an address is a str such as '127.0.0.1:50051', not {type(address).__name__}")
    scheme, separator, rest = address.partition("://")
    if separator and not address.startswith(("dns:", *_SCHEMES)):
        host = rest.partition("/")[0] or "worker:50051"
        example = host if ":" in host else f"{host}:50051"
        hint = ", and set tls=True" if scheme == "https" else ""
        raise ValueError(f"the address is {address!r}; write it without {scheme}://, as in {example!r}{hint}")
    if address.startswith(_SCHEMES):
        return
    host, _, port = _place(address).rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"the address is {address!r}; write an IPv6 address in brackets, as in '[::1]:50051'")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"the address is {address!r}; it must be 'HOST:PORT', such as '127.0.0.1:50051', or 'unix:PATH'")


def is_local(address: str) -> bool:
    """Whether what is sent there stays on this machine."""
    host = _place(address).rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or address.startswith("unix:")


def _place(address: str) -> str:
    """The part `HOST:PORT`, without the server that is asked for the name."""
    return address.removeprefix("dns:").rpartition("/")[2] if address.startswith("dns:") else address
