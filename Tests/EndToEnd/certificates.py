"""Certificates made by OpenSSL for one test run."""

import subprocess
from pathlib import Path


def run(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A certificate authority in a directory."""

    def __init__(self, directory: Path, name: str = "authority"):
        self.directory, self.name = directory, name
        self.certificate, self.key = directory / f"{name}.pem", directory / f"{name}.key"
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
            "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.certificate)

    def issue(self, name: str, names: str = "DNS:localhost,IP:127.0.0.1", valid: tuple[str, str] | None = None):
        """Issues a certificate; `valid` is its beginning and its end, as in 20200101000000Z."""
        certificate, key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\n")
        run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", key, "-out", request)
        if valid is None:
            run("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-days", "30", "-extfile", extensions, "-out", certificate)
        else:
            self._issue_for(valid, request, extensions, certificate)
        return certificate, key

    def _issue_for(self, valid, request, extensions, certificate):
        """Issues by `openssl ca`, which alone takes dates in all versions."""
        (self.directory / "index.txt").write_text("")
        (self.directory / "serial").write_text("1000\n")
        configuration = self.directory / "ca.cnf"
        configuration.write_text(
            "[ca]\ndefault_ca=d\n[d]\n"
            f"database={self.directory}/index.txt\nserial={self.directory}/serial\nnew_certs_dir={self.directory}\n"
            "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
        run("ca", "-batch", "-config", configuration, "-in", request, "-cert", self.certificate, "-keyfile", self.key,
            "-startdate", valid[0], "-enddate", valid[1], "-extfile", extensions, "-notext", "-out", certificate)
