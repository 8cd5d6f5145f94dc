// Asks the service in this container whether it is ready, as its settings say where it listens.
// Ends with 0 when it is; otherwise with 1 and a sentence, which `docker inspect` shows.

import { get } from 'node:http';
import { get as getSecurely } from 'node:https';

const TIMEOUT_MS = 4_000;

const { SAGITTA_HOST = '127.0.0.1', SAGITTA_PORT = '8484', SAGITTA_TLS_CERT } = process.env;
// What listens on every address is asked on the loopback one.
const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[SAGITTA_HOST] ?? SAGITTA_HOST;
const scheme = SAGITTA_TLS_CERT === undefined ? 'http' : 'https';
const url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${SAGITTA_PORT}/readyz`;
try {
  const status = await ask();
  console.log(`${url} answers ${status}`);
  process.exitCode = status === 200 ? 0 : 1;
} catch (error) {
  console.log(`${url} does not answer: ${error.message}`);
  process.exitCode = 1;
}

function ask() {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    // The certificate names the service as others reach it, not the loopback address; nothing secret
    // is sent or believed here.
    const options = { signal, rejectUnauthorized: false };
    const request = (scheme === 'http' ? get : getSecurely)(url, options, (reply) => {
      reply.resume();
      resolve(reply.statusCode);
    });
    request.on('error', (error) =>
      reject(signal.aborted ? new Error(`no answer within ${TIMEOUT_MS} ms`) : error),
    );
  });
}
