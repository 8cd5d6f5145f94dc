// The table of filter operators: name, operand and meaning of each. The types of server and client, the API
// description, the operator menu of the console and the documentation derive from it; `src/filter/operators.ts`
// evaluates them.

/** The path of the vector's id in filters. It is no metadata path, because names that begin with "$" are rejected. */
export const ID_PATH = '$id';

/** The path of the indexed text of a vector in filters. */
export const TEXT_PATH = '$text';

/** The kinds of operands. `parseOperand` reads them, and `FilterOperators` of the client types them. */
export type OperandKind =
  | 'value'
  | 'values'
  | 'ordered'
  | 'flag'
  | 'text'
  | 'like'
  | 'regex'
  | 'instants'
  | 'counts'
  | 'types'
  | 'elements'
  | 'circle'
  | 'box'
  | 'polygon'
  | 'words';

/** The group of an operator in descriptions. */
export type OperatorSubject = 'values' | 'strings' | 'arrays' | 'points' | 'words';

/** A type of stored values; `id` and `text` stand for the id and the indexed text. */
export type OperatorFit =
  | 'number'
  | 'string'
  | 'boolean'
  | 'array'
  | 'object'
  | 'any'
  | 'id'
  | 'text';

export interface FilterOperatorEntry {
  readonly takes: OperandKind;
  readonly subject: OperatorSubject;
  /** The operator that matches exactly what this one does not. */
  readonly complementOf?: string;
  /** Whether the operator compares strings, so that `$case` applies to it. */
  readonly comparesStrings: boolean;
  /** Completes the sentence "matches if the field …" in the documentation. */
  readonly meaning: string;
  /** Text between the field and the operand in the console. */
  readonly label: string;
  /** The types of values for which the console offers the operator. */
  readonly fits: readonly OperatorFit[];
  /** Initial operand where the console shows it as JSON. */
  readonly example?: unknown;
}

const SCALARS = ['number', 'string', 'boolean', 'array', 'id'] as const;
const LISTED = ['number', 'string', 'array', 'id'] as const;
const range = {
  takes: 'ordered',
  subject: 'values',
  comparesStrings: true,
  fits: ['number', 'string', 'id'],
} as const;
const array = { subject: 'arrays', comparesStrings: true, fits: ['array'] } as const;
const string = {
  subject: 'strings',
  comparesStrings: true,
  fits: ['string', 'array', 'id'],
} as const;
const place = { subject: 'points', comparesStrings: false, fits: ['object'] } as const;
const BERLIN = { lat: 52.52, lon: 13.405 };

