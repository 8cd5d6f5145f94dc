// The types of requests that are not generated from the schemas accept what the schemas accept: checked
// by the compiler. Vectors are custom there, and left out here.

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

/** Compiles where the first is assignable to the second. */
type Agrees<Given extends Wanted, Wanted> = [Given, Wanted];
type Taken<Schema extends z.ZodType> = z.input<Schema>;
type Without<Shape, Names extends string> = Omit<Shape, Names>;
type Writable<Shape> = { -readonly [Name in keyof Shape]: Mutable<Shape[Name]> };
type Mutable<Value> = Value extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : Value extends object
    ? Writable<Value>
    : Value;

type Query = Taken<Schemas['query']['query']>;
type WithVectors = 'vector' | 'multi_vector' | 'fusion' | 'prefetch';

export type Requests = [
  Agrees<Writable<CollectionInput>, Taken<Schemas['collections']['create']>>,
  Agrees<Writable<ApiKeyInput>, Taken<Schemas['keys']['create']>>,
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
    Without<Taken<Schemas['vectors']['listQuery']>, 'include_values'>
  >,
];

/** The names that only one of them has; true for none. */
type SameNames<Left, Right> = [keyof Left] extends [keyof Right]
  ? [keyof Right] extends [keyof Left]
    ? true
    : Exclude<keyof Right, keyof Left>
  : Exclude<keyof Left, keyof Right>;

export const NAMES_AGREE: readonly true[] = [
  true satisfies SameNames<Taken<Schemas['query']['query']>, QueryRequest>,
  true satisfies SameNames<Taken<Schemas['vectors']['listQuery']>, ListRequest>,
  true satisfies SameNames<Taken<Schemas['scans']['join']>, ReturnType<typeof wireJoin>>,
  true satisfies SameNames<Taken<Schemas['scans']['projection']>, ProjectionRequest>,
];
