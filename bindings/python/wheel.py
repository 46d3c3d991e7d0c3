"""Packs the library that cargo has built into a wheel, as maturin would: for the test suite, which has built everything that
it stands on, and would wait for that to be built anew with maturin's choice of features.

    python bindings/python/wheel.py LIBRARY FOLDER
"""

import base64
import hashlib
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE / "python"


def pack(library: Path, folder: Path) -> Path:
    """Writes the wheel into the folder."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((HERE.parents[1] / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"cp311-abi3-{platform}"
    name = f"fuseline-{version}"
    sources = sorted(path for path in (PACKAGE / "fuseline").iterdir() if path.suffix in (".py", ".pyi", ".typed"))
    sources.append(PACKAGE / "fuseline" / "py.typed")
    files = {str(path.relative_to(PACKAGE)): path.read_bytes() for path in sources}
    files["fuseline/_native.abi3.so"] = library.read_bytes()
    head = f"Metadata-Version: 2.4\nName: fuseline\nVersion: {version}\nRequires-Python: {project['requires-python']}\n"
    info = f"{name}.dist-info"
    files[f"{info}/METADATA"] = head.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: fuseline\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    print(pack(Path(sys.argv[1]), Path(sys.argv[2])))
