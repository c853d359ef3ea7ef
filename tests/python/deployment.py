"""A Flower deployment on loopback for tests: one SuperLink and several SuperNodes as processes, with TLS and node authentication."""
from __future__ import annotations

import datetime
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Optional

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


def _certificate(subject, key, issuer, issuer_key, names, is_ca):
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
               .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
               .not_valid_after(now + datetime.timedelta(days=1))
               .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
               .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def make_certificates(folder: Path) -> None:
    """ca.crt, server.pem and server.key for loopback."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _certificate(_name("test"), ca_key, _name("test"), ca_key, None, True)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = _certificate(_name("localhost"), key, _name("test"), ca_key, names, False)
    (folder / "ca.crt").write_bytes(ca.public_bytes(PEM))
    (folder / "server.pem").write_bytes(server.public_bytes(PEM))
    (folder / "server.key").write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8,
                                                          serialization.NoEncryption()))


def make_keys(folder: Path, name: str) -> Path:
    """A node's key in `name`, its public key in `name`.pub."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / name).write_bytes(private)
    (folder / f"{name}.pub").write_bytes(public)
    return folder / name


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Deployment:
    """The processes live as long as the `with` block; their output is in folder/*.log."""

    def __init__(self, folder: Path, app: Path, nodes: int, root: Path) -> None:
        self.folder, self.nodes = folder, nodes
        self.app = Path(shutil.copytree(app, folder / "app"))  # flwr may write to it
        self.bin = Path(sys.executable).parent
        self.port = free_port()
        self.processes: list[subprocess.Popen] = []
        path = os.pathsep.join([str(root / "python")] if os.environ.get("REEF_INSTALLED") != "1" else [])
        self.environment = dict(os.environ, FLWR_HOME=str(folder / "flwr"), FLWR_TELEMETRY_ENABLED="0", PYTHONPATH=path,
                                REEF_DATA=str(root / "data"), PATH=f"{self.bin}{os.pathsep}{os.environ['PATH']}",
                                OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NO_COLOR="1")
        (folder / "flwr").mkdir()
        (folder / "flwr" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n'
            f'root-certificates = "{folder}/ca.crt"\n')

    def _start(self, name: str, *command: str) -> None:
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen([str(self.bin / command[0]), *command[1:]], env=self.environment,
                                                   stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                                   cwd=self.folder))

    def flwr(self, *command: str) -> None:
        """The command `flwr`, in this process: loading it anew for every node would take most of the test's time."""
        from flwr.cli.app import app

        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            app(list(command), standalone_mode=False)
        except BaseException as error:
            raise RuntimeError(f"flwr {' '.join(command)}: {error!r}{self.logs()}") from error
        finally:
            os.environ.clear()
            os.environ.update(before)

    def logs(self) -> str:
        return "".join(f"\n--- {log.name}\n{log.read_text(errors='replace')[-3000:]}"
                       for log in sorted(self.folder.glob("*.log")))

    def __enter__(self) -> Deployment:
        folder = self.folder
        make_certificates(folder)
        tls = [f"--ssl-ca-certfile={folder}/ca.crt", f"--ssl-certfile={folder}/server.pem", f"--ssl-keyfile={folder}/server.key"]
        try:
            self._start("superlink", "flower-superlink", *tls, "--enable-supernode-auth", f"--port={self.port}",
                        "--disable-runtime-dependency-installation")
            self._wait_for_port()
            for number in range(self.nodes):
                key = make_keys(folder, f"node{number}")
                self.flwr("supernode", "register", f"{key}.pub", "here")
                self._start(f"node{number}", "flower-supernode", f"--root-certificates={folder}/ca.crt",
                            f"--superlink=127.0.0.1:{self.port}", f"--port={free_port()}",
                            f"--auth-supernode-private-key={key}", *tls,
                            f"--node-config=partition-id={number} num-partitions={self.nodes}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait_for_port(self) -> None:
        for _ in range(600):
            if self.processes[0].poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"the SuperLink did not come up: {self.logs()}")

    def run(self, timeout: float = 300, **config: object) -> dict:
        """Runs the app and returns what it wrote to its file of results."""
        results = self.folder / f"results{len(list(self.folder.glob('results*')))}.json"
        pairs = " ".join(f"{name.replace('_', '-')}={json.dumps(value)}" for name, value in config.items())
        self.flwr("run", str(self.app), "here", "--run-config", f'{pairs} results="{results}"')
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = self._read(results)
            if found is not None:
                return found
            time.sleep(0.2)
        raise RuntimeError(f"no results after {timeout} s: {self.logs()}")

    @staticmethod
    def _read(path: Path) -> Optional[dict]:
        try:
            found: dict = json.loads(path.read_text())
            return found
        except (OSError, ValueError):  # not there, or not all of it
            return None

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
