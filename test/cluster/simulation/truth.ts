// What the logs contain in the end: for each collection the rows after every sequence. The records are read from
// everything that the servers ever committed, including what was removed from the logs since.

import { readChain } from '../../../src/cluster/logs/chain-reader.js';
import { LOG_START } from '../../../src/cluster/logs/collection-log.js';
import type { MessageSource } from '../../../src/cluster/logs/message-stream.js';
import { decodeOperations } from '../../../src/cluster/logs/operations.js';
import type { Utf8Column, VectorBatch } from '../../../src/common/types.js';
import { logName } from '../../../src/database/layout/keys.js';
import { decodeLogRecord } from '../../../src/segment/log-record.js';
import { decodeSegment } from '../../../src/segment/segment-file.js';
import type { ServerStream } from './log-servers.js';
import type { Row } from './operations.js';

export interface TrueWrite {
  readonly sequence: number;
  readonly kind: 'write' | 'delete' | 'deleteAll';
  readonly rows: readonly { readonly id: string; readonly marker: string | null }[];
}

export class Truth {
  readonly incarnation: string;
  /** The write at sequence `i + 1`. */
  readonly writes: readonly TrueWrite[];
  readonly #states: ReadonlyMap<string, Row>[];

  private constructor(incarnation: string, writes: readonly TrueWrite[]) {
    this.incarnation = incarnation;
    this.writes = writes;
    const states: ReadonlyMap<string, Row>[] = [new Map()];
    for (const { sequence, rows, kind } of writes) {
      const state = new Map(kind === 'deleteAll' ? [] : states.at(-1));
      for (const { id, marker } of rows) {
        if (marker === null) state.delete(id);
        else state.set(id, { id, sequence, marker });
      }
      states.push(state);
    }
    this.#states = states;
  }

  get sequence(): number {
    return this.writes.length;
  }

  /** The rows after a sequence, by id. */
  at(sequence: number): ReadonlyMap<string, Row> {
    return this.#states[sequence] ?? new Map();
  }

  /** Reads a log, and reports what no log may contain. `files` are all that were ever shared, by their names. */
  static async read(
    stream: ServerStream,
    files: ReadonlyMap<string, Uint8Array>,
    fail: (what: string) => void,
  ): Promise<Truth> {
    const { name } = stream;
    const writes: TrueWrite[] = [];
    let epoch = 0;
    const end = stream.history.length;
    const options = { signal: new AbortController().signal, end };
    if (end === 0) return new Truth(name, []);
    try {
      for await (const item of readChain(sourceOf(stream), LOG_START, options)) {
        if (item.kind !== 'record') continue;
        const { record, fragments, link } = item;
        if (record.kind === 'epoch') {
          if (record.epoch <= epoch) fail(`epoch ${record.epoch} of ${name} follows ${epoch}`);
          epoch = record.epoch;
        } else if (record.epoch !== epoch) {
          fail(`a record of epoch ${record.epoch} at ${link.position} of ${name} is in ${epoch}`);
        }
        for (const { bytes } of fragments) {
          for (const operation of decodeOperations(bytes, name)) {
            if (operation.kind !== 'append' || operation.log !== logName(name)) continue;
            if (operation.sequence !== writes.length + 1) {
              fail(`sequence ${operation.sequence} of ${name} follows ${writes.length}`);
            }
            writes.push(writeOf(operation.sequence, operation.record, files));
          }
        }
      }
    } catch (error) {
      fail(`the log ${name} cannot be read: ${(error as Error).message}`);
    }
    return new Truth(name, writes);
  }
}

function writeOf(
  sequence: number,
  bytes: Uint8Array,
  files: ReadonlyMap<string, Uint8Array>,
): TrueWrite {
  // Decoding needs aligned bytes.
  const record = decodeLogRecord(new Uint8Array(bytes));
  switch (record.kind) {
    case 'write':
      return { sequence, kind: 'write', rows: rowsOf(record.batch) };
    case 'delete': {
      const rows = textsOf(record.ids, record.count).map((id) => ({ id, marker: null }));
      return { sequence, kind: 'delete', rows };
    }
    case 'deleteAll':
      return { sequence, kind: 'deleteAll', rows: [] };
    case 'file': {
      const { blob, byteLength, rowCount: count } = record.file;
      const identity = { key: blob, number: 0 };
      const segment = decodeSegment(files.get(blob)!.slice(0, byteLength), identity);
      const { ids, json: metadata } = segment.toData();
      return { sequence, kind: 'write', rows: rowsOf({ ids, metadata, count }) };
    }
  }
}

function rowsOf({ ids, metadata, count }: Pick<VectorBatch, 'ids' | 'metadata' | 'count'>) {
  const texts = textsOf(metadata, count);
  return textsOf(ids, count).map((id, i) => {
    const { marker } = JSON.parse(texts[i]!) as { marker: string };
    return { id, marker };
  });
}

function textsOf({ offsets, bytes }: Utf8Column, count: number): string[] {
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(bytes.slice(offsets[i]!, offsets[i + 1]!)).toString(),
  );
}

function sourceOf({ name, history }: ServerStream): MessageSource {
  return {
    name,
    async *read(after) {
      yield* history.slice(after);
    },
    firstPosition: async () => 1,
  };
}
