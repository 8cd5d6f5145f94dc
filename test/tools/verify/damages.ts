// Kinds of damage to a data directory: how each is inflicted on the sample of verify.test.ts, and the expected finding.

import { keys, segmentBlobName } from '../../../src/database/layout/keys.js';
import {
  type CollectionDefinition,
  decodeJson,
  encodeJson,
  type Manifest,
} from '../../../src/database/layout/manifest.js';
import { encodeLogRecord } from '../../../src/segment/log-record.js';
import type { SegmentData } from '../../../src/segment/segment-data.js';
import { decodeSegment } from '../../../src/segment/segment-file.js';
import { encodeDeletions } from '../../../src/segment/stored-tables.js';
import type { DiskStore } from '../../../src/storage/store.js';
import { batchOf } from '../../database/harness.js';
import { encodeSegment } from '../../segment/sample.js';

const text = (value: string) => new Uint8Array(Buffer.from(value));

/** A store with the sample, and ways to change it that the service does not offer. */
export class DamagedData {
  readonly store: DiskStore;
  readonly definition: CollectionDefinition;
  readonly manifest: Manifest;

  constructor(store: DiskStore) {
    this.store = store;
    this.definition = decodeJson(store.get(keys.collection('c'))!, 'c');
    this.manifest = decodeJson(store.get(keys.manifest(this.definition.incarnation))!, 'c');
  }

  segmentName(number: number): string {
    return segmentBlobName(this.definition.incarnation, number);
  }

  putManifest(change: Partial<Manifest>): Promise<void> {
    const key = keys.manifest(this.definition.incarnation);
    const value = encodeJson({ ...this.manifest, ...change });
    return this.store.commit([{ kind: 'put', key, value }]);
  }

  putDefinition(change: object): Promise<void> {
    const value = encodeJson({ ...this.definition, ...change });
    return this.store.commit([{ kind: 'put', key: keys.collection('c'), value }]);
  }

  putUnnamed(change: object): Promise<void> {
    const { vectors } = this.definition;
    return this.putDefinition({ vectors: { ...vectors, '': { ...vectors[''], ...change } } });
  }

  /** Changes rows of a segment in ways that the service never would, with a matching checksum. */
  async rewriteSegment(index: number, change: (data: SegmentData) => void): Promise<void> {
    const entry = this.manifest.segments[index]!;
    const name = this.segmentName(entry.number);
    const bytes = (await this.store.readBlob(name))!;
    const data = decodeSegment(bytes, { key: 'k', number: entry.number }).toData();
    change(data);
    const encoded = encodeSegment(data);
    await this.store.writeBlob(name, [encoded.bytes]);
    const segments = this.manifest.segments.with(index, {
      ...entry,
      byteLength: encoded.bytes.byteLength,
      checksum: encoded.checksum,
    });
    await this.putManifest({ segments });
  }

  putDeletions(rows: number[], sequences: number[]): Promise<void> {
    const key = keys.deletions(this.definition.incarnation, 1, 9_999);
    const deletions = { rows: Uint32Array.from(rows), sequences: Float64Array.from(sequences) };
    return this.store.commit([{ kind: 'put', key, value: encodeDeletions(deletions) }]);
  }

  putAlias(entry: { formatVersion: number; name: string; incarnation: string }): Promise<void> {
    return this.store.commit([{ kind: 'put', key: keys.alias('live'), value: encodeJson(entry) }]);
  }

  appendRecord(sequence: number, record: Uint8Array): Promise<void> {
    const log = this.definition.incarnation;
    return this.store.commit([{ kind: 'append', log, sequence, record }]);
  }

  appendWrite(batch: ReturnType<typeof batchOf>): Promise<void> {
    return this.appendRecord(100, encodeLogRecord({ kind: 'write', timeMs: 1, batch }));
  }
}

