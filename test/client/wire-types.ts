// What the service says it takes and sends is what the client says it sends and gets: checked by
// the compiler, against the schemas that validate requests and become the OpenAPI document. Values
// and metadata are custom there, and left out here.

import type { z } from 'zod';
import type {
  ApiKeyInput,
  ApiKeyRecord,
  ApiKeyWithSecret,
  BackupRecord,
  CollectionInput,
  CollectionPage,
  CollectionRecord,
  DeleteManyReply,
  DeleteReply,
  ListRequest,
  PatchReply,
  Problem,
  PutReply,
  QueryReply,
  QueryRequest,
  Readiness,
  RecallReply,
  VectorPage,
  WriteReply,
  WriteStreamReply,
} from '../../src/client/client.js';
import type { wireJoin } from '../../src/client/streams.js';
import type { Schemas } from '../../src/server/schemas/all.js';

/** The first has to be assignable to the second. */
type Agrees<Given extends Wanted, Wanted> = [Given, Wanted];
type Sent<Schema extends z.ZodType> = z.output<Schema>;
type Taken<Schema extends z.ZodType> = z.input<Schema>;
/** zod writes `name?: T | undefined` where the wire has the member or has it not. */
type Optional<Shape> = { [Name in keyof Shape]?: Shape[Name] | undefined };
type Without<Shape, Names extends string> = Omit<Shape, Names>;
type Writable<Shape> = { -readonly [Name in keyof Shape]: Mutable<Shape[Name]> };
type Mutable<Value> = Value extends readonly (infer Item)[] ? Writable<Item>[] : Value;

export type Replies = [
  Agrees<Sent<Schemas['collections']['record']>, CollectionRecord>,
  Agrees<Sent<Schemas['collections']['list']>, Optional<CollectionPage>>,
  Agrees<Sent<Schemas['vectors']['written']>, Optional<WriteReply>>,
  Agrees<Sent<Schemas['vectors']['replaced']>, PutReply>,
  Agrees<Sent<Schemas['vectors']['patched']>, PatchReply>,
  Agrees<Sent<Schemas['vectors']['deleted']>, DeleteReply>,
  Agrees<Sent<Schemas['vectors']['deletedMany']>, DeleteManyReply>,
  Agrees<
    Without<Sent<Schemas['vectors']['list']>, 'vectors'>,
    Optional<Without<VectorPage, 'vectors'>>
  >,
  Agrees<
    Without<Sent<Schemas['query']['reply']>, 'matches'>,
    Optional<Without<QueryReply, 'matches'>>
  >,
  Agrees<Sent<Schemas['query']['recallReply']>, Optional<RecallReply>>,
  Agrees<Sent<Schemas['keys']['record']>, ApiKeyRecord>,
  Agrees<Sent<Schemas['keys']['secretRecord']>, ApiKeyWithSecret>,
  Agrees<Sent<Schemas['backups']['record']>, BackupRecord>,
  Agrees<Sent<Schemas['service']['ready']>, Optional<Readiness>>,
  Agrees<
    Without<Sent<Schemas['service']['problem']>, 'errors'>,
    Optional<Without<Problem, 'errors'>>
  >,
];

export type Requests = [
  Agrees<Writable<CollectionInput>, Taken<Schemas['collections']['create']>>,
  Agrees<Writable<ApiKeyInput>, Taken<Schemas['keys']['create']>>,
  Agrees<
    Without<Writable<QueryRequest>, 'vector' | 'include_values'>,
    Without<Taken<Schemas['query']['query']>, 'vector' | 'include_values'>
  >,
  Agrees<
    Without<Writable<ListRequest>, 'include_values'>,
    Without<Taken<Schemas['vectors']['listQuery']>, 'include_values'>
  >,
];

/** A member that only one of them knows is a mistake of ours. */
type SameNames<Left, Right> = [keyof Left] extends [keyof Right]
  ? [keyof Right] extends [keyof Left]
    ? true
    : Exclude<keyof Right, keyof Left>
  : Exclude<keyof Left, keyof Right>;

export const NAMES_AGREE: readonly true[] = [
  true satisfies SameNames<Sent<Schemas['collections']['record']>, CollectionRecord>,
  true satisfies SameNames<Sent<Schemas['query']['reply']>, QueryReply>,
  true satisfies SameNames<Taken<Schemas['query']['query']>, QueryRequest>,
  true satisfies SameNames<Taken<Schemas['vectors']['listQuery']>, ListRequest>,
  true satisfies SameNames<Sent<Schemas['backups']['record']>, BackupRecord>,
  true satisfies SameNames<Taken<Schemas['readings']['join']>, ReturnType<typeof wireJoin>>,
  true satisfies SameNames<Sent<Schemas['query']['recallReply']>, RecallReply>,
  true satisfies SameNames<Sent<Schemas['vectors']['written']>, WriteReply & WriteStreamReply>,
];
