"""Sends images to a worker with Triton's client, and prints what their tensors are: triton.py MODEL IMAGE...

The model is a preset with a `tensor` block, of a worker that runs with `serve --kserve --presets FILE`.
"""

import os
import sys

import numpy
import tritonclient.grpc as triton

ADDRESS = os.environ.get("IMAGE_WORKER", "127.0.0.1:50051")


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    model, paths = sys.argv[1], sys.argv[2:]
    client = triton.InferenceServerClient(ADDRESS)
    metadata = client.get_model_metadata(model)
    for tensor in [*metadata.inputs, *metadata.outputs]:
        print(tensor.name, tensor.datatype, list(tensor.shape))
    images = numpy.array([open(path, "rb").read() for path in paths], dtype=numpy.object_)
    image = triton.InferInput("image", list(images.shape), "BYTES")
    image.set_data_from_numpy(images)
    # With the output "error", images that fail have a row of zeros instead of failing the call.
    result = client.infer(model, [image], outputs=[triton.InferRequestedOutput(name) for name in ("tensor", "error")])
    for path, row, error in zip(paths, result.as_numpy("tensor"), result.as_numpy("error")):
        print(path, error.decode() or f"{row.shape} {row.dtype}, mean {row.mean(dtype=float):.3f}")


if __name__ == "__main__":
    main()
