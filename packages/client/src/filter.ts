// Types for filters on metadata of a declared type: editors complete paths, and operands must have the type of the
// values at their path. Operands that only the server checks, such as geographic shapes, are plain JSON here.

import type {
  FilterOperatorName,
  KindOf,
  OperandKind,
} from '../../../src/common/filter-operators.js';
import type { Json, JsonObject } from '../../../src/common/types.js';

/** A filter on metadata of this type. Without a declared type it is any JSON object, and the server checks it. */
export type Filter<Metadata extends object = JsonObject> = string extends keyof Metadata
  ? JsonObject
  : TypedFilter<Metadata>;

/** The paths of metadata of this type; any string without a declared type. */
export type MetadataPath<Metadata extends object = JsonObject> = string extends keyof Metadata
  ? string
  : PathOf<Metadata>;

type TypedFilter<Metadata extends object> = {
  readonly [Path in PathOf<Metadata>]?: Condition<ValueAt<Metadata, Path>>;
} & {
  readonly $and?: readonly Filter<Metadata>[];
  readonly $or?: readonly Filter<Metadata>[];
  readonly $not?: Filter<Metadata>;
  /** The id of the vector. */
  readonly $id?: Condition<string>;
  /** The indexed text of the collection. */
  readonly $text?: { readonly $match: string };
};

/** Bounds the depth of recursive metadata types. */
type DepthMax = [1, 1, 1, 1, 1];

/** The names of members and, after a dot, of the members of nested objects. */
type PathOf<Value, Depth extends readonly unknown[] = DepthMax> = Depth extends readonly [
  unknown,
  ...infer Rest,
]
  ? {
      [Name in keyof Value & string]:
        | Name
        | (IsPlainObject<NonNullable<Value[Name]>> extends true
            ? `${Name}.${PathOf<NonNullable<Value[Name]>, Rest>}`
            : never);
    }[keyof Value & string]
  : never;

type IsPlainObject<Value> = Value extends object
  ? Value extends readonly unknown[]
    ? false
    : true
  : false;

type ValueAt<Value, Path extends string> = Path extends keyof Value
  ? Value[Path]
  : Path extends `${infer Name}.${infer Rest}`
    ? Name extends keyof Value
      ? ValueAt<NonNullable<Value[Name]>, Rest>
      : never
    : never;

type Scalar = string | number | boolean;
/** The type that is compared: a scalar, or the elements of an array. */
type Element<Value> =
  NonNullable<Value> extends readonly (infer Item)[] ? Item & Scalar : NonNullable<Value> & Scalar;
/** Allows `false` too where the declared type has narrowed to `true`, and vice versa. */
type Widened<Value> = Value extends boolean ? boolean : Value;

/** A value to equal, or operators that must all hold. */
export type Condition<Value> = Widened<Element<Value>> | null | Operators<Widened<Element<Value>>>;

type Operators<Compared> = {
  readonly [Name in Exclude<FilterOperatorName, '$match'>]?: Operands<Compared>[KindOf<Name>];
} & { readonly $case?: 'insensitive' };

/** The operand types, by kind. */
interface Operands<Compared> extends Readonly<Record<OperandKind, unknown>> {
  readonly value: Compared | null;
  readonly values: readonly (Compared | null)[];
  readonly ordered: Exclude<Compared, boolean>;
  readonly flag: boolean;
  readonly text: string;
  readonly like: string;
  readonly regex: string;
  readonly instants:
    | string
    | Readonly<Partial<Record<'$eq' | '$gt' | '$gte' | '$lt' | '$lte', string>>>;
  readonly counts: Json;
  readonly types: Json;
  readonly elements: JsonObject;
  readonly circle: JsonObject;
  readonly box: JsonObject;
  readonly polygon: JsonObject;
  readonly words: string;
}
