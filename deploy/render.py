#!/usr/bin/env python3
"""Writes kubernetes.yaml, the manifests of the Helm chart with its defaults. With --check it changes nothing, and fails when
what is committed differs. Run it as: Tests/EndToEnd/python.sh deploy/render.py
"""

import sys
from pathlib import Path

import helm_python

FOLDER = Path(__file__).parent
CHART = FOLDER / "helm/image-worker"
HEADER = """\
# The manifests of helm/image-worker with its defaults, written by render.py. Apply them with `kubectl apply -f`.
"""


def render(values: dict | None = None) -> str:
    """Returns the manifests for some values, as `helm template image-worker` prints them."""
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values or {}, name="image-worker", namespace="default")
    texts = [text.strip() for name, text in sorted(files.items()) if name.endswith(".yaml") and text.strip()]
    return HEADER + "".join(f"---\n{text}\n" for text in texts)


def main() -> int:
    target = FOLDER / "kubernetes.yaml"
    if "--check" in sys.argv:
        if target.read_text() == render():
            return 0
        print("error: run 'Tests/EndToEnd/python.sh deploy/render.py' and commit the result", file=sys.stderr)
        return 1
    target.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
