"""An OpenTelemetry collector that records its requests, in a separate process so that it can be killed.

The argument is the output file; it prints its port. Each export is one line of JSON: signal, call metadata, and the
request in base64.
"""

import argparse
import base64
import json
import threading
import time
from concurrent import futures

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

RESPONSES = {
    "trace": trace_service_pb2.ExportTraceServiceResponse, "metrics": metrics_service_pb2.ExportMetricsServiceResponse,
    "logs": logs_service_pb2.ExportLogsServiceResponse,
}


class Collector(grpc.GenericRpcHandler):
    def __init__(self, options):
        self.options = options
        self.file = open(options.file, "a")
        self.lock = threading.Lock()
        self.calls = 0

    def service(self, details):
        signal = details.method.split(".")[3]  # opentelemetry.proto.collector.SIGNAL.v1...
        assert details.method.endswith("Service/Export")
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.export(signal, request, context))

    def export(self, signal, request, context):
        with self.lock:
            self.calls += 1
            call = self.calls
        if self.options.hang:
            time.sleep(3600)
        if call <= self.options.refuse:
            self.refuse(context)
        line = {"signal": signal, "metadata": [[k, v] for k, v in context.invocation_metadata() if isinstance(v, str)],
                "request": base64.b64encode(request).decode()}
        with self.lock:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
        response = RESPONSES[signal]()
        if self.options.reject and signal == "trace":
            response.partial_success.rejected_spans = self.options.reject
            response.partial_success.error_message = "some are odd"
        return response.SerializeToString()

    def refuse(self, context):
        code = grpc.StatusCode[self.options.code]
        status = status_pb2.Status(code=code.value[0], message="not now")
        if self.options.retry_after is not None:
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromMilliseconds(self.options.retry_after)
            status.details.add().Pack(info)
        context.abort_with_status(rpc_status.to_status(status))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--hang", action="store_true", help="never answer")
    parser.add_argument("--refuse", type=int, default=0, help="refuse this many exports first")
    parser.add_argument("--code", default="UNAVAILABLE", help="with this code")
    parser.add_argument("--retry-after", type=int, help="and ask to come back after so many milliseconds")
    parser.add_argument("--reject", type=int, default=0, help="reject this many spans of each export")
    parser.add_argument("--key", help="serve TLS with this key")
    parser.add_argument("--certificate", help="and this certificate")
    options = parser.parse_args()
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers([Collector(options)])
    address = f"127.0.0.1:{options.port}"
    if options.key:
        pair = (open(options.key, "rb").read(), open(options.certificate, "rb").read())
        port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    else:
        port = server.add_insecure_port(address)
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