/** For each kind, how to inflict the damage, and the expected finding. */
export const DAMAGES: Readonly<Record<string, [(data: DamagedData) => Promise<unknown>, RegExp]>> =
  {
    'a definition that is not JSON': [
      (data) => data.store.commit([{ kind: 'put', key: keys.collection('c'), value: text('{') }]),
      /^error: collection "c", catalogue: the entry is not valid JSON/,
    ],
    'a newer definition': [
      (data) => data.putDefinition({ formatVersion: 2 }),
      /^error: collection "c", catalogue: .*format version 2; this version reads 1\. It was written by another/,
    ],
    'a definition with the id of another': [
      (data) => data.putDefinition({ id: 'x' }),
      /^error: collection "c", catalogue: has the id "x"/,
    ],
    'an unknown metric': [
      (data) => data.putUnnamed({ metric: 'manhattan' }),
      /^error: collection "c", catalogue: metric of the unnamed vector is "manhattan"/,
    ],
    'an invalid dimension': [
      (data) => data.putUnnamed({ dimension: 0 }),
      /^error: collection "c", catalogue: the unnamed vector is \{"kind":"dense","dimension":0,/,
    ],
    'another dimension': [
      (data) => data.putUnnamed({ dimension: 4 }),
      /1\.arrow: values are dense float32 of 3 dimensions, expected dense float32 of 4 dimensions/,
    ],
    'two collections that share data': [
      (data) =>
        data.store.commit([
          {
            kind: 'put',
            key: keys.collection('d'),
            value: encodeJson({ ...data.definition, id: 'd' }),
          },
        ]),
      /^error: collection "d", catalogue: shares its data with collection "c"/,
    ],
    'a newer manifest': [
      (data) => data.putManifest({ formatVersion: 2 }),
      /^error: collection "c", manifest: .*format version 2; this version reads 1\. It was written by another/,
    ],
    'a manifest without segments': [
      (data) => data.putManifest({ segments: undefined as never }),
      /^error: collection "c", manifest: segments are missing/,
    ],
    'a manifest without a checkpoint': [
      (data) => data.putManifest({ checkpointSequence: -1 }),
      /^error: collection "c", manifest: checkpointSequence is -1/,
    ],
    'a segment that is listed twice': [
      (data) =>
        data.putManifest({ segments: [...data.manifest.segments, data.manifest.segments.at(-1)!] }),
      /^error: collection "c", manifest: lists segment \d+ twice/,
    ],
    'a segment number beyond the next one': [
      (data) => data.putManifest({ nextSegmentNumber: 1 }),
      /^error: collection "c", manifest: lists segment 1, but the next segment number is 1/,
    ],
    'a horizon after the checkpoint': [
      (data) => data.putManifest({ horizonSequence: 999 }),
      /^error: collection "c", manifest: horizonSequence 999 is after the checkpoint/,
    ],
    'a missing file': [
      (data) => data.store.removeBlob(data.segmentName(1)),
      /^error: collection "c", segments\/.*\/1\.arrow: the file is missing/,
    ],
    'a truncated file': [
      async (data) => {
        const bytes = (await data.store.readBlob(data.segmentName(2)))!;
        await data.store.writeBlob(data.segmentName(2), [bytes.subarray(0, -64)]);
      },
      /\/2\.arrow: has \d+ bytes, expected \d+/,
    ],
    'a file with other content': [
      async (data) => {
        const bytes = (await data.store.readBlob(data.segmentName(2)))!;
        await data.store.writeBlob(data.segmentName(2), [new Uint8Array(bytes.byteLength)]);
      },
      /\/2\.arrow: expected crc32:\w+; found the checksum crc32/,
    ],
    'a wrong row count': [
      (data) =>
        data.putManifest({
          segments: data.manifest.segments.with(0, { ...data.manifest.segments[0]!, rowCount: 63 }),
        }),
      /\/1\.arrow: has 64 rows; the manifest says 63/,
    ],
    'segments in the wrong order': [
      (data) => data.putManifest({ segments: data.manifest.segments.toReversed() }),
      /first sequence \d+ is before \d+, the last sequence of the previous file/,
    ],
    'a value that is not a number': [
      (data) =>
        data.rewriteSegment(1, ({ vectors: [unnamed] }) => {
          unnamed!.values[7] = Number.NaN;
        }),
      /\/2\.arrow: values of row 2, value 1 is NaN/,
    ],
    'a zero vector under cosine': [
      (data) =>
        data.rewriteSegment(1, ({ vectors: [unnamed] }) => {
          unnamed!.values.fill(0, 6, 9);
        }),
      /\/2\.arrow: values of row 2, all values are zero, which the cosine metric does not allow/,
    ],
    'metadata that is not JSON': [
      (data) =>
        data.rewriteSegment(1, ({ json }) => {
          json.bytes[json.offsets[5]!] = 0x5b;
        }),
      /\/2\.arrow: row 5: metadata is not a JSON object/,
    ],
    'an id that is not UTF-8': [
      (data) =>
        data.rewriteSegment(1, ({ ids }) => {
          ids.bytes[ids.offsets[5]!] = 0xff;
        }),
      /\/2\.arrow: row 5: id is not UTF-8/,
    ],
    'an id that is live twice': [
      (data) =>
        data.rewriteSegment(2, ({ ids }) => {
          ids.bytes.set(text('v110'), ids.offsets[1]!);
        }),
      /\/3\.arrow: row 1: id "v110" is also live in row \d+ of segment \d+/,
    ],
    'a deletion of a row that does not exist': [
      (data) => data.putDeletions([64], [3]),
      /^error: collection "c", deletions of segment 1 through 9999: row 64 does not exist; the segment has 64 rows/,
    ],
    'a deletion before the row': [
      (data) => data.putDeletions([2], [1]),
      /deletions of segment 1 .*: row 2, inserted at 1, is deleted at 1/,
    ],
    'a deletion after the checkpoint': [
      (data) => data.putDeletions([0], [999]),
      /deletions of segment 1 .*: row 0, inserted at 1, is deleted at 999; the checkpoint is/,
    ],
    'a row that is deleted twice': [
      (data) => data.putDeletions([35, 35], [3, 4]),
      /deletions of segment 1 .*: row 35 is deleted at \d, and also at \d/,
    ],
    'deletions that cannot be read': [
      (data) =>
        data.store.commit([
          {
            kind: 'put',
            key: keys.deletions(data.definition.incarnation, 1, 5),
            value: text('nothing'),
          },
        ]),
      /deletions of segment 1 through 5: expected SGT1; found the ending/,
    ],
    'a wrong count of partial rows': [
      (data) => data.putManifest({ partialRowCount: 1 }),
      /^error: collection "c": the segment files hold \d+ rows of write \d+; the manifest says 1/,
    ],
    'a log that lacks a record': [
      (data) => data.appendRecord(100, encodeLogRecord({ kind: 'deleteAll', timeMs: 1 })),
      /^error: collection "c", log: records are missing: sequence \d+ is followed by 100/,
    ],
    'a log that was trimmed too far': [
      (data) =>
        data.store.commit([
          {
            kind: 'trim',
            log: data.definition.incarnation,
            throughSequence: data.manifest.checkpointSequence + 1,
          },
        ]),
      /^error: collection "c", log: is trimmed through \d+, but the segment files end at \d+/,
    ],
    'a dropped log': [
      (data) => data.store.commit([{ kind: 'dropLog', log: data.definition.incarnation }]),
      /^error: collection "c", log: write \d+ is missing, but the segment files hold \d+ of its rows/,
    ],
    'a record that cannot be read': [
      (data) => data.appendRecord(100, text('nothing')),
      /log: record 100: expected SGT1; found the ending/,
    ],
    'a record of another dimension': [
      (data) => data.appendWrite(batchOf([{ id: 'a', values: [1, 2], metadata: '{}' }])),
      /log: record 100: values are dense float32 of 2 dimensions, expected dense float32 of 3 dimensions/,
    ],
    'a record with a repeated id': [
      (data) => {
        const row = { id: 'a', values: [1, 2, 3], metadata: '{}' };
        return data.appendWrite(batchOf([row, row]));
      },
      /log: record 100: writes 2 rows with 1 distinct ids/,
    ],
    'a record with invalid rows': [
      (data) => data.appendWrite(batchOf([{ id: '', values: [Infinity, 2, 3], metadata: '[]' }])),
      /log: record 100: row 0: metadata is not a JSON object/,
    ],
    'an idempotent reply that cannot be read': [
      (data) =>
        data.store.commit([
          { kind: 'put', key: keys.idempotentReply('x'), value: text('{"reply":1}') },
        ]),
      /^error: idempotent replies: the reply of key x cannot be read/,
    ],
    'an API key that cannot be read': [
      (data) => data.store.commit([{ kind: 'put', key: keys.apiKey('x'), value: text('{}') }]),
      /^error: API keys: the stored API key x is damaged/,
    ],
    'an audit event that cannot be read': [
      (data) => data.store.commit([{ kind: 'put', key: keys.auditEvent(7), value: text('{}') }]),
      /^error: audit events: event 7 cannot be read/,
    ],
    'an alias of a missing collection': [
      (data) => data.putAlias({ formatVersion: 1, name: 'live', incarnation: 'gone' }),
      /^error: alias "live": points to a collection that does not exist/,
    ],
    'an alias with another name': [
      (data) =>
        data.putAlias({ formatVersion: 1, name: 'x', incarnation: data.definition.incarnation }),
      /^error: alias "live": cannot be read, or has another name/,
    ],
    'expiries that cannot be read': [
      (data) => data.store.commit([{ kind: 'put', key: keys.expiries('x', 7), value: text('{}') }]),
      /^error: expiries of write x\/7: /,
    ],
    'a cursor secret of the wrong length': [
      (data) => data.store.commit([{ kind: 'put', key: keys.cursorSecret, value: text('short') }]),
      /^error: cursor secret: has 5 bytes, expected 32/,
    ],
  };

/** Remains of interrupted operations, which do no harm. */
export const LEFTOVERS: typeof DAMAGES = {
  'a file that no manifest lists': [
    (data) => data.store.writeBlob(data.segmentName(77), [text('x')]),
    /^note: segments\/.*\/77\.arrow: no manifest lists this file/,
  ],
  'a manifest without a collection': [
    (data) =>
      data.store.commit([
        { kind: 'put', key: keys.manifest('gone'), value: encodeJson(data.manifest) },
      ]),
    /^note: manifest gone: belongs to no collection/,
  ],
  'deletions of a missing segment': [
    (data) =>
      data.store.commit([
        { kind: 'put', key: keys.deletions(data.definition.incarnation, 77, 5), value: text('x') },
      ]),
    /^note: deletions of segment .*\/77: the segment does not exist/,
  ],
  'a log without a collection': [
    (data) => data.store.commit([{ kind: 'append', log: 'gone', sequence: 1, record: text('x') }]),
    /^note: log gone: 1 records belong to no collection/,
  ],
  'a missing cursor secret': [
    (data) => data.store.commit([{ kind: 'remove', key: keys.cursorSecret }]),
    /^note: cursor secret: is missing/,
  ],
};
