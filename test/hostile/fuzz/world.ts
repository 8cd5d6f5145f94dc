// The state of the service as far as the fuzzer knows it from replies: collections with ids, cursors and sequences,
// aliases, keys and so on. Other clients change the same state, so all of it may be outdated.

import type { Json, JsonObject } from '../../../src/common/types.js';
import type { Random } from './random.js';

/** Number of remembered entries of each list. */
const REMEMBERED_MAX = 64;

export interface KnownCollection {
  readonly id: string;
  /** Null if there is no unnamed vector. */
  readonly dimension: number | null;
  /** Dimensions by name. */
  readonly named: ReadonlyMap<string, { readonly dimension: number; readonly isMulti: boolean }>;
  readonly sparse: readonly string[];
  readonly hasText: boolean;
  readonly embeds: boolean;
  readonly ids: string[];
  sequence: number;
  /** Cursors with the operations that returned them. */
  readonly cursors: { readonly operation: string; readonly cursor: string }[];
  readonly etags: string[];
}

/** Facts about the draft that determine what its reply reveals. */
export interface Sent {
  readonly operationId: string;
  readonly pathValues: Readonly<Record<string, string>>;
  readonly body: Json | undefined;
}

export class World {
  readonly collections = new Map<string, KnownCollection>();
  readonly aliases: string[] = [];
  readonly keys: { readonly id: string; readonly secret: string }[] = [];
  readonly backups: string[] = [];
  readonly idempotencyKeys: string[] = [];
  /** Cursors of lists that belong to no collection, by operation. */
  readonly cursors: { readonly operation: string; readonly cursor: string }[] = [];
  #nextNumber = 0;

  freshName(): string {
    this.#nextNumber++;
    return `f${this.#nextNumber}`;
  }

  collection(random: Random): KnownCollection | undefined {
    return random.pickAny([...this.collections.values()]);
  }

  /** Updates the state from a successful reply. */
  learn(sent: Sent, reply: { status: number; json: Json | undefined; etag: string | undefined }) {
    const { operationId, pathValues } = sent;
    const named = this.collections.get(pathValues.id ?? '');
    if (reply.status === 404 && codeOf(reply.json) === 'collection_not_found' && named) {
      this.collections.delete(named.id);
    }
    if (reply.status !== 200) return;
    if (named !== undefined && reply.etag !== undefined) remember(named.etags, reply.etag);
    const json = asObject(reply.json);
    const learn = LEARNED[operationId];
    if (learn !== undefined) learn(this, json, sent);
    else this.#learnCommon(named, json, sent);
  }

  #learnCommon(named: KnownCollection | undefined, json: JsonObject, { operationId, body }: Sent) {
    const collection = named ?? this.collections.get(String(asObject(body).collection));
    const cursor = json.next_cursor;
    if (typeof cursor === 'string') {
      remember(collection?.cursors ?? this.cursors, { operation: operationId, cursor });
    }
    if (collection === undefined) return;
    if (typeof json.sequence === 'number') collection.sequence = json.sequence;
    const rows = [...asArray(json.vectors), ...asArray(json.matches)].map(
      (row) => asObject(row).id,
    );
    for (const id of [...rows, ...idsOfBody(body), ...asArray(json.ids)]) {
      if (typeof id === 'string') remember(collection.ids, id);
    }
  }

  addCollection(record: JsonObject): void {
    const id = String(record.id);
    const named = Object.entries(asObject(record.vectors)).map(([name, settings]) => {
      const { dimension, multi } = asObject(settings);
      return [name, { dimension: Number(dimension), isMulti: multi === true }] as const;
    });
    this.collections.set(id, {
      id,
      dimension: typeof record.dimension === 'number' ? record.dimension : null,
      named: new Map(named),
      sparse: Object.keys(asObject(record.sparse_vectors)),
      hasText: typeof record.text === 'object' && record.text !== null,
      embeds: typeof record.embed === 'object' && record.embed !== null,
      ids: [],
      sequence: 0,
      cursors: [],
      etags: [],
    });
  }
}

type Learn = (world: World, json: JsonObject, sent: Sent) => void;

const LEARNED: Readonly<Record<string, Learn>> = {
  createCollection: (world, json) => world.addCollection(json),
  cloneCollection: (world, json) => world.addCollection(json),
  getCollection(world, json) {
    if (!world.collections.has(String(json.id))) world.addCollection(json);
  },
  renameCollection(world, json, { pathValues }) {
    world.collections.delete(pathValues.id ?? '');
    world.addCollection(json);
  },
  deleteCollection: (world, json) => world.collections.delete(String(json.id)),
  putAlias: (world, json) => remember(world.aliases, String(json.name)),
  createKey: learnKey,
  rotateKey: learnKey,
  createBackup: (world, json) => remember(world.backups, String(json.name)),
};

function learnKey(world: World, json: JsonObject): void {
  remember(world.keys, { id: String(json.id), secret: String(json.key) });
}

function idsOfBody(body: Json | undefined): Json[] {
  const { id, vectors } = asObject(body);
  const rows = Array.isArray(vectors) ? vectors.map((row) => asObject(row).id) : [];
  return [id, ...rows].filter((found) => found !== undefined);
}

function remember<Item>(list: Item[], item: Item): void {
  if (list.includes(item)) return;
  list.push(item);
  if (list.length > REMEMBERED_MAX) list.shift();
}

function codeOf(json: Json | undefined): Json | undefined {
  return asObject(json).code;
}

export function asObject(value: Json | undefined): JsonObject {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? value : {};
}

function asArray(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
