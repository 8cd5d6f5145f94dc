// Streams of vectors for tests, and a service over a real database in memory to send them to.

import { DEFAULT_LIMITS, type Limits } from '../../../src/common/limits.js';
import type { Metric } from '../../../src/common/types.js';
import {
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
} from '../../../src/formats/arrow/ipc-writer.js';
import type { AppOptions } from '../../../src/server/app.js';
import { ARROW_STREAM, NDJSON } from '../../../src/server/wire/media-types.js';
import { columnOf, openDatabase } from '../../database/harness.js';
import { type CallOptions, createService, type Reply, type Service } from '../harness.js';

export interface StreamService extends Service {
  /** Sends a body of lines or of Arrow to the collection `c`. */
  send(body: string | Uint8Array, options?: SendOptions): Promise<Reply>;
  /** All ids, in the order of arrival. */
  ids(): Promise<string[]>;
}

interface SendOptions {
  /** The query string, with the question mark. */
  readonly query?: string;
  readonly key?: string;
  readonly headers?: CallOptions['headers'];
}

/** A service with a collection `c` of dimension 3. */
export async function createStreamService(
  options: {
    metric?: Metric;
    limits?: Partial<Limits>;
    database?: Parameters<typeof openDatabase>[0];
    app?: Partial<AppOptions>;
  } = {},
): Promise<StreamService> {
  const { metric = 'dot' } = options;
  const limits = { ...DEFAULT_LIMITS, segmentRowsMax: 4_096, ...options.limits };
  const database = await openDatabase({ ...options.database, limits });
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 3, metric } },
    description: null,
    labels: {},
  });
  const service = await createService({ ...options.app, database, limits });
  return {
    ...service,
    database,
    send(body, { query = '', key, headers = {} } = {}) {
      return service.call('POST', `/collections/c/vectors${query}`, {
        body,
        headers: {
          'content-type': typeof body === 'string' ? NDJSON : ARROW_STREAM,
          ...(key === undefined ? {} : { 'idempotency-key': key }),
          ...headers,
        },
      });
    },
    async ids() {
      const { vectors } = await database.collection('c').list({ limit: 1_000 });
      return vectors.map(({ id }) => id);
    },
    async close() {
      await service.close();
      await database.close();
    },
  };
}

export interface Row {
  readonly id?: string;
  readonly values: readonly number[];
  /** JSON text. */
  readonly metadata?: string;
}

/** A record batch for each list of rows, which all have the same members. */
export function arrowStream(batches: readonly (readonly Row[])[]): Buffer {
  const [first] = batches.flat();
  const dimension = first?.values.length ?? 3;
  const fields = [
    ...(first?.id === undefined ? [] : [{ name: 'id', type: 'utf8' } as const]),
    { name: 'values', type: { vectorOf: dimension } } as const,
    ...(first?.metadata === undefined ? [] : [{ name: 'metadata', type: 'utf8' } as const]),
  ];
  const chunks = [encodeSchema(fields)];
  for (const rows of batches) {
    chunks.push(
      ...encodeRecordBatch(rows.length, [
        ...(first?.id === undefined ? [] : [{ leaf: columnOf(rows.map(({ id }) => id!)) }]),
        { vectors: Float32Array.from(rows.flatMap(({ values }) => values)) },
        ...(first?.metadata === undefined
          ? []
          : [{ leaf: columnOf(rows.map((row) => row.metadata!)) }]),
      ]),
    );
  }
  return Buffer.concat([...chunks, encodeEnd()]);
}

/** `count` rows with ids `<prefix><number>`. */
export function rowsOf(count: number, prefix = 'r', from = 0): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${from + i}`,
    values: [from + i, 1, 2],
    metadata: `{"n":${from + i}}`,
  }));
}

export function linesOf(rows: readonly Row[]): string {
  return rows
    .map(({ metadata, ...row }) => {
      const text = JSON.stringify(row);
      return metadata === undefined
        ? `${text}\n`
        : `${text.slice(0, -1)},"metadata":${metadata}}\n`;
    })
    .join('');
}
