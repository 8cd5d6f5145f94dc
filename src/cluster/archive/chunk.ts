// A chunk of the archive: consecutive messages of a log, after one record of its chain up to a later one, as a blob. Its
// name contains the positions of the two records and the digest of its bytes, so two nodes that archive the same log
// never write different bytes under one name. It is sealed: its reader knows that a node has written these bytes.

import { hash } from 'node:crypto';
import { assert, SagittaError } from '../../common/errors.js';
import type { LogLink } from '../logs/collection-log.js';
import type { Channel, StreamMessage } from '../logs/message-stream.js';

export interface Chunk {
  readonly log: string;
  /** The record before the first message. */
  readonly after: LogLink;
  /** The record that is the last message. */
  readonly end: LogLink;
  /** Every message in between: the first one is at `after.position + 1`. */
  readonly messages: readonly StreamMessage[];
}

/** A chunk, as its name describes it. */
export interface ChunkName {
  readonly name: string;
  readonly afterPosition: number;
  readonly endPosition: number;
}

interface ChunkHeader {
  readonly formatVersion: 1;
  readonly log: string;
  readonly after: LogLink;
  readonly end: LogLink;
  /** The channel and the bytes of each message. */
  readonly messages: readonly (readonly [Channel, number])[];
}

const FOLDER = 'archive/';
const LENGTH_BYTES = 4;
/** Digits of the largest position: with leading zeros, text order is number order. */
const POSITION_DIGITS = 16;
const NAME_PATTERN = /\/(\d{16})-(\d{16})-[0-9a-f]{64}$/;

/** The folder with the chunks of a log. */
export function archiveFolder(log: string): string {
  return `${FOLDER}${log}`;
}

/** Undefined for a blob that is not a chunk. */
export function parseChunkName(name: string): ChunkName | undefined {
  const [, after, end] = NAME_PATTERN.exec(name) ?? [];
  if (end === undefined) return undefined;
  return { name, afterPosition: Number(after), endPosition: Number(end) };
}

export function encodeChunk({ log, after, end, messages }: Chunk): {
  readonly name: string;
  readonly bytes: Uint8Array;
} {
  assert(
    messages.every(({ position }, i) => position === after.position + 1 + i) &&
      messages.at(-1)?.position === end.position,
    `${log} has every position from ${after.position} to ${end.position}`,
  );
  const header: ChunkHeader = {
    formatVersion: 1,
    log,
    after,
    end,
    messages: messages.map(({ channel, bytes }) => [channel, bytes.length]),
  };
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.allocUnsafe(LENGTH_BYTES);
  length.writeUInt32LE(json.length);
  const bytes = Buffer.concat([length, json, ...messages.map((message) => message.bytes)]);
  const positions = [after, end].map(({ position }) =>
    String(position).padStart(POSITION_DIGITS, '0'),
  );
  return { name: `${archiveFolder(log)}/${positions.join('-')}-${hash('sha256', bytes)}`, bytes };
}

/** Throws `data_corrupt` for another format. `bytes`: undefined for a blob that is missing. */
export function decodeChunk(
  { name, afterPosition }: ChunkName,
  bytes: Uint8Array | undefined,
): Chunk {
  if (bytes === undefined) throw damaged(name, 'it is missing');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = LENGTH_BYTES + view.getUint32(0, true);
  const json = Buffer.from(bytes.subarray(LENGTH_BYTES, at)).toString();
  const { formatVersion, messages, ...rest } = JSON.parse(json) as ChunkHeader;
  if (formatVersion !== 1) {
    throw damaged(name, `expected format 1; found ${formatVersion}`);
  }
  return {
    ...rest,
    messages: messages.map(([channel, byteCount], i) => {
      at += byteCount;
      return {
        channel,
        position: afterPosition + 1 + i,
        bytes: bytes.subarray(at - byteCount, at),
      };
    }),
  };
}

function damaged(name: string, what: string): SagittaError {
  return new SagittaError('data_corrupt', `The chunk ${name} of the archive is damaged: ${what}.`);
}
