"""Renders the chart without the program helm, by Helm's own library (the package helm-python-sdk).

Arguments: the folder of the chart, and values as JSON. Out: the objects that `helm install grammaton CHART` would create, with sorted keys, as
`kubectl kustomize` prints them. Values that the chart refuses end with exit code 1 and the reason.
"""

import json
import sys

import helm_python as helm
import yaml

with helm.Chart.load(sys.argv[1]) as chart:
    values = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    try:
        rendered = chart.render(values, name="grammaton", namespace="default")
    except helm.HelmError as error:
        sys.exit("refused: " + " ".join(str(error).split()))
files = [text for path, text in sorted(rendered.items()) if path.endswith(".yaml")]
objects = [each for text in files for each in yaml.safe_load_all(text) if each]
print(yaml.safe_dump_all(objects), end="")
