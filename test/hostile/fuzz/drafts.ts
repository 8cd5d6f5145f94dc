// Requests to each operation of the document, in parts that can still be changed. Most of them are valid.

import type { Json, JsonObject } from '../../../src/common/types.js';
import { ARROW_STREAM, NDJSON } from '../../../src/server/wire/media-types.js';
import { arrowStream, type Row } from '../../server/ingest/streams.js';
import type { ApiDocument, Operation, Parameter } from './document.js';
import { makeMetadata } from './filters.js';
import type { Random } from './random.js';
import { makeId, makeNumbers, makeRecord, type Target } from './rows.js';
import { makeValue } from './values.js';
import type { Delivery, WireRequest } from './wire.js';
import type { KnownCollection, World } from './world.js';

/** A request before it is encoded; mutations change it. */
export interface Draft {
  readonly operation: Operation;
  method: string;
  /** `/v1` or empty. */
  prefix: string;
  /** Values for the placeholders in the path, not yet encoded. */
  pathValues: Record<string, string>;
  /** Replaces the path, exactly as sent. */
  rawPath: string | null;
  query: [string, string][];
  /** Appended to the query unchanged. */
  rawQuery: string;
  headers: [string, string][];
  /** The body as JSON or as bytes; both are absent without a body. */
  json: Json | undefined;
  bytes: Buffer | null;
  delivery: Delivery;
}

/** Share of optional parameters that are sent. */
const OPTIONAL_SHARE = 0.2;
const WHOLE: Delivery = { kind: 'whole' };

export class DraftMaker {
  readonly #document: ApiDocument;
  readonly #world: World;
  readonly #random: Random;

  constructor(document: ApiDocument, world: World, random: Random) {
    this.#document = document;
    this.#world = world;
    this.#random = random;
  }

  /** A request to a random operation that the service should be able to answer. */
  make(): Draft {
    return this.makeFor(this.#chooseOperation());
  }

  makeFor(operation: Operation): Draft {
    const random = this.#random;
    const collection = this.#world.collection(random);
    const target: Target = { world: this.#world, random, collection };
    const draft: Draft = {
      operation,
      method: operation.method,
      prefix: operation.isVersioned && random.chance(0.5) ? '/v1' : '',
      pathValues: {},
      rawPath: null,
      query: [],
      rawQuery: '',
      headers: [],
      json: undefined,
      bytes: null,
      delivery: random.chance(0.05) ? this.#oddDelivery() : WHOLE,
    };
    for (const parameter of operation.parameters) this.#addParameter(draft, parameter, target);
    this.#addBody(draft, target);
    if (operation.replyTypes.length > 1 || random.chance(0.05)) {
      draft.headers.push(['accept', random.pick([...operation.replyTypes, '*/*'])]);
    }
    FITS[operation.id]?.(draft, target);
    return draft;
  }

  #chooseOperation(): Operation {
    const { operations } = this.#document;
    const isPoor = this.#world.collections.size < COLLECTIONS_MIN;
    const isRich = this.#world.collections.size > COLLECTIONS_MAX;
    const weights = operations.map(({ id }): [string, number] => {
      const weight = WEIGHTS[id] ?? 2;
      if (id === 'createCollection' && isPoor) return [id, 60];
      if (MAKES_COLLECTIONS.includes(id) && isRich) return [id, 0.1];
      if (id === 'deleteCollection' && isRich) return [id, 10];
      return [id, weight];
    });
    const id = this.#random.weighted(Object.fromEntries(weights));
    return operations.find((operation) => operation.id === id)!;
  }

  #oddDelivery(): Delivery {
    const random = this.#random;
    return random.chance(0.7)
      ? { kind: 'chunked', chunkBytes: random.pick([1, 7, 100, 4_096]) }
      : { kind: 'slow', partCount: random.between(2, 5) };
  }

  #addParameter(draft: Draft, parameter: Parameter, target: Target): void {
    const { operation } = draft;
    const random = this.#random;
    const { name, schema, required = false } = parameter;
    if (parameter.in === 'path') {
      draft.pathValues[name] = this.#pathValue(operation, name, target);
      return;
    }
    if (!required && !random.chance(OPTIONAL_SHARE)) return;
    if (parameter.in === 'header') {
      const value = headerValue(name, target);
      if (value !== undefined) draft.headers.push([name, value]);
      return;
    }
    const own = PARAMETER_VALUES[name]?.(target, operation);
    if (own !== undefined) {
      if (own !== null) draft.query.push([name, own]);
      return;
    }
    const text = schema['x-json-schema'];
    const value = makeValue(this.#document.schemas, text ?? schema, target);
    const asIs = text === undefined && typeof value !== 'object';
    draft.query.push([name, asIs ? String(value) : JSON.stringify(value)]);
  }

