"""Copy the scripts that pages use from their npm packages into the tree, with licences and digests.

    make vendor

Each package is fetched by `npm pack` in the version that stands here, and `vendor.json` names what was
copied. Pages load nothing from another host, and a test compares the files with their digests.
"""

import hashlib
import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "farm" / "web" / "static" / "vendor"
MANIFEST = FOLDER / "vendor.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An npm package, and its files by their names in the tree."""

    name: str
    version: str
    files: dict[str, str]


PACKAGES = (
    Package(
        name="htmx.org",
        version="2.0.11",
        files={"htmx.min.js": "dist/htmx.min.js", "htmx.LICENSE": "LICENSE"},
    ),
    Package(
        name="uplot",
        version="1.6.32",
        files={
            "uPlot.iife.min.js": "dist/uPlot.iife.min.js",
            "uPlot.min.css": "dist/uPlot.min.css",
            "uPlot.LICENSE": "LICENSE",
        },
    ),
)


def main() -> None:
    """Fetch all packages, and write their files and the manifest."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    manifest = []
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["npm", "pack", "--silent", f"{package.name}@{package.version}"],
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            (archive,) = Path(folder).glob("*.tgz")
            with tarfile.open(archive) as packed:
                for target, source in package.files.items():
                    member = packed.extractfile(f"package/{source}")
                    if member is None:
                        raise SystemExit(f"{package.name} {package.version} has no file {source}")
                    content = member.read()
                    (FOLDER / target).write_bytes(content)
                    manifest.append(
                        {
                            "file": target,
                            "package": package.name,
                            "version": package.version,
                            "source": source,
                            "sha256": hashlib.sha256(content).hexdigest(),
                        }
                    )
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main()
