// Asks the service in this container whether it is ready, as its settings say where it listens.
// Ends with 0 when it is; otherwise with 1 and a sentence, which `docker inspect` shows.

const TIMEOUT_MS = 4_000;

const { SAGITTA_HOST = '127.0.0.1', SAGITTA_PORT = '8484' } = process.env;
// What listens on every address is asked on the loopback one.
const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[SAGITTA_HOST] ?? SAGITTA_HOST;
const url = `http://${host.includes(':') ? `[${host}]` : host}:${SAGITTA_PORT}/readyz`;
try {
  const reply = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  console.log(`${url} answers ${reply.status}`);
  process.exitCode = reply.ok ? 0 : 1;
} catch (error) {
  console.log(`${url} does not answer: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
