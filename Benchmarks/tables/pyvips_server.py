"""Serves ProcessImage of the worker's contract with a typical Python design: grpcio, and libvips in a process pool.

pyvips_server.py DESCRIPTOR-SET PROCESSES prints its port on a line. It supports the requests that load_client.py sends.
"""

import asyncio
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

CHUNK = 64 << 10
messages = {}


def prepare(descriptors: str) -> None:
    """Initializes a process of the pool."""
    import pyvips

    pyvips.cache_set_max(0)
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(Path(descriptors).read_bytes()).file:
        pool.Add(file)
    for name in ("ProcessImageRequest", "ProcessImageResponse"):
        messages[name] = GetMessageClass(pool.FindMessageTypeByName(f"imageworker.v1.{name}"))


def process(data: bytes) -> list[bytes]:
    """Returns the serialized responses to a serialized request."""
    import pyvips

    request = messages["ProcessImageRequest"].FromString(data)
    wanted = request.configuration
    image = pyvips.Image.thumbnail_buffer(request.image, wanted.max_width, height=wanted.max_height, size="down")
    result = image.jpegsave_buffer(Q=round(wanted.compression_quality * 100), keep="none", background=255)
    response = messages["ProcessImageResponse"]
    parts = [response(header={"format": "jpeg", "width": image.width, "height": image.height})]
    parts += [response(chunk=result[at : at + CHUNK]) for at in range(0, len(result), CHUNK)]
    parts.append(response(report={"output_bytes": len(result)}))
    return [part.SerializeToString() for part in parts]


async def main() -> None:
    descriptors, processes = sys.argv[1], int(sys.argv[2])
    with ProcessPoolExecutor(processes, initializer=prepare, initargs=(descriptors,)) as pool:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(pool, int) for _ in range(processes)))  # start the processes now

        async def process_image(data: bytes, context):
            for part in await loop.run_in_executor(pool, process, data):
                yield part

        server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
        handlers = {"ProcessImage": grpc.unary_stream_rpc_method_handler(process_image)}
        service = grpc.method_handlers_generic_handler("imageworker.v1.ImageWorkerService", handlers)
        server.add_generic_rpc_handlers((service,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(port, flush=True)
        await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