  #pathValue({ path }: Operation, name: string, target: Target): string {
    const { world, random, collection } = target;
    switch (name) {
      case 'key_id':
        return random.pickAny(world.keys)?.id ?? 'unknown';
      case 'name':
        return random.pickAny(world.aliases) ?? 'unknown';
      case 'vector_id':
        return makeId(target);
      default: {
        if (path.startsWith('/vectors/')) return makeId(target);
        const alias = random.chance(0.05) ? random.pickAny(world.aliases) : undefined;
        return alias ?? collection?.id ?? 'unknown';
      }
    }
  }

  #addBody(draft: Draft, target: Target): void {
    const { bodies } = draft.operation;
    const types = Object.keys(bodies);
    const type = types.length > 1 ? this.#random.pick(types) : types[0];
    if (type === undefined) return;
    if (type === ARROW_STREAM || type === NDJSON) {
      const rows = vectorRows(target);
      draft.bytes = type === NDJSON ? ndjsonOf(rows) : arrowOf(rows, target.collection);
    } else {
      draft.json = makeValue(this.#document.schemas, bodies[type]!, target);
    }
    draft.headers.push(['content-type', type]);
  }
}

const COLLECTIONS_MIN = 4;
const COLLECTIONS_MAX = 12;
const MAKES_COLLECTIONS = ['createCollection', 'cloneCollection'];

/** Weights of operations; 2 for those that are not listed. */
const WEIGHTS: Readonly<Record<string, number>> = {
  writeVectors: 14,
  queryCollection: 14,
  query: 5,
  queryCollectionBatch: 5,
  listVectorsInCollection: 4,
  listVectors: 4,
  createCollection: 1.5,
  deleteCollection: 0.4,
  deleteVectors: 1,
  renameCollection: 0.5,
  cloneCollection: 0.5,
  createKey: 1,
  rotateKey: 1,
  createBackup: 0.5,
  getService: 1,
};

/** Null if the parameter is not sent. */
const PARAMETER_VALUES: Readonly<
  Record<string, (target: Target, operation: Operation) => string | null>
> = {
  collection: ({ collection }) => collection?.id ?? null,
  limit: ({ random }) => String(random.between(1, 20)),
  offset: ({ random }) => String(random.below(10)),
  cursor({ world, random, collection }, { id }) {
    const known = [...world.cursors, ...(collection?.cursors ?? [])];
    const own = known.filter(({ operation }) => operation === id || /^query/.test(operation));
    return random.pickAny(own)?.cursor ?? null;
  },
  after: ({ random }) => random.pick(['kind', 'n']),
  vector_column: () => 'values',
  id_column: () => 'id',
  ignore_columns: () => 'metadata',
  using: ({ random, collection }) => random.pickAny([...(collection?.named.keys() ?? [])]) ?? null,
  group_by: ({ random }) => random.pick(['kind', 'n']),
  group_size: () => null,
  score_threshold: ({ random }) => String(random.next() - 0.5),
  since: () => '2020-01-01T00:00:00Z',
  until: () => '2100-01-01T00:00:00Z',
};

function headerValue(name: string, { random, collection, world }: Target): string | undefined {
  if (name === 'Idempotency-Key') return `header-${world.freshName()}`;
  return random.pickAny(collection?.etags ?? []);
}

type Fit = (draft: Draft, target: Target) => void;

const requireCollection: Fit = (draft, { collection }) => {
  const has = draft.query.some(([name]) => name === 'collection');
  if (!has && collection !== undefined) draft.query.push(['collection', collection.id]);
};

/** Puts the collection into the query string or the body. */
const chooseCollection: Fit = (draft, target) => {
  draft.query = draft.query.filter(([name]) => name !== 'collection');
  if (!target.random.chance(0.5)) return;
  const { collection: _, ...rest } = (draft.json ?? {}) as JsonObject;
  draft.json = rest;
  requireCollection(draft, target);
};

/** A cursor comes alone, because other parameters would have to be those of the first page. */
const aloneWithCursor: Fit = (draft, { random }) => {
  const cursor = draft.query.find(([name]) => name === 'cursor');
  if (cursor === undefined || random.chance(0.1)) return;
  draft.query = draft.query.filter(([name]) => name === 'cursor' || name === 'collection');
};

