// Joins over HTTP: both forms are equal, also for long rows, and require access to both collections.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { watchBatches } from '../../../src/cli/writers/arrow-file.js';
import { DEFAULT_LIMITS } from '../../../src/common/limits.js';
import type { Database } from '../../../src/database/database.js';
import { Authenticator } from '../../../src/server/auth/authenticator.js';
import { batchOf, createRandom, openDatabase } from '../../database/harness.js';
import { createService, expectProblem, type Service } from '../harness.js';
import { type LogLine, recordingLogger, until } from '../secure-service.js';

const ARROW = 'application/vnd.apache.arrow.stream';
const JOIN = '/collections/a/join';

interface Line {
  readonly id: string;
  readonly matches: { id: string; score: number; distance?: number; metadata?: object }[];
}

describe('a join over HTTP', () => {
  let real: Database;
  let service: Service;
  beforeEach(async () => {
    real = await openDatabase({ limits: { segmentRowsMax: 256 } });
    await fill(real, 'a', 90);
    await fill(real, 'b', 60);
    service = await createService({ database: real });
  });
  afterEach(async () => {
    await service.close();
    await real.close();
  });

  const linesOf = async (body: object): Promise<Line[]> => {
    const { status, text } = await service.call('POST', JOIN, { body });
    assert.equal(status, 200, text);
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
  };
  const tableOf = async (body: object) => {
    const reply = await service.app.inject({
      method: 'POST',
      url: JOIN,
      headers: { accept: ARROW },
      payload: body,
    });
    assert.equal(reply.statusCode, 200, reply.body);
    return tableFromIPC(reply.rawPayload);
  };

  it('returns the same matches as NDJSON and as an Arrow stream', async () => {
    for (const body of [
      { top_k: 4, include_metadata: true },
      { with: 'b', top_k: 3, metric: 'euclidean' },
      { with: 'b', score_threshold: 0.5, metric: 'cosine', filter: { n: { $lt: 30 } } },
      { score_threshold: -1e6 },
      { with: 'b', score_threshold: 1e6 },
    ]) {
      const lines = await linesOf(body);
      const table = await tableOf(body);
      const expected = lines.flatMap(({ id, matches }) =>
        matches.map(({ id: matchId, metadata, ...scores }, i) => ({
          id,
          rank: i + 1,
          match_id: matchId,
          ...scores,
          ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
        })),
      );
      const found = [...table].map((row) => row!.toJSON());
      // Lines contain the shortest decimal that parses to the same float32.
      for (const row of expected) {
        row.score = Math.fround(row.score);
        if (row.distance !== undefined) row.distance = Math.fround(row.distance);
      }
      assert.deepEqual(found, expected, JSON.stringify(body));
      assert.deepEqual(Object.fromEntries(table.schema.metadata), {
        sequence: String(real.collection('a').record().sequence),
        with_sequence: String(real.collection('with' in body ? 'b' : 'a').record().sequence),
        row_count: String(lines.length),
      });
    }
  });

  it('tells in its Arrow batches how many rows are done, also where none has a match', async () => {
    for (const payload of [{ score_threshold: 1e6 }, { top_k: 2, filter: { n: { $lt: 30 } } }]) {
      const { headers, rawPayload } = await service.app.inject({
        method: 'POST',
        url: JOIN,
        headers: { accept: ARROW },
        payload,
      });
      const rowsDone: number[] = [];
      const watched = watchBatches(Readable.from([rawPayload]), (metadata) =>
        rowsDone.push(Number(metadata.get('rows_done'))),
      );
      assert.deepEqual(Buffer.concat(await Readable.from(watched).toArray()), rawPayload);
      assert.equal(String(rowsDone.at(-1)), headers['sagitta-row-count']);
      assert.equal(rowsDone.at(-1), (await linesOf(payload)).length);
    }
  });

  it('returns all matches of a row whose matches exceed one chunk', async () => {
    await fill(real, 'long', 150, 'm'.repeat(39_000));
    const body = { with: 'long', score_threshold: -1e6, filter: { n: { $lt: 2 } } };
    const lines = await linesOf({ ...body, include_metadata: true });
    assert.deepEqual(
      lines.map(
        ({ id, matches }) => `${id} ${matches.length} ${new Set(matches.map((m) => m.id)).size}`,
      ),
      ['v0 150 150', 'v1 150 150'],
    );
    const table = await tableOf({ ...body, include_metadata: true });
    const ranks = [...table.getChild('rank')!];
    assert.deepEqual(
      ranks,
      [...ranks.keys()].map((i) => (i % 150) + 1),
    );
    assert.ok(table.batches.length > 2);
  });

  it('requires the scope on the searched collection as well', async () => {
    const authenticator = new Authenticator({ apiKeys: real.apiKeys });
    const guarded = await createService({ database: real, authenticator });
    const ask = async (scopes: string[], body: object) => {
      const { key } = await real.apiKeys.create({ owner: 'test', scopes, expiresAt: null });
      const headers = { authorization: `Bearer ${key}` };
      return guarded.call('POST', JOIN, { body, headers });
    };
    const body = { with: 'b', top_k: 1 };
    assert.equal((await ask(['vectors:read'], body)).status, 200);
    assert.equal((await ask(['vectors:read:a', 'vectors:read:b'], body)).status, 200);
    assert.equal((await ask(['vectors:read:a'], { top_k: 1, with: 'a' })).status, 200);
    await expectProblem(ask(['vectors:read:a'], body), 404, 'collection_not_found');
    await expectProblem(
      ask(['vectors:read:a', 'vectors:write:b'], body),
      403,
      'insufficient_scope',
    );
    await expectProblem(ask(['vectors:read:b'], body), 404, 'collection_not_found');
    await guarded.close();
  });

  it('delays a principal that exceeds its rate limit instead of rejecting it', async () => {
    const limits = { ...DEFAULT_LIMITS, readRateMax: 2_000, readBurstMax: 100 };
    const slow = await createService({ database: real, limits });
    await fill(real, 'many', 600);
    const startedAt = performance.now();
    const reply = await slow.call('POST', '/collections/many/join', { body: { top_k: 1 } });
    assert.equal(reply.text.trimEnd().split('\n').length, 600);
    // The burst is a hundred. Each group waits for the debt of the previous ones; that of the last is not waited for.
    const milliseconds = performance.now() - startedAt;
    assert.ok(milliseconds > 200, `${milliseconds} ms`);
    await slow.close();
  });

  it('logs no server error when the client disconnects while the join waits for the rate limit', async () => {
    const log: LogLine[] = [];
    const limits = { ...DEFAULT_LIMITS, readRateMax: 10, readBurstMax: 50 };
    const logger = recordingLogger(log);
    const slow = await createService({ database: real, limits, logger });
    const { port } = new URL(await slow.app.listen({ port: 0, host: '127.0.0.1' }));
    await fill(real, 'many', 600);
    const socket = post(port, '/collections/many/join', '{"top_k":1}');
    // The second group waits for minutes.
    await new Promise((resolve) => socket.once('readable', resolve));
    socket.destroy();
    await until(() => real.scanStats.joinCount === 0);
    await slow.close();
    assert.deepEqual(
      log.filter(({ level }) => level === 'error'),
      [],
    );
  });

  it('is cancelled when its client disconnects', async () => {
    const url = new URL(await service.app.listen({ port: 0, host: '127.0.0.1' }));
    await fill(real, 'much', 400, 'x'.repeat(30_000));
    const body = JSON.stringify({ with: 'much', score_threshold: -1e6, include_metadata: true });
    const socket = post(url.port, JOIN, body);
    await new Promise((resolve) => socket.once('readable', resolve));
    await until(() => real.scanStats.joinCount === 1);
    socket.destroy();
    await until(() => real.scanStats.joinCount === 0);
    assert.equal(real.scanStats.joinRowsLeft, 0);
    await until(() => real.queuedQueryCount === 0);
  });
});

function post(port: string, path: string, body: string): Socket {
  const socket = connect({ port: Number(port), host: '127.0.0.1' });
  const head = `Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${body}`);
  return socket;
}

async function fill(database: Database, id: string, count: number, text = ''): Promise<void> {
  const random = createRandom(count);
  const rest = { description: null, labels: {} };
  const vectors = { '': { kind: 'dense', dimension: 4, metric: 'dot' } } as const;
  await database.createCollection({ id, vectors, ...rest });
  const rows = Array.from({ length: count }, (_, n) => ({
    id: `v${n}`,
    values: Array.from({ length: 4 }, () => random() * 2 - 1),
    metadata: JSON.stringify(text === '' ? { n } : { n, text }),
  }));
  await database.collection(id).write(batchOf(rows), { mode: 'upsert' });
}
