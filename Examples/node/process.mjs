#!/usr/bin/env node
// Processes one image. Usage: process.mjs INPUT OUTPUT [PRESET]
//
// Needs Node.js 20 and no packages: a call is one HTTP/2 request, and the two fields that it needs are easily written.
// A larger client generates its messages from Protos/imageworker/v1/image_worker.proto and uses @grpc/grpc-js.
import { readFileSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';

const [input, output, preset = 'preview'] = process.argv.slice(2);
if (!output) {
  console.error('usage: process.mjs INPUT OUTPUT [PRESET]');
  process.exit(1);
}
const address = process.env.IMAGE_WORKER ?? '127.0.0.1:50051';

function fail(message) {
  console.error(message);
  process.exit(1);
}

/** A varint of protocol buffers. */
function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

/** A field of bytes or text: tag, length, bytes. */
const field = (number, bytes) => Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);

/** The fields of bytes and messages in a message, as [number, bytes]. */
function* fields(message) {
  let at = 0;
  const read = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = read();
    if ((tag & 7) === 2) {
      const length = read();
      yield [tag >> 3, message.subarray(at, at + length)];
      at += length;
    } else if ((tag & 7) === 0) read();
    else at += (tag & 7) === 1 ? 8 : 4;
  }
}

/** A message of gRPC: not compressed, its length, its bytes. */
function frame(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

let image;
try {
  image = readFileSync(input);
} catch (error) {
  fail(`${input}: ${error.message}`);
}
const client = http2.connect(`http://${address}`);
client.on('error', error => fail(`the worker at ${address} cannot be reached: ${error.message || error.code}`));
const call = client.request({
  ':method': 'POST',
  ':path': '/imageworker.v1.ImageWorkerService/ProcessImage',
  'content-type': 'application/grpc',
  te: 'trailers',
});
let status = {};
call.on('response', headers => { if ('grpc-status' in headers) status = headers; });
call.on('trailers', headers => { status = headers; });
// ProcessImageRequest: image = 1, preset = 2.
call.end(frame(Buffer.concat([field(1, image), field(2, Buffer.from(preset))])));

const received = [];
try {
  for await (const data of call) received.push(data);
} catch (error) {
  fail(`the call to ${address} was lost: ${error.message}`);
}
client.close();
if (status['grpc-status'] !== '0') {
  fail(`status ${status['grpc-status']}: ${decodeURIComponent(status['grpc-message'] ?? '')}`);
}

// ProcessImageResponse: header = 1, chunk = 2, report = 3.
const bytes = Buffer.concat(received);
const chunks = [];
for (let at = 0; at < bytes.length; ) {
  const length = bytes.readUInt32BE(at + 1);
  for (const [number, value] of fields(bytes.subarray(at + 5, at + 5 + length))) if (number === 2) chunks.push(value);
  at += 5 + length;
}
const result = Buffer.concat(chunks);
writeFileSync(output, result);
console.log(`${output}: ${result.length} bytes`);