/** A query needs its parameters either in the body or in the query string. */
const dropPageParameters: Fit = (draft, { random }) => {
  if (!random.chance(0.1)) draft.query = draft.query.filter(([name]) => name === 'collection');
};

const batchOptions: Fit = (draft, { random }) => {
  if (draft.bytes === null) {
    // Options in the query string are for Arrow bodies.
    if (!random.chance(0.1)) draft.query = [];
    return;
  }
  const hasColumn = draft.query.some(([name]) => name === 'vector_column');
  if (!hasColumn) draft.query.push(['vector_column', 'values']);
  draft.query = draft.query.filter(([name]) => name !== 'ignore_columns');
  draft.query.push(['ignore_columns', 'id,metadata']);
};

const onlyForStreams: Fit = (draft) => {
  if (draft.bytes === null) draft.query = [];
};

const aloneIdempotent: Fit = (draft) => {
  const isInBody = (draft.json as JsonObject | undefined)?.idempotency_key !== undefined;
  if (isInBody) draft.headers = draft.headers.filter(([name]) => name !== 'Idempotency-Key');
};

const FITS: Readonly<Record<string, Fit>> = {
  putVector: chooseCollection,
  query(draft, target) {
    chooseCollection(draft, target);
    dropPageParameters(draft, target);
  },
  queryCollection: dropPageParameters,
  queryCollectionBatch: batchOptions,
  listVectors(draft, target) {
    requireCollection(draft, target);
    aloneWithCursor(draft, target);
  },
  listVectorsInCollection: aloneWithCursor,
  writeVectors(draft, target) {
    onlyForStreams(draft, target);
    aloneIdempotent(draft, target);
  },
  createCollection: aloneIdempotent,
  cloneCollection: aloneIdempotent,
  renameCollection: aloneIdempotent,
  deleteVectors: aloneIdempotent,
  updateVectors: aloneIdempotent,
};

/** Records with values as numbers, as in streams. */
function vectorRows(target: Target): JsonObject[] {
  const { random, collection } = target;
  return random.list(random.between(1, 30), () => {
    const { id, vectors, sparse_vectors } = makeRecord(target);
    return {
      id: id ?? makeId(target),
      ...(collection?.dimension !== null && { values: makeNumbers(target) }),
      ...(vectors !== undefined && { vectors }),
      ...(sparse_vectors !== undefined && { sparse_vectors }),
      metadata: makeMetadata(random),
    };
  });
}

function ndjsonOf(rows: readonly JsonObject[]): Buffer {
  return Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

function arrowOf(rows: readonly JsonObject[], collection: KnownCollection | undefined): Buffer {
  const dimension = collection?.dimension ?? 3;
  const columns = rows.map(
    ({ id, values, metadata }): Row => ({
      id: String(id),
      values: (values as number[] | undefined) ?? new Array<number>(dimension).fill(1),
      metadata: JSON.stringify(metadata),
    }),
  );
  const half = Math.ceil(columns.length / 2);
  return arrowStream([columns.slice(0, half), columns.slice(half)]);
}

/** The request in wire format. `authorization` is for requests without that header. */
export function encodeDraft(draft: Draft, authorization: string): WireRequest {
  const path =
    draft.rawPath ??
    draft.operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodePart(draft.pathValues[name] ?? ''),
    );
  const query = draft.query.map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`);
  if (draft.rawQuery !== '') query.push(draft.rawQuery);
  const body = draft.json === undefined ? draft.bytes : Buffer.from(JSON.stringify(draft.json));
  const hasOwn = draft.headers.some(([name]) => name === 'authorization');
  return {
    method: draft.method,
    target: `${draft.prefix}${path}${query.length === 0 ? '' : `?${query.join('&')}`}`,
    headers: hasOwn ? draft.headers : [['authorization', authorization], ...draft.headers],
    body,
    delivery: body === null && draft.delivery.kind === 'chunked' ? WHOLE : draft.delivery,
  };
}

/** Lone surrogates have no encoding; the bytes of their UTF-16 are sent, which are not UTF-8. */
function encodePart(text: string): string {
  if (!LONE_SURROGATE.test(text)) return encodeURIComponent(text);
  const bytes = [...Buffer.from(text, 'utf16le')];
  return bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}

const LONE_SURROGATE = /\p{Surrogate}/u;
