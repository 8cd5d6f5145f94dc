// Traces of a whole server as a local OTLP collector receives them.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { startTestServer } from '../support/server-in-process.js';
import { type SentSpan, startCollector } from '../support/trace-collector.js';

const SERVER = 2;
const ERROR = 2;

const attributesOf = ({ attributes }: Pick<SentSpan, 'attributes'>): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

describe('traces', () => {
  it('contain a span per request below that of the caller, spans for its phases, and no user data', async () => {
    const collector = await startCollector();
    const server = await startTestServer({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const call = (method: string, path: string, body?: object, headers = {}) =>
      fetch(server.url + path, {
        method,
        headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
        ...(body && { body: JSON.stringify(body) }),
      }).then((reply) => reply.text());
    await call('POST', '/v1/collections', { id: 'c', dimension: 2, metric: 'dot' });
    const metadata = { a: 'marker' };
    await call('PUT', '/v1/collections/c/vectors/marker', { values: [1234.5, 1], metadata });
    const headers = {
      traceparent: `00-${TRACE}-${PARENT}-01`,
      tracestate: 'other=1',
      authorization: 'Bearer marker',
    };
    const query = { vector: [1234.5, 0], filter: { a: 'marker' }, top_k: 1 };
    await call('POST', '/v1/collections/c/query', query, headers);
    await call('GET', '/collections/none?marker=marker');
    await call('GET', '/readyz');
    await call('GET', '/collections', undefined, {
      traceparent: `00-${'1'.repeat(32)}-${PARENT}-00`,
    });
    await server.close();
    await collector.close();

    assert.deepEqual([...new Set(collector.paths)], ['POST /v1/traces application/json']);
    const resource = attributesOf(collector.resources()[0]!.resource);
    assert.equal(resource['service.name'], 'sagitta');
    assert.match(String(resource['service.version']), /^\d+\.\d+\.\d+/);

    const spans = collector.spans();
    const named = (name: string) => spans.filter((span) => span.name === name);
    const [queried] = named('POST /collections/{id}/query');
    assert.deepEqual(
      [queried?.traceId, queried?.parentSpanId, queried?.kind, queried?.traceState],
      [TRACE, PARENT, SERVER, 'other=1'],
    );
    assert.deepEqual(attributesOf(queried!), {
      'http.request.method': 'POST',
      'http.route': '/collections/{id}/query',
      'url.scheme': 'http',
      'http.response.status_code': 200,
    });
    const phases = spans.filter(({ parentSpanId }) => parentSpanId === queried!.spanId);
    assert.deepEqual(
      phases.map(({ name, traceId }) => [name, traceId]),
      ['filter', 'wait', 'search', 'assemble'].map((name) => [name, TRACE]),
    );
    let before = BigInt(queried!.startTimeUnixNano);
    for (const { startTimeUnixNano, endTimeUnixNano } of phases) {
      assert.ok(BigInt(startTimeUnixNano) >= before);
      before = BigInt(endTimeUnixNano);
    }
    assert.ok(BigInt(queried!.endTimeUnixNano) >= before);
    const distance = Date.now() * 1e6 - Number(queried!.endTimeUnixNano);
    assert.ok(Math.abs(distance) < 60e9, `${distance} ns from now`);
    assert.equal(attributesOf(phases[2]!)['sagitta.rows.scanned'], 1);

    const [written] = named('PUT /collections/{id}/vectors/{vector_id}');
    assert.match(written!.traceId, /^[\da-f]{32}$/);
    assert.equal(written!.parentSpanId, undefined);
    assert.deepEqual(
      spans.filter(({ parentSpanId }) => parentSpanId === written!.spanId).map(({ name }) => name),
      ['wait', 'commit'],
    );
    const [missing] = named('GET /collections/{id}');
    assert.equal(attributesOf(missing!)['error.type'], 'unknown_parameter');
    assert.notEqual(missing!.status.code, ERROR);
    assert.deepEqual([named('GET /readyz'), named('GET /collections')], [[], []]);
    assert.deepEqual(collector.text().match(/\S*(marker|1234\.5)\S*/g), null);
  });

  it('do not delay the shutdown when the collector hangs', async () => {
    const hanging = createServer(() => {});
    hanging.listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const { port } = hanging.address() as AddressInfo;
    const server = await startTestServer({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${port}/v1/traces`,
    });
    assert.equal((await fetch(`${server.url}/collections`)).status, 200);
    const startedAt = performance.now();
    await server.close();
    const milliseconds = performance.now() - startedAt;
    assert.ok(milliseconds < 60_000, `${milliseconds} ms`);
    hanging.closeAllConnections();
    hanging.close();
  });

  it('do not load OpenTelemetry without an endpoint', async () => {
    assert.equal(await countModules({}), 0);
    const endpoint = 'http://127.0.0.1:9';
    assert.ok((await countModules({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })) > 10);
  });
});

/** Number of OpenTelemetry modules, besides the API, that a running server has loaded. */
async function countModules(settings: Readonly<Record<string, string>>): Promise<number> {
  const program = `
    const { startTestServer } = await import(${JSON.stringify(new URL('../support/server-in-process.js', import.meta.url).href)});
    const { createRequire } = await import('node:module');
    const server = await startTestServer(${JSON.stringify(settings)});
    const { cache } = createRequire(${JSON.stringify(import.meta.url)});
    const loaded = Object.keys(cache).filter((path) => /@opentelemetry.(?!api.)/.test(path));
    await server.close();
    console.log(loaded.length);
    process.exit(0);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  assert.match(text, /^\d+\n$/);
  return Number(text);
}
