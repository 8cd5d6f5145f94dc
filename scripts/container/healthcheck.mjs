// Health check of the container: requests /readyz from the address in the settings. Exits with 0 if the
// server is ready, otherwise with 1 and a message for `docker inspect`.

import { get } from 'node:http';
import { get as getSecurely } from 'node:https';

const TIMEOUT_MS = 4_000;

const { SAGITTA_HOST = '127.0.0.1', SAGITTA_PORT = '', SAGITTA_TLS_CERT } = process.env;
// Kubernetes sets SAGITTA_PORT=tcp://… for a Service named sagitta. The server ignores such a value, too.
const port = /^\d+$/.test(SAGITTA_PORT) ? SAGITTA_PORT : '8484';
// A server that listens on all addresses is reachable on the loopback address.
const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[SAGITTA_HOST] ?? SAGITTA_HOST;
const scheme = SAGITTA_TLS_CERT === undefined ? 'http' : 'https';
const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`;
try {
  const status = await requestStatus();
  console.log(`${url} returned status ${status}`);
  process.exitCode = status === 200 ? 0 : 1;
} catch (error) {
  console.log(`${url} is not reachable: ${error.message}`);
  process.exitCode = 1;
}

function requestStatus() {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    // The certificate is for the public name, not the loopback address; nothing secret is sent.
    const options = { signal, rejectUnauthorized: false };
    const request = (scheme === 'http' ? get : getSecurely)(url, options, (reply) => {
      reply.resume();
      resolve(reply.statusCode);
    });
    request.on('error', (error) =>
      reject(signal.aborted ? new Error(`no reply within ${TIMEOUT_MS} ms`) : error),
    );
  });
}
