"""Renders the chart without the program helm, by Helm's own library (the package helm-python-sdk).

Arguments: the folder of the chart, values as JSON, and optionally a file for the notes that `helm install` prints. Out: the objects that
`helm install grammaton CHART` would create, with sorted keys, as `kubectl` prints them. Values that the chart refuses end with exit code 1 and the reason.
"""

import json
import sys
from pathlib import Path

import helm_python as helm
import yaml

with helm.Chart.load(sys.argv[1]) as chart:
    try:
        rendered = chart.render(json.loads(sys.argv[2]), name="grammaton", namespace="default")
    except helm.HelmError as error:
        sys.exit("refused: " + " ".join(str(error).split()))
if len(sys.argv) > 3:
    Path(sys.argv[3]).write_text("".join(text for path, text in rendered.items() if path.endswith("NOTES.txt")))
files = [text for path, text in sorted(rendered.items()) if path.endswith(".yaml")]
objects = [each for text in files for each in yaml.safe_load_all(text) if each]
print(yaml.safe_dump_all(objects), end="")
