"""A compiled folder on disk: what `bolec compile` writes and a serving process loads.

    DIR/manifest.json               what was compiled, how to launch it, checksums of the rest
    DIR/kernels.py                  the emitted module (kernels.sm_80.py, ... where they differ)
    DIR/kernels/NAME.TARGET.cubin   a binary (hsaco for AMD)
    DIR/kernels/NAME.TARGET.json    its registers, spills, size and launch, for reading

A folder appears whole or not at all: it is written beside its place and renamed. Reading trusts
nothing: every file's checksum, the manifest's own included, is compared before anything is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from boleir.codegen.artifact import Artifact, Variant, dump
from boleir.codegen.launch_spec import LaunchSpec
from boleir.errors import BoleirError, CacheError

FORMAT = 1
"""Raised whenever a reader of the previous number would misunderstand a folder."""

MANIFEST = "manifest.json"
_BEGINNING = b'{\n "checksum": "'
"""Of every manifest, as `dump` sorts keys."""


class ArtifactError(CacheError):
    """A compiled folder that cannot be used, or written; `file` is the one at fault."""

    def __init__(self, file: Path, reason: str, *, mend: str | None = None) -> None:
        super().__init__(f"{file}: {reason}", mend=mend)
        self.file = file


def write(artifact: Artifact, folder: str | Path) -> Path:
    """Write `artifact` to `folder`, whole or not at all, replacing an earlier compiled folder.

    Raises `ArtifactError` when something else stands there or the disk refuses.
    """
    place = Path(folder).absolute()
    check_replaceable(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise ArtifactError(place, f"cannot be written ({error.strerror})") from error
    try:
        fresh.chmod(0o777 & ~_umask())
        for name, content in artifact.files.items():
            _write_file(fresh / name, content)
        _write_file(fresh / MANIFEST, dump(_manifest(artifact)))
        _swap(fresh, place)
    except OSError as error:
        raise ArtifactError(place, f"cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return place


def read(folder: str | Path, target: str | None = None) -> Artifact:
    """Read a compiled folder, with the files of `target` only where one is given.

    Raises `ArtifactError` naming the file that is missing, truncated, altered or of another format.
    """
    place = Path(folder)
    manifest = _read_manifest(place / MANIFEST)
    artifact = _parse_manifest(place / MANIFEST, manifest)
    checksums = manifest["files"]
    if target is not None:
        chosen = artifact.variant(target)
        wanted = [chosen.source, *chosen.binaries.values()]
    else:
        wanted = list(checksums)
    files = {name: _read_file(place, name, checksums.get(name)) for name in wanted}
    return replace(artifact, files=files)


def _manifest(artifact: Artifact) -> dict[str, Any]:
    """The manifest as plain values, its own checksum included."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "name": artifact.name,
        "recurrence": artifact.recurrence,
        "closed_form": artifact.closed_form,
        "shapes": dict(artifact.shapes),
        "dtypes": dict(artifact.dtypes),
        "toolchain": dict(artifact.toolchain),
        "extra": dict(artifact.extra),
        "variants": [
            {
                "target": variant.target,
                "source": variant.source,
                "schedule": dict(variant.schedule),
                "launches": [launch.to_json() for launch in variant.launches],
                "binaries": dict(variant.binaries),
                "report": {kernel: dict(facts) for kernel, facts in variant.report.items()},
            }
            for variant in artifact.variants
        ],
        "files": {name: _digest(content) for name, content in artifact.files.items()},
    }
    return content | {"checksum": _digest(dump(content))}


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ArtifactError(path, "missing: not a compiled folder") from None
    except OSError as error:
        raise ArtifactError(path, f"cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError):
        raise ArtifactError(path, "not JSON: truncated or altered") from None
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise ArtifactError(path, "not a manifest of a compiled folder")
    if content["format"] != FORMAT:
        raise ArtifactError(
            path,
            f"written in format {content['format']}, this version reads format {FORMAT}",
            mend="compile again",
        )
    checksum = content.pop("checksum", None)
    if checksum != _digest(dump(content)):
        raise ArtifactError(path, "altered: its checksum does not fit", mend="compile again")
    return content


def _parse_manifest(path: Path, content: dict[str, Any]) -> Artifact:
    """Typed values from a manifest whose checksum fits."""
    try:
        variants = tuple(
            Variant(
                target=variant["target"],
                source=variant["source"],
                schedule=variant["schedule"],
                launches=tuple(LaunchSpec.from_json(launch) for launch in variant["launches"]),
                binaries=variant["binaries"],
                report=variant["report"],
            )
            for variant in content["variants"]
        )
        return Artifact(
            name=content["name"],
            recurrence=content["recurrence"],
            closed_form=content["closed_form"],
            shapes=content["shapes"],
            dtypes=content["dtypes"],
            variants=variants,
            toolchain=content["toolchain"],
            extra=content["extra"],
        )
    except (KeyError, TypeError, ValueError, BoleirError) as error:
        raise ArtifactError(path, f"not understood ({type(error).__name__}: {error})") from error


def _read_file(place: Path, name: str, checksum: str | None) -> bytes:
    path = place / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ArtifactError(place / MANIFEST, f"names a file outside the folder: {name!r}")
    if checksum is None:
        raise ArtifactError(place / MANIFEST, f"has no checksum for {name}")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ArtifactError(path, "missing", mend="compile again") from None
    except OSError as error:
        raise ArtifactError(path, f"cannot be read ({error.strerror})") from error
    if _digest(content) != checksum:
        raise ArtifactError(path, "truncated or altered", mend="compile again")
    return content


def check_replaceable(place: Path) -> None:
    """Refuse a place that cannot be written, or holds something other than a compiled folder.

    Raises `ArtifactError`.
    """
    whole = place.absolute()
    above = next((folder for folder in whole.parents if folder.exists()), whole)
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ArtifactError(place, f"cannot be written: {above} is no folder to write to")
    if not place.exists():
        return
    if not place.is_dir():
        raise ArtifactError(place, "is not a folder")
    if any(place.iterdir()) and not _is_ours(place / MANIFEST):
        raise ArtifactError(
            place, "holds other files and is not replaced", mend="name an empty or a new folder"
        )


def _is_ours(manifest: Path) -> bool:
    """Whether a manifest is one of ours, damaged or not: other programs write such files too."""
    if not manifest.is_file():
        return False
    with manifest.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def _swap(fresh: Path, place: Path) -> None:
    """Put `fresh` where `place` is. Between the two renames nothing stands there."""
    if not place.exists():
        fresh.rename(place)
        return
    old = place.with_name(f"{fresh.name}-old")
    place.rename(old)
    try:
        fresh.rename(place)
    except OSError:
        old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
