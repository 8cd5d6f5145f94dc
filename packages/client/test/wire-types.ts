// The compiler checks that hand-written request types accept the same as the server's schemas. Vectors are left out,
// because their schemas are custom.

import type { z } from 'zod';
import type { Schemas } from '../../../src/server/schemas/all.js';
import type {
  ApiKeyInput,
  CollectionInput,
  ListRequest,
  ProjectionRequest,
  QueryRequest,
} from '../src/client.js';
import type { wireJoin } from '../src/streams.js';

/** Compiles only if the first type is assignable to the second. */
type Agrees<Given extends Wanted, Wanted> = [Given, Wanted];
type InputOf<Schema extends z.ZodType> = z.input<Schema>;
type Without<Shape, Names extends string> = Omit<Shape, Names>;
type Writable<Shape> = { -readonly [Name in keyof Shape]: Mutable<Shape[Name]> };
type Mutable<Value> = Value extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : Value extends object
    ? Writable<Value>
    : Value;

type Query = InputOf<Schemas['query']['query']>;
type WithVectors = 'vector' | 'multi_vector' | 'fusion' | 'prefetch';

export type Requests = [
  Agrees<Writable<CollectionInput>, InputOf<Schemas['collections']['create']>>,
  Agrees<Writable<ApiKeyInput>, InputOf<Schemas['keys']['create']>>,
  Agrees<
    Without<Writable<QueryRequest>, WithVectors | 'include_values'>,
    Without<Query, WithVectors | 'include_values'>
  >,
  Agrees<
    Without<
      Writable<NonNullable<QueryRequest['fusion']>['parts'][number]>,
      'vector' | 'multi_vector'
    >,
    Without<NonNullable<Query['fusion']>['parts'][number], 'vector' | 'multi_vector'>
  >,
  Agrees<
    Without<Writable<NonNullable<QueryRequest['prefetch']>>, WithVectors>,
    Without<NonNullable<Query['prefetch']>, WithVectors>
  >,
  Agrees<
    Without<Writable<ListRequest>, 'include_values'>,
    Without<InputOf<Schemas['vectors']['listQuery']>, 'include_values'>
  >,
];

/** True if both types have the same members, otherwise the names that only one of them has. */
type SameNames<Left, Right> = [keyof Left] extends [keyof Right]
  ? [keyof Right] extends [keyof Left]
    ? true
    : Exclude<keyof Right, keyof Left>
  : Exclude<keyof Left, keyof Right>;

export const NAMES_AGREE: readonly true[] = [
  true satisfies SameNames<InputOf<Schemas['query']['query']>, QueryRequest>,
  true satisfies SameNames<InputOf<Schemas['vectors']['listQuery']>, ListRequest>,
  true satisfies SameNames<InputOf<Schemas['scans']['join']>, ReturnType<typeof wireJoin>>,
  true satisfies SameNames<InputOf<Schemas['scans']['projection']>, ProjectionRequest>,
];
