// Memory for bodies under load: many clients at once, and bodies in chunks of one byte.

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../../support/waiting.js';
import { exchange, headOf, listen, pause, repliesIn } from '../wire.js';
import { bytesReserved, createBounded, JSON_TYPE, post } from './body-requests.js';

setFlagsFromString('--expose-gc');

describe('bodies in flight over HTTP', () => {
  it('take no more memory in chunks of one byte', async () => {
    const service = await createBounded(2_000_000);
    const port = await listen(service);
    const collectGarbage: () => void = runInNewContext('gc');
    const chunkCount = 200_000;
    const head = headOf('POST', '/collections/c/query', {
      ...JSON_TYPE,
      'transfer-encoding': 'chunked',
      connection: 'close',
    });
    collectGarbage();
    const before = process.memoryUsage();
    let socket: Socket | undefined;
    const text = exchange(port, (connected) => {
      socket = connected;
      const query = '{"vector":[1,2,3]}';
      connected.write(head + [...query].map((character) => `1\r\n${character}\r\n`).join(''));
      connected.write('1\r\n \r\n'.repeat(chunkCount - query.length));
    });
    await eventually('all have arrived', async () => (await bytesReserved(service)) === chunkCount);
    collectGarbage();
    const after = process.memoryUsage();
    // About 40 MB if each chunk were kept as an object.
    const grown = after.heapUsed + after.external - before.heapUsed - before.external;
    assert.ok(grown < 20_000_000, `${grown}`);
    socket?.write('0\r\n\r\n');
    assert.equal(repliesIn(await text)[0]?.status, 200);
    await service.close();
  });

  it('of 64 concurrent clients get correct replies or are refused, and are all released', async () => {
    const service = await createBounded(1_048_576);
    const port = await listen(service);
    service.hooks.beforeSearch = () => pause(2);
    const counts = { answered: 0, refused: 0 };
    const client = async (number: number) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (let i = 0; i < 8; i++) {
        // The dot product with 'a' is the first element of the query.
        const text = `{"vector":[${number + 2},0,0],"top_k":1}`.padEnd(100_000);
        const reply = await post(port, agent, text, { isChunked: (number + i) % 2 === 0 });
        if (reply.status === 200) {
          counts.answered++;
          assert.equal(reply.json.matches[0].score, number + 2);
        } else {
          counts.refused++;
          assert.deepEqual([reply.status, reply.code, reply.retryAfter], [503, 'overloaded', '1']);
        }
      }
      agent.destroy();
    };
    await Promise.all(Array.from({ length: 64 }, (_, number) => client(number)));
    assert.equal(counts.answered + counts.refused, 512);
    assert.ok(counts.answered >= 8 && counts.refused >= 1, JSON.stringify(counts));
    assert.equal(await bytesReserved(service), 0);
    await service.close();
  });
});