export const FILTER_OPERATORS = {
  $eq: {
    takes: 'value',
    subject: 'values',
    comparesStrings: true,
    meaning: 'equals the value; is an array with an element that does',
    label: 'is',
    fits: SCALARS,
  },
  $ne: {
    takes: 'value',
    subject: 'values',
    complementOf: '$eq',
    comparesStrings: true,
    meaning: 'does not equal the value, nor has an element that does; also if it is missing',
    label: 'is not',
    fits: SCALARS,
  },
  $in: {
    takes: 'values',
    subject: 'values',
    comparesStrings: true,
    meaning: 'equals one of the values; is an array with an element that does',
    label: 'is one of',
    fits: LISTED,
  },
  $nin: {
    takes: 'values',
    subject: 'values',
    complementOf: '$in',
    comparesStrings: true,
    meaning: 'equals none of the values, nor has an element that does; also if it is missing',
    label: 'is none of',
    fits: LISTED,
  },
  $gt: { ...range, meaning: 'is greater than a number or a string', label: 'is greater than' },
  $gte: { ...range, meaning: 'is at least a number or a string', label: 'is at least' },
  $lt: { ...range, meaning: 'is less than a number or a string', label: 'is less than' },
  $lte: { ...range, meaning: 'is at most a number or a string', label: 'is at most' },
  $contains: {
    ...array,
    takes: 'value',
    meaning: 'is an array that contains the value',
    label: 'contains',
  },
  $contains_any: {
    ...array,
    takes: 'values',
    meaning: 'is an array that contains one of the values',
    label: 'contains any of',
  },
  $contains_all: {
    ...array,
    takes: 'values',
    meaning: 'is an array that contains all of the values',
    label: 'contains all of',
  },
  $contains_only: {
    ...array,
    takes: 'values',
    meaning: 'is an array that contains nothing but the values; also if it is empty',
    label: 'contains only',
  },
  $prefix: {
    ...string,
    takes: 'text',
    meaning:
      'is a string that [begins](#filter-strings) with the text, or an array with such a string',
    label: 'begins with',
  },
  $suffix: {
    ...string,
    takes: 'text',
    meaning:
      'is a string that [ends](#filter-strings) with the text, or an array with such a string',
    label: 'ends with',
  },
  $like: {
    ...string,
    takes: 'like',
    meaning:
      'is a string that [matches the pattern](#filter-strings), or an array with such a string',
    label: 'is like (% any text, _ one)',
  },
  $regex: {
    ...string,
    takes: 'regex',
    meaning:
      'is a string [with a match of the pattern](#filter-strings), or an array with such a string',
    label: 'matches the pattern',
  },
  $date: {
    takes: 'instants',
    subject: 'strings',
    comparesStrings: false,
    meaning: 'is a date or time [in the range](#filter-dates)',
    label: 'is the date',
    fits: ['string'],
  },
  $size: {
    takes: 'counts',
    subject: 'arrays',
    comparesStrings: false,
    meaning:
      'is an array with this number of elements: a number, or comparisons such as `{"$gte": 2}`',
    label: 'has elements: exactly',
    fits: ['array'],
  },
  $elem_match: {
    takes: 'elements',
    subject: 'arrays',
    comparesStrings: false,
    meaning:
      'is an array with [one element](#filter-elements-of-arrays) that satisfies several conditions',
    label: 'has an element that',
    fits: ['array'],
    example: { $gt: 1 },
  },
  $geo_radius: {
    ...place,
    takes: 'circle',
    meaning: 'is a [point](#filter-places) near another one',
    label: 'is near the point',
    example: { center: BERLIN, radius_meters: 10_000 },
  },
  $geo_box: {
    ...place,
    takes: 'box',
    meaning: 'is a [point](#filter-places) between two latitudes and two longitudes',
    label: 'is in the box',
    example: { top_left: BERLIN, bottom_right: { lat: 52.3, lon: 13.7 } },
  },
  $geo_polygon: {
    ...place,
    takes: 'polygon',
    meaning: 'is a [point](#filter-places) in the polygon',
    label: 'is in the polygon',
    example: { exterior: [BERLIN, { lat: 52.3, lon: 13.7 }, { lat: 52.3, lon: 13.1 }] },
  },
  $exists: {
    takes: 'flag',
    subject: 'values',
    comparesStrings: false,
    meaning: 'exists (`true`) or does not exist (`false`)',
    label: 'exists',
    fits: ['any'],
  },
  $type: {
    takes: 'types',
    subject: 'values',
    comparesStrings: false,
    meaning:
      'is one of `null`, `boolean`, `number`, `string`, `array` and `object`, or of a list of these',
    label: 'has the type',
    fits: ['any'],
  },
  $match: {
    takes: 'words',
    subject: 'words',
    comparesStrings: false,
    meaning: 'is `$text`, and the [indexed text](#search-by-words) has all of the words',
    label: 'has all of the words',
    fits: ['text'],
  },
} as const satisfies Record<string, FilterOperatorEntry>;

export type FilterOperatorName = keyof typeof FILTER_OPERATORS;

/** The kind of operand that the operator takes. */
export type KindOf<Name extends FilterOperatorName> = (typeof FILTER_OPERATORS)[Name]['takes'];

/** Names of the operators for which `passes` returns true, in table order. */
export function operatorNames(
  passes: (entry: FilterOperatorEntry) => boolean,
): FilterOperatorName[] {
  return OPERATOR_NAMES.filter((name) => passes(FILTER_OPERATORS[name]));
}

const OPERATOR_NAMES = Object.keys(FILTER_OPERATORS) as FilterOperatorName[];
