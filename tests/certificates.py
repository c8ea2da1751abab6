"""A certificate authority for one test: made by openssl, trusted by it alone, and thrown away with its folder."""

import ssl
import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """Signs certificates for servers of a test. `file` is what a client trusts that trusts it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file = folder / "authority.pem"
        named = ("-subj", "/CN=everytick test", "-addext", "basicConstraints=critical,CA:TRUE", "-days", "2")
        self._openssl("req", "-x509", *_KEY, *named, "-keyout", "authority.key", "-out", "authority.pem")

    def context(self, host: str) -> ssl.SSLContext:
        """Return what a server needs to answer as this host, such as `IP:127.0.0.1` or `DNS:example.org`."""
        (self._folder / "server.cnf").write_text(f"subjectAltName={host}\n")
        self._openssl("req", "-new", *_KEY, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
        signed = ("-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-extfile", "server.cnf")
        self._openssl("x509", "-req", "-in", "server.csr", *signed, "-days", "2", "-out", "server.pem")
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.load_cert_chain(self._folder / "server.pem", self._folder / "server.key")
        return made

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)
