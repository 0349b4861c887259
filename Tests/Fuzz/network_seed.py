"""Writes seeds/spots.network, a small network that takes bright spots for faces, and prints what TensorFlow Lite finds.

Usage: python network_seed.py, with the packages ai-edge-litert and numpy. It has every operator that the worker knows,
and weights of each kind: 16 and 32 bits, with and without zeros. The detectors of MediaPipe are not part of the repository.
"""

from pathlib import Path

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

PATH = Path(__file__).parent / "seeds" / "spots.network"
SIZE = 192
FLOAT, HALF, INTEGER = schema.TensorType.FLOAT32, schema.TensorType.FLOAT16, schema.TensorType.INT32
RELU = schema.ActivationFunctionType.RELU
random = np.random.default_rng(32)


class Network:
    def __init__(self):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs = [self.graph]

    def tensor(self, shape, kind=FLOAT, data=None, sparsity=None):
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.sparsity, tensor.buffer = list(shape), kind, sparsity, 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            tensor.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def operator(self, name, inputs, shape, options=None, kind=FLOAT):
        number = getattr(schema.BuiltinOperator, name)
        code = schema.OperatorCodeT()
        code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), 1
        if number not in [known.builtinCode for known in self.model.operatorCodes]:
            self.model.operatorCodes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = [known.builtinCode for known in self.model.operatorCodes].index(number)
        operator.inputs, operator.outputs = inputs, [self.tensor(shape, kind)]
        if options is not None:
            operator.builtinOptions = options
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
        self.graph.operators.append(operator)
        return operator.outputs[0]

    def shape(self, tensor):
        return self.graph.tensors[tensor].shape

    def half(self, values):
        """Numbers of 16 bits, which an operator makes 32 bits long."""
        values = values.astype(np.float16)
        return self.operator("DEQUANTIZE", [self.tensor(values.shape, HALF, values)], values.shape)

    def sparse(self, values):
        """Rows of numbers of 16 bits without their zeros."""
        rows = values.reshape(len(values), -1).astype(np.float16)
        sparsity = schema.SparsityParametersT()
        sparsity.traversalOrder, sparsity.dimMetadata = [0, 1, 2, 3], []
        for side in values.shape[:3]:
            dimension = schema.DimensionMetadataT()
            dimension.denseSize = side
            sparsity.dimMetadata.append(dimension)
        dimension = schema.DimensionMetadataT()
        dimension.format = 1
        dimension.arraySegmentsType = dimension.arrayIndicesType = schema.SparseIndexVector.Uint8Vector
        dimension.arraySegments, dimension.arrayIndices = schema.Uint8VectorT(), schema.Uint8VectorT()
        dimension.arraySegments.values = np.cumsum([0] + [np.count_nonzero(row) for row in rows]).astype(np.uint8)
        dimension.arrayIndices.values = np.concatenate([np.flatnonzero(row) for row in rows]).astype(np.uint8)
        sparsity.dimMetadata.append(dimension)
        stored = self.tensor(values.shape, HALF, rows[rows != 0], sparsity)
        dense = self.operator("DENSIFY", [stored], values.shape, schema.DensifyOptionsT(), HALF)
        return self.operator("DEQUANTIZE", [dense], values.shape)

    def border(self, tensor):
        _, height, width, channels = self.shape(tensor)
        sides = self.tensor([4, 2], INTEGER, np.array([0, 0, 1, 1, 1, 1, 0, 0], np.int32))
        return self.operator("PAD", [tensor, sides], [1, height + 2, width + 2, channels], schema.PadOptionsT())

    def convolution(self, tensor, weights, bias, step=1, relu=False):
        _, height, width, _ = self.shape(tensor)
        options = schema.Conv2DOptionsT()
        options.strideW = options.strideH = step
        options.padding, options.fusedActivationFunction = schema.Padding.VALID, RELU if relu else 0
        count = self.shape(weights)[0]
        size = [1, (height - self.shape(weights)[1]) // step + 1, (width - self.shape(weights)[2]) // step + 1, count]
        return self.operator("CONV_2D", [tensor, weights, self.half(np.asarray(bias))], size, options)

    def taps(self, tensor, step):
        """3x3 taps of each channel that are nearly its mean."""
        _, height, width, channels = self.shape(tensor)
        options = schema.DepthwiseConv2DOptionsT()
        options.strideW = options.strideH = step
        options.padding, options.depthMultiplier = schema.Padding.VALID, 1
        taps = 1 / 9 + random.normal(0, 0.02, [1, 3, 3, channels])
        bias = random.normal(0, 0.01, channels)
        return self.operator(
            "DEPTHWISE_CONV_2D", [self.border(tensor), self.half(taps), self.half(bias)],
            [1, height // step, width // step, channels], options)

    def sum(self, first, second, relu):
        options = schema.AddOptionsT()
        options.fusedActivationFunction = RELU if relu else 0
        return self.operator("ADD", [first, second], self.shape(first), options)

    def twice(self, tensor):
        _, height, width, channels = self.shape(tensor)
        options = schema.ResizeBilinearOptionsT()
        options.halfPixelCenters = True
        size = self.tensor([2], INTEGER, np.array([2 * height, 2 * width], np.int32))
        return self.operator("RESIZE_BILINEAR", [tensor, size], [1, 2 * height, 2 * width, channels], options)

    def grid(self, tensor):
        _, height, width, channels = self.shape(tensor)
        options = schema.DepthToSpaceOptionsT()
        options.blockSize = 2
        split = self.operator("DEPTH_TO_SPACE", [tensor], [1, 2 * height, 2 * width, channels // 4], options)
        flat = [1, 4 * height * width, channels // 4]
        return self.operator("RESHAPE", [split, self.tensor([3], INTEGER, np.array(flat, np.int32))], flat)

    def bytes(self):
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def bright(count, columns, gain=1.0):
    """Weights whose first row is the brightness of the first channel, and whose other ones are noise with zeros."""
    weights = random.normal(0, 0.1, [count, 1, 1, columns]) * (random.random([count, 1, 1, columns]) < 0.4)
    weights[0] = 0
    weights[:, 0, 0, 0] = gain
    return weights


def network():
    net = Network()
    image = net.tensor([1, SIZE, SIZE, 3])
    net.graph.inputs = [image]
    stem = np.abs(random.normal(1 / 27, 0.01, [4, 3, 3, 3]))
    x = net.convolution(net.border(image), net.half(stem), np.zeros(4), step=2, relu=True)
    deeper = net.convolution(net.taps(x, 1), net.sparse(bright(4, 4, 0.2)), random.normal(0, 0.01, 4))
    x = net.sum(x, deeper, relu=True)
    large = net.convolution(net.taps(x, 2), net.sparse(bright(8, 4)), random.normal(0, 0.01, 8), relu=True)
    small = net.convolution(net.taps(large, 2), net.sparse(bright(8, 8, 0.5)), random.normal(0, 0.01, 8), relu=True)
    x = net.sum(large, net.twice(small), relu=False)
    single = net.tensor([4, 1, 1, 8], FLOAT, (6 * bright(4, 8)).astype(np.float32))
    scores = net.convolution(x, single, np.full(4, -6.0))
    boxes = np.concatenate([bright(64, 8, 0.1)])
    sizes = np.where(np.arange(64) % 16 < 2, 0, 36.0)
    outputs = [net.taps(net.convolution(x, net.half(boxes), sizes), 2), net.taps(scores, 2)]
    net.graph.outputs = [net.grid(output) for output in outputs]
    return net.bytes()


def spots(width, height, places):
    """The image of the tests: a gray background, with bright squares."""
    pixels = np.full([height, width, 3], 60, np.uint8)
    for x, y, side in places:
        pixels[y:y + side, x:x + side] = [250, 240, 230]
    return pixels


def find(content, pixels):
    """The boxes of all places with a score above 0.4, as the reference computes them."""
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    height, width = pixels.shape[:2]
    left, top = (SIZE - width) // 2, (SIZE - height) // 2
    image = np.full([1, SIZE, SIZE, 3], -1, np.float32)
    image[0, top:top + height, left:left + width] = pixels.astype(np.float32) / 127.5 - 1
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    outputs = sorted((interpreter.get_tensor(o["index"])[0] for o in interpreter.get_output_details()), key=lambda o: o.size)
    scores = 1 / (1 + np.exp(-outputs[0][:, 0]))
    places = [((i % 48 + 0.5) * 4, (i // 48 + 0.5) * 4) for i in range(48 * 48)]
    found = [
        (score, x + box[0] - box[2] / 2 - left, y + box[1] - box[3] / 2 - top, x + box[0] + box[2] / 2 - left,
         y + box[1] + box[3] / 2 - top) for score, box, (x, y) in zip(scores, outputs[1], places, strict=True) if score > 0.4]
    faces = []
    while found:
        found.sort(key=lambda box: -box[0])
        same = [box for box in found if box is found[0] or overlap(found[0], box) > 0.3]
        found = [box for box in found if not any(box is other for other in same)]
        mean = np.average([box[1:] for box in same], axis=0, weights=[box[0] for box in same])
        edges = np.clip(mean, 0, [width, height] * 2)
        faces.append((edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1]))
    return sorted(faces, key=lambda face: -face[2] * face[3])


def overlap(a, b):
    width, height = min(a[3], b[3]) - max(a[1], b[1]), min(a[4], b[4]) - max(a[2], b[2])
    common = max(0, width) * max(0, height)
    return common / ((a[3] - a[1]) * (a[4] - a[2]) + (b[3] - b[1]) * (b[4] - b[2]) - common)


if __name__ == "__main__":
    content = network()
    PATH.write_bytes(content)
    print(f"{PATH}: {len(content)} bytes")
    for places in ([(40, 30, 36)], [(40, 30, 36), (120, 90, 30)], [(0, 0, 30), (100, 60, 44), (150, 100, 24)], []):
        faces = find(content, spots(190, 140, places))
        print(places, [tuple(round(float(edge), 3) for edge in face) for face in faces])
