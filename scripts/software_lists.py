"""List what is in the wheels, in the format CycloneDX."""

import base64
import csv
import datetime
import email
import shutil
import uuid
import zipfile

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

# The same wheel has the same number of its list.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://github.com/albert-tf/albert-tf")
# Folders of weights in the wheel.
BUNDLED = "albert_tf/bundled/"


def write_all(wheels, folder, seconds):
    """Write the list of each wheel of a folder and return their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return [write(x, folder, seconds) for x in sorted(wheels.glob("*.whl"))]


def write(wheel, folder, seconds):
    """Write the list of a wheel and return its path."""
    with zipfile.ZipFile(wheel) as archive:
        names = {x.rpartition("/")[2]: x for x in archive.namelist()}
        metadata = email.message_from_bytes(archive.read(names["METADATA"]))
        record = archive.read(names["RECORD"]).decode()
    name, version = metadata["Name"], metadata["Version"]
    root = Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        description=metadata["Summary"],
        licenses=[LicenseExpression(metadata["License-Expression"])],
        purl=PackageURL("pypi", None, name, version),
        bom_ref=wheel.name,
    )
    bom = Bom(
        metadata=BomMetaData(
            component=root,
            timestamp=datetime.datetime.fromtimestamp(seconds, datetime.UTC),
        ),
        serial_number=uuid.uuid5(NAMESPACE, record),
    )
    required = [requirement(x) for x in metadata.get_all("Requires-Dist", [])]
    for component in (*files(record), *required):
        bom.components.add(component)
    bom.register_dependency(root, [x for x in required if is_needed(x)])
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"The list of {wheel.name} is not valid CycloneDX: {error}")
    path = folder / f"{wheel.name.partition('-py3')[0]}.cdx.json"
    path.write_text(text + "\n", "utf-8")
    return path


def files(record):
    """Yield a component for each file of a wheel, and for each folder of weights."""
    models = {}
    for name, hashed, _ in csv.reader(record.splitlines()):
        if not hashed:
            # The record itself.
            continue
        content = base64.urlsafe_b64decode(hashed.partition("=")[2] + "=").hex()
        file = Component(
            type=ComponentType.FILE,
            name=name,
            bom_ref=name,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content)],
        )
        if name.startswith(BUNDLED):
            folder = name.removeprefix(BUNDLED).partition("/")[0]
            models.setdefault(folder, []).append(file)
        else:
            yield file
    for folder, members in models.items():
        yield Component(
            type=ComponentType.MACHINE_LEARNING_MODEL,
            name=folder,
            description=f"Weights, described by {BUNDLED}{folder}/README.md.",
            bom_ref=f"{BUNDLED}{folder}",
            components=members,
        )


def requirement(text):
    """Return a component for a line Requires-Dist."""
    parsed = Requirement(text)
    is_optional = "extra" in str(parsed.marker or "")
    # A wheel names the versions that it accepts, rather than one.
    properties = [Property(name="requirement", value=text)]
    return Component(
        type=ComponentType.LIBRARY,
        name=parsed.name,
        purl=PackageURL("pypi", None, parsed.name),
        scope=ComponentScope.OPTIONAL if is_optional else ComponentScope.REQUIRED,
        properties=properties,
        bom_ref=text,
    )


def is_needed(component):
    return component.scope is ComponentScope.REQUIRED
